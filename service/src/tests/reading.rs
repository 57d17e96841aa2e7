//! Batch reads through the door: the answer's text, its compression, and the caller's wishes about both.

use std::fs;
use std::io::Read;
use std::sync::Arc;

use filectx_openapi::{Code, FileContext, Limits, ReadFileContextResponse, routes};

use super::{Answered, ask, batch, door, post, service, with};
use crate::Door;

#[tokio::test]
async fn the_answer_is_what_serde_would_write() {
    let dir = tempfile::tempdir().unwrap();
    let odd = dir.path().join("odd \"name\"\n");
    let text = format!("{}\u{1}\"\\\u{2028}é\r\n", "line\n".repeat(4000));
    fs::write(&odd, &text).unwrap();
    let binary = dir.path().join("binary");
    fs::write(&binary, [0, 159, 146, 150, 0, 1, 2, 3]).unwrap();
    let missing = dir.path().join("missing");
    let body = batch(&[&odd, &missing, &binary, &odd]);
    let answered = ask(&door(), post(routes::READ_FILE_CONTEXT, body)).await;
    assert_eq!(answered.header("content-type"), Some("application/json"));
    let response: ReadFileContextResponse = serde_json::from_slice(&answered.body).unwrap();
    // Written again by serde it is the same value: nothing was lost, doubled or escaped amiss.
    assert_eq!(serde_json::to_value(&response).unwrap(), answered.json());
    let indexes =
        |contexts: &[FileContext]| contexts.iter().map(|context| context.request_index).collect::<Vec<_>>();
    assert_eq!(indexes(&response.file_contexts), [0, 2, 3]);
    assert_eq!(response.file_contexts[0].text_content.as_deref(), Some(text.as_str()));
    assert_eq!(response.failed_files.len(), 1);
    assert_eq!(
        (response.failed_files[0].request_index, &response.failed_files[0].error.code),
        (1, &Code::NotFound)
    );
}

#[tokio::test]
async fn a_batch_is_answered_alike_wherever_it_runs() {
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..100).map(|n| dir.path().join(format!("{n}"))).collect();
    for (n, path) in paths.iter().enumerate().skip(1) {
        fs::write(path, format!("{n}\n").repeat(n)).unwrap();
    }
    let paths: Vec<_> = paths.iter().map(|path| path.as_path()).collect();
    let here = door();
    let there = Door::new(Arc::new(service(Limits::default()).with_blocking_workers(1)));
    for some in [&paths[..1], &paths[..20], &paths[..]] {
        let one = ask(&here, post(routes::READ_FILE_CONTEXT, batch(some))).await;
        let two = ask(&there, post(routes::READ_FILE_CONTEXT, batch(some))).await;
        assert!(one.body == two.body, "{} files", some.len());
    }
}

fn plain(answered: &Answered) -> Vec<u8> {
    let mut plain = Vec::new();
    match answered.header("content-encoding") {
        None => plain.extend_from_slice(&answered.body),
        Some("gzip") => {
            flate2::read::GzDecoder::new(&answered.body[..]).read_to_end(&mut plain).unwrap();
        }
        Some("zstd") => plain = zstd::decode_all(&answered.body[..]).unwrap(),
        Some(other) => panic!("{other}"),
    }
    plain
}

#[tokio::test]
async fn it_is_compressed_when_asked_and_unless_it_begins_with_a_binary() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("text");
    fs::write(&text, "the same line\n".repeat(5000)).unwrap();
    let binary = dir.path().join("binary");
    fs::write(&binary, vec![0; 5000]).unwrap();
    let door = door();
    let cases = [
        ("", [&text, &binary], None),
        ("identity", [&text, &binary], None),
        ("gzip", [&text, &binary], Some("gzip")),
        ("zstd", [&text, &binary], Some("zstd")),
        ("gzip;q=0", [&text, &binary], None),
        ("gzip, zstd;q=0.1", [&text, &binary], Some("gzip")),
        ("gzip, zstd", [&binary, &text], None),
    ];
    let mut bodies = Vec::new();
    for (accept, paths, expected) in cases {
        let request = post(routes::READ_FILE_CONTEXT, batch(&paths.map(|path| path.as_path())));
        let answered = ask(&door, with(request, "accept-encoding", accept)).await;
        assert_eq!(answered.header("content-encoding"), expected, "{accept}");
        bodies.push((plain(&answered), answered.body.len()));
    }
    assert!(bodies[..6].iter().all(|(plain, _)| *plain == bodies[0].0));
    assert!(bodies[2].1 < 10_000 && bodies[3].1 < 10_000);
}

#[tokio::test]
async fn what_is_not_there_by_the_deadline_fails_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    fs::write(&path, "a\n").unwrap();
    let body = serde_json::json!({"files": [{"path": path}], "deadline_ms": 0}).to_string();
    let answered = ask(&door(), post(routes::READ_FILE_CONTEXT, body)).await;
    assert_eq!(answered.status, 200);
    assert_eq!(answered.json()["failed_files"][0]["error"]["code"], "deadline_exceeded");
}

#[tokio::test]
async fn forms_that_there_are_not_are_refused() {
    let door = door();
    let body = batch(&["/etc/hostname".as_ref()]);
    for accept in ["application/json", "*/*", "application/*", ""] {
        let answered =
            ask(&door, with(post(routes::READ_FILE_CONTEXT, body.clone()), "accept", accept)).await;
        assert_eq!(answered.status, 200, "{accept}");
    }
    let refused = ask(&door, with(post(routes::READ_FILE_CONTEXT, body), "accept", "text/html")).await;
    refused.refused(Code::NotAcceptable);
}
