//! A corpus of images, good, odd and damaged (`tests/images/corpus.py`), through a real filectxd. Each is shown or refused
//! as it should be, and Pillow (`tests/images/check.py`) holds whatever came back against what was promised of it.
#![allow(clippy::panic, reason = "a test fails by a panic")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use filectx_client::Client;
use filectx_openapi::{
    FailedFile, FileContext, FileRequest, ImageLimits, ReadFileContextRequest, ReadFileContextResponse,
};
use filectx_tests::bench::peak_kib;
use filectx_tests::programs::Service;
use filectx_tests::{repo, require};
use serde_json::{Value, json};

fn script(name: &str) -> PathBuf {
    repo::root().join("tests/images").join(name)
}

fn run(python: &str, name: &str, argument: &Path) -> Output {
    Command::new(python).arg(script(name)).arg(argument).output().expect("Python runs")
}

fn request(dir: &Path, names: &[&str]) -> ReadFileContextRequest {
    let file = |name: &&str| FileRequest { path: Some((*name).to_owned()), ..FileRequest::default() };
    let cwd = dir.to_str().map(str::to_owned);
    ReadFileContextRequest {
        files: names.iter().map(file).collect(),
        cwd,
        ..ReadFileContextRequest::default()
    }
}

fn read(client: &Client, request: &ReadFileContextRequest) -> ReadFileContextResponse {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(client.read(request)).expect("an answer")
}

#[test]
fn every_image_that_comes_back_is_one() {
    let Some(python) = require::python("PIL") else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let corpus = dir.path().join("corpus");
    let made = run(python, "corpus.py", &corpus);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let manifest = std::fs::read_to_string(corpus.join("manifest.json")).expect("a manifest");
    let manifest: Vec<Value> = serde_json::from_str(&manifest).expect("the manifest is JSON");
    assert!(manifest.len() >= 150, "{} images", manifest.len());
    let names: Vec<&str> = manifest.iter().map(|entry| entry["name"].as_str().expect("a name")).collect();

    let service = Service::start(&[]);
    let client = service.client();
    let (mut report, mut wrong) = (Vec::new(), Vec::new());
    let small = ImageLimits { max_pixels: Some(5_000), max_side: Some(90), max_bytes: Some(2_500) };
    for (pass, limits) in [("default", None), ("small", Some(small))] {
        let mut request = request(&corpus, &names);
        request.image = limits;
        let most = |asked: fn(ImageLimits) -> Option<u64>, default| limits.and_then(asked).unwrap_or(default);
        let max_pixels = most(|limits| limits.max_pixels, 1_150_000);
        let max_side = most(|limits| limits.max_side, 1_568);
        let max_bytes = most(|limits| limits.max_bytes, 3_750_000);
        let limits = json!({"name": pass, "default": limits.is_none(), "max_pixels": max_pixels, "max_side": max_side, "max_bytes": max_bytes});
        let response = read(&client, &request);
        let mut outcomes: Vec<Option<Value>> = vec![None; names.len()];
        for context in response.file_contexts {
            let index = context.request_index as usize;
            let answer = dir.path().join(format!("{pass}-{index}"));
            let (outcome, answered) = shown(&context, &answer);
            outcomes[index] = Some(outcome);
            if let Some((image, mime_type)) = answered {
                report.push(json!({
                    "name": names[index], "source": corpus.join(names[index]), "answer": answer, "image": image,
                    "mime_type": mime_type, "limits": limits, "expected": manifest[index],
                }));
            }
        }
        for FailedFile { request_index, error, .. } in response.failed_files {
            outcomes[request_index as usize] = Some(json!(error.code.as_str()));
        }
        for (entry, outcome) in manifest.iter().zip(outcomes) {
            let outcome = outcome.expect("every file has an outcome");
            if !fits(&entry["expect"], &outcome) {
                wrong
                    .push(format!("{} ({pass}): should be {}, is {outcome}", entry["name"], entry["expect"]));
            }
        }
    }
    let path = dir.path().join("report.json");
    std::fs::write(&path, json!(report).to_string()).expect("a report");
    let checked = run(python, "check.py", &path);
    wrong.extend(String::from_utf8_lossy(&checked.stdout).lines().map(str::to_owned));
    assert!(
        wrong.is_empty() && checked.status.success(),
        "{}\n{}",
        wrong.join("\n"),
        String::from_utf8_lossy(&checked.stderr)
    );
    assert!(report.len() > 300, "only {} images came back", report.len());
}

/// What a context is; of an image its metadata and type, with its bytes written to `answer`.
fn shown(context: &FileContext, answer: &Path) -> (Value, Option<(Value, String)>) {
    let Some(image) = &context.image else {
        let kind = if context.text_content.is_some() { "text" } else { "binary" };
        return (json!(kind), None);
    };
    let content = context.binary_content.as_ref().expect("an image has bytes");
    std::fs::write(answer, &content.0).expect("an answer can be written");
    let image = serde_json::to_value(image).expect("metadata are JSON");
    (json!("image"), Some((image, context.mime_type.clone().expect("an image has a type"))))
}

/// What is damaged may be shown, or refused in any of the ways that images are.
fn fits(expected: &Value, outcome: &Value) -> bool {
    let refused = ["image_undecodable", "image_unsupported", "image_too_large"].map(Value::from);
    outcome == expected || (expected == "either" && (outcome == "image" || refused.contains(outcome)))
}

/// A GIF of 1,500 x 1,500 pixels in a few bytes: decoding it takes some 40 MB.
fn bomb() -> Vec<u8> {
    let screen = 1_500u16.to_le_bytes();
    let frame = [&[b',', 0, 0, 0, 0][..], &[1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0, b';']].concat();
    [b"GIF89a", &screen[..], &screen, &[0x80, 0, 0, 9, 9, 9, 255, 255, 255], &frame].concat()
}

#[test]
fn bombs_in_parallel_do_not_add_up() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("bomb.gif"), bomb()).expect("a file");
    let service = Service::start(&["--limit", "max_image_source_pixels=2250000"]);
    // The pool of this limit: six bytes a pixel and 64 MiB. Beside it: the program and its answers.
    let most_kib = (2_250_000 * 6 / 1024) + (64 << 10) + (48 << 10);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let response = read(&service.client(), &request(dir.path(), &["bomb.gif"; 2]));
                assert_eq!((response.file_contexts.len(), response.failed_files.len()), (2, 0));
            });
        }
    });
    let peak = peak_kib(service.pid());
    assert!(peak < most_kib, "{peak} KiB, of at most {most_kib}");
}
