//! What only a running service shows of multipart answers: the line in its log, and a caller that stops reading.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use filectx_openapi::{FileRequest, ReadFileContextRequest, routes};
use filectx_tests::bench::peak_kib;
use filectx_tests::programs::Service;

/// A request for parts, written by hand: its answer is read as slowly as the test likes.
fn ask(service: &Service, request: &ReadFileContextRequest) -> TcpStream {
    let body = serde_json::to_string(request).expect("a request is JSON");
    let mut stream = TcpStream::connect(service.url().trim_start_matches("http://")).expect("it listens");
    let (route, token, length) = (routes::READ_FILE_CONTEXT, &service.token, body.len());
    let head = format!(
        "POST {route} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\naccept: multipart/mixed\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes()).expect("the request is taken");
    stream
}

fn batch(dir: &Path, names: impl Iterator<Item = String>) -> ReadFileContextRequest {
    let file = |name| FileRequest { path: Some(name), ..FileRequest::default() };
    ReadFileContextRequest {
        files: names.map(file).collect(),
        cwd: dir.to_str().map(str::to_owned),
        max_file_bytes: Some(64 << 20),
        max_batch_bytes: Some(1 << 30),
        ..ReadFileContextRequest::default()
    }
}

/// Bytes that are no text, different for each file.
fn binary(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|at| ((at * 31 + seed) % 251) as u8).collect()
}

#[test]
fn the_log_counts_what_was_streamed() {
    let dir = tempfile::tempdir().expect("a directory");
    // Larger than what is answered in one piece, so it comes from the disk while it is sent.
    std::fs::write(dir.path().join("large"), binary(9 << 20, 1)).expect("a file");
    std::fs::write(dir.path().join("text"), "text\n").expect("a file");
    let service = Service::start(&[]);
    let names = ["large", "gone", "text"].map(str::to_owned);
    let mut answer = Vec::new();
    ask(&service, &batch(dir.path(), names.into_iter())).read_to_end(&mut answer).expect("an answer");
    assert!(answer.len() > 9 << 20);
    let end = Instant::now() + Duration::from_secs(20);
    let line = loop {
        assert!(Instant::now() < end, "no line within 20 s");
        let log = service.log();
        if let Some(line) = log.lines().find(|line| line.contains("read-file-context")) {
            break line.to_owned();
        }
        std::thread::yield_now();
    };
    assert!(line.contains("items=2 failed=1") && !line.contains("hung_up"), "{line}");
}

#[test]
fn a_caller_that_stops_reading_slows_the_service_down() {
    const FILES: usize = 60;
    const LENGTH: usize = 5 << 20;
    let dir = tempfile::tempdir().expect("a directory");
    for index in 0..FILES {
        std::fs::write(dir.path().join(index.to_string()), binary(LENGTH, index)).expect("a file");
    }
    std::fs::write(dir.path().join("text"), "text\n").expect("a file");
    let service = Service::start(&[]);
    let mut slow = ask(&service, &batch(dir.path(), (0..FILES).map(|index| index.to_string())));
    slow.read_exact(&mut [0; 1000]).expect("the answer begins");
    // Others are served meanwhile, again and again; what was read for the slow one stays bounded all the time.
    for _ in 0..200 {
        let mut answer = String::new();
        let other = batch(dir.path(), std::iter::once("text".to_owned()));
        ask(&service, &other).read_to_string(&mut answer).expect("an answer");
        assert!(answer.contains(r#""type":"done","file_contexts":1"#), "{answer}");
    }
    let read = bytes_read(service.pid());
    assert!(read < 160 << 20, "{read} bytes were read for a caller that takes none, of {}", FILES * LENGTH);
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).expect("the answer goes on");
    assert!(rest.len() > FILES * LENGTH - 1000);
    let end = String::from_utf8_lossy(&rest[rest.len() - 300..]).into_owned();
    assert!(end.contains(&format!(r#""type":"done","file_contexts":{FILES}"#)), "{end}");
    let peak = peak_kib(service.pid());
    assert!(peak < 220 << 10, "{peak} KiB for an answer of {} bytes", rest.len());
}

/// What a process has read of files and sockets.
fn bytes_read(pid: u32) -> u64 {
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).expect("the process lives");
    let line = io.lines().find_map(|line| line.strip_prefix("rchar: "));
    line.and_then(|count| count.parse().ok()).expect("a number")
}
