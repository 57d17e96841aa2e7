//! What an image costs, each figure as a ratio against a peer in the same run:
//! `cargo bench -p filectx-tests --bench images`. Images are made by Pillow; the peers are `vipsthumbnail` (Debian's
//! libvips-tools) and the `image` crate's plain way, each product in a process of its own.
#![allow(clippy::print_stderr, reason = "a report is for reading")]

use std::io::Cursor;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use filectx_openapi::{FileRequest, ReadFileContextRequest, routes};
use filectx_tests::bench::{Connection, cpu_while, report, user_cpu_of};
use filectx_tests::programs::{Service, program};
use filectx_tests::{repo, require};

const RUNS: &str = "9";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [word, from, to] = args.as_slice()
        && word == "plain-way"
    {
        return plain_way(from, to);
    }
    // `cargo bench` passes flags of its own; a name chooses.
    let chosen: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let benches: [(&str, fn()); 2] = [("decode", decode), ("bytes", bytes)];
    for (name, bench) in benches {
        if chosen.is_empty() || chosen.iter().any(|arg| *arg == name) {
            bench();
        }
    }
}

/// The `image` crate without thought: load, thumbnail, write in the same format.
fn plain_way(from: &str, to: &str) {
    let bytes = std::fs::read(from).expect("a file");
    let format = image::guess_format(&bytes).expect("an image");
    let small = image::load_from_memory(&bytes).expect("an image").thumbnail(1_237, 929);
    let mut out = Cursor::new(Vec::new());
    small.write_to(&mut out, format).expect("an image");
    std::fs::write(to, out.into_inner()).expect("a file");
}

/// CPU time and peak memory (KiB) of a command.
fn measured(python: &str, command: &[&str]) -> (Duration, u64) {
    let script = repo::root().join("tests/images/measure.py");
    let output = Command::new(python).arg(script).arg(RUNS).args(command).output().expect("Python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let (cpu, peak) = text.trim().split_once(' ').expect("two numbers");
    (Duration::from_secs_f64(cpu.parse::<f64>().expect("a number") / 1000.0), peak.parse().expect("a number"))
}

/// 12 MP JPEG, 4K PNG screenshot, 12 MP WebP to the default limits.
fn decode() {
    let Some(python) = require::python("PIL") else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name).to_str().expect("UTF-8").to_owned();
    let made = Command::new(python).arg(repo::root().join("tests/images/large.py")).arg(dir.path()).status();
    assert!(made.is_ok_and(|status| status.success()), "large.py");
    let filectx = program("filectx").to_str().expect("UTF-8").to_owned();
    let own = std::env::current_exe().expect("a path").to_str().expect("UTF-8").to_owned();
    let vips = require::program("vipsthumbnail");
    for (name, out, aim) in [
        ("photo.jpg", "out.jpg[Q=85]", "0.55"),
        ("screen.png", "out.png", "0.35"),
        ("photo.webp", "out.webp[Q=85]", "0.8"),
    ] {
        let source = at(name);
        let (ours, peak) = measured(python, &[&filectx, "read", "--save-dir", &at("saved"), &source]);
        if vips {
            let (theirs, its_peak) =
                measured(python, &["vipsthumbnail", &source, "--size", "1237x929", "-o", &at(out)]);
            report(&format!("CPU of {name}"), ours, "vipsthumbnail", theirs, &format!("at most {aim}"));
            eprintln!("  peak memory {peak} KiB (aim: below 65536); vipsthumbnail {its_peak} KiB");
        }
        let (theirs, its_peak) =
            measured(python, &[&own, "plain-way", &source, &at(&format!("plain-{name}"))]);
        report(&format!("CPU of {name}"), ours, "the image crate's way", theirs, "at most 0.75");
        eprintln!("  peak memory {peak} KiB; the image crate's way {its_peak} KiB");
    }
}

/// Server CPU of 10 MiB of binaries, as parts and in base64, against copying them once. The kernel copies them twice for
/// any server, from the file and to the connection: its part is told beside.
fn bytes() {
    const ROUNDS: u32 = 200;
    let dir = tempfile::tempdir().expect("a directory");
    let data: Vec<u8> = (0..1 << 20).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let names: Vec<String> = (0..10).map(|index| format!("{index}.bin")).collect();
    for name in &names {
        std::fs::write(dir.path().join(name), &data).expect("a file");
    }
    let service = Service::start(&[]);
    let mut connection = Connection::new(service.url().trim_start_matches("http://"));
    let copy = copied(&data.repeat(10));
    for (accept, times) in [("multipart/mixed", 5), ("application/json", 20)] {
        let request = request(&service.token, dir.path(), &names, accept);
        assert!(connection.ask(&request).len() > 10 << 20);
        let before = user_cpu_of(service.pid());
        let all = cpu_while(&[service.pid()], || {
            for _ in 0..ROUNDS {
                connection.ask(&request);
            }
        }) / ROUNDS;
        let user = (user_cpu_of(service.pid()) - before) / ROUNDS;
        let (what, aim) = (format!("server CPU of 10 MiB as {accept}"), format!("at most {times}"));
        report(&what, user, "a memcpy of them", copy, &aim);
        eprintln!("  with the kernel's part: {all:.1?}");
    }
}

/// The time of one copy into memory that is there: the median of many.
fn copied(data: &[u8]) -> Duration {
    let mut target = vec![1; data.len()];
    let times = (0..50).map(|_| {
        let start = Instant::now();
        target.copy_from_slice(std::hint::black_box(data));
        std::hint::black_box(&mut target);
        start.elapsed()
    });
    let mut times: Vec<Duration> = times.collect();
    times.sort();
    times[times.len() / 2]
}

fn request(token: &str, dir: &Path, names: &[String], accept: &str) -> Vec<u8> {
    let file = |name: &String| FileRequest { path: Some(name.clone()), ..FileRequest::default() };
    let request = ReadFileContextRequest {
        files: names.iter().map(file).collect(),
        cwd: dir.to_str().map(str::to_owned),
        max_file_bytes: Some(2 << 20),
        ..ReadFileContextRequest::default()
    };
    let body = serde_json::to_string(&request).expect("a request is JSON");
    let (route, length) = (routes::READ_FILE_CONTEXT, body.len());
    format!(
        "POST {route} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\naccept: {accept}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}
