//! Reads that are answered by parts.

use super::tests::{numbered, read, run};
use crate::Error;
use crate::stub::answer;

const TYPE: &str = "multipart/mixed; boundary=B";
const RECORD: &str = r#"{"type":"file_context","request_index":0,"file_name":"f","last_modified_epoch_millis":0,
    "file_size_bytes":3,"revision":"r","binary_part":"p"}"#;
const DONE: &str = r#"{"type":"done","file_contexts":1,"failed_files":0}"#;

fn parts(parts: &[(&str, &str)], end: &str) -> Vec<u8> {
    let parts = parts.iter().map(|(head, body)| format!("--B\r\n{head}\r\n\r\n{body}\r\n"));
    (parts.collect::<String>() + end).into_bytes()
}

#[test]
fn parts_are_asked_for_and_put_together() {
    let body = parts(
        &[("content-type: application/json", RECORD), ("content-id: <p>", "\0\u{1}\u{2}"), ("x: y", DONE)],
        "--B--\r\n",
    );
    let stub = numbered(move |_, _| answer(200, TYPE, &body));
    let response = run(stub.client().read(&read())).unwrap();
    assert_eq!(response.file_contexts[0].binary_content.as_ref().unwrap().0, [0, 1, 2]);
    assert!(stub.seen()[0].header("accept").unwrap().starts_with("multipart/mixed, application/json"));
}

#[test]
fn an_answer_without_done_was_cut_off() {
    let body = parts(
        &[("content-type: application/json", RECORD), ("content-id: <p>", "\0\u{1}\u{2}")],
        "--B--\r\n",
    );
    let stub = numbered(move |_, _| answer(200, TYPE, &body));
    let error = run(stub.client().read(&read())).unwrap_err();
    assert!(matches!(&error, Error::Protocol { detail } if detail.contains("cut off")), "{error:?}");
}
