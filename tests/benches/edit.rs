//! What an edit costs, each figure as a ratio against a peer in the same run:
//! `cargo bench -p filectx-tests --bench edit`.
#![allow(clippy::print_stderr, reason = "a report is for reading")]

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use filectx_client::{Client, Target, Token};
use filectx_files::{Cancel, FenceConfig, Files};
use filectx_openapi::{Code, EditFileRequest, Limits, routes};
use filectx_tests::bench::{Connection, cpu_of_children, cpu_while, median, post, report};
use filectx_tests::programs::Service;
use serde_json::json;

fn main() {
    // `cargo bench` passes flags of its own; a name chooses.
    let chosen: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let benches: [(&str, fn()); 3] =
        [("large", large_file), ("sequence", small_edits), ("nomatch", no_match)];
    for (name, bench) in benches {
        if chosen.is_empty() || chosen.iter().any(|arg| arg == name) {
            bench();
        }
    }
}

/// Source-like text of about `size` bytes, with one line in its middle that is like no other.
fn text(size: usize) -> String {
    let (mut text, mut line, mut marked) = (String::new(), 0, false);
    while text.len() < size {
        line += 1;
        writeln!(text, "    let value_{line} = compute(\"input\", {line}); // keeps what it was given")
            .expect("a line");
        if !marked && text.len() > size / 2 {
            text.push_str("    let marked = 0;\n");
            marked = true;
        }
    }
    text
}

fn edit(path: &Path, old: &str, new: &str) -> EditFileRequest {
    let edits = json!([{"old_text": old, "new_text": new}]);
    serde_json::from_value(json!({"path": path, "edits": edits})).expect("a request")
}

/// The marked line, as it stands after `n` edits.
fn marked(n: usize) -> String {
    format!("let marked = {n};")
}

fn put(dir: &Path, text: &str) -> PathBuf {
    let path = dir.join("file.rs");
    std::fs::write(&path, text).expect("a file");
    path
}

/// One exact edit of a 10 MiB file through the service, against `sed -i` doing the same.
fn large_file() {
    const RUNS: u32 = 30;
    let dir = tempfile::tempdir().expect("a directory");
    let path = put(dir.path(), &text(10 << 20));
    let service = Service::start(&[]);
    let token = Token::new(&service.token).expect("a token");
    let client = Client::builder(Target::from_url(service.url()).expect("a URL")).token(token).build();
    let client = client.expect("a client");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut n = 0;
    let mut ours = || {
        let answer =
            runtime.block_on(client.edit(&edit(&path, &marked(n), &marked(n + 1)))).expect("an edit");
        assert_eq!(answer.edits[0].replacements, 1);
        n += 1;
    };
    let wall = median(RUNS as usize, &mut ours);
    let cpu = cpu_while(&[service.pid()], || (0..RUNS).for_each(|_| ours())) / RUNS;
    let sed = |synced: bool| {
        let mut n = n;
        let path = path.to_str().expect("a plain name").to_owned();
        move || {
            let script = format!("s/{}/{}/", marked(n), marked(n + 1));
            let done = Command::new("sed").args(["-i", &script, &path]).status().expect("sed runs");
            assert!(done.success());
            if synced {
                File::open(&path).and_then(|file| file.sync_all()).expect("it can be synced");
            }
            n += 1;
        }
    };
    let mut plain = sed(false);
    let theirs = median(RUNS as usize, &mut plain);
    let before = cpu_of_children();
    (0..RUNS).for_each(|_| plain());
    let their_cpu = (cpu_of_children() - before) / RUNS;
    put(dir.path(), &text(10 << 20).replace(&marked(0), &marked(n)));
    let synced = median(RUNS as usize, sed(true));
    report("an exact edit in 10 MiB, synced", wall, "sed -i, which syncs nothing", theirs, "below 1");
    report("an exact edit in 10 MiB, synced", wall, "sed -i and a sync of the file", synced, "below 1");
    report("CPU of that edit", cpu, "CPU of sed -i", their_cpu, "below 1");
}

/// A thousand edits of a small file, one after the other, against the least that a safe replacement does.
fn small_edits() {
    const EDITS: usize = 1_000;
    let small = text(4 << 10);
    let dir = tempfile::tempdir().expect("a directory");
    let path = put(dir.path(), &small);
    // The disk's pace varies: in rounds, one after the other, the median of each.
    let mut rounds: [Vec<Duration>; 4] = Default::default();
    let runtime = tempfile::tempdir().expect("a directory");
    let files = Files::new(&FenceConfig::default(), Limits::default()).expect("an engine");
    files.keep_journal(runtime.path()).expect("a journal");
    let service = Service::start(&[]);
    let mut connection = Connection::new(service.url().trim_start_matches("http://"));
    for _ in 0..5 {
        put(dir.path(), &small);
        rounds[0].push(time(EDITS, |n| {
            let cancel = Cancel::after(Duration::from_secs(60));
            files.edit(&edit(&path, &marked(n), &marked(n + 1)), &cancel).expect("an edit");
        }));
        put(dir.path(), &small);
        rounds[1].push(time(EDITS, |n| {
            let body = serde_json::to_string(&edit(&path, &marked(n), &marked(n + 1))).expect("a request");
            connection.ask(&post(&service.token, routes::EDIT_FILE, &body));
        }));
        for (round, with_directory) in [(2, false), (3, true)] {
            put(dir.path(), &small);
            rounds[round].push(time(EDITS, |n| replace(&path, n, with_directory)));
        }
    }
    let [engine, http, plain, with_directory] = rounds.map(|mut times| {
        times.sort();
        times[times.len() / 2]
    });
    let peer = "write, fsync, rename";
    report("1,000 edits of 4 KiB, engine", engine, peer, plain, "at most 1.3");
    report("1,000 edits of 4 KiB, HTTP", http, peer, plain, "at most 1.3");
    let peer = "write, fsync, rename, fsync of the directory";
    report("1,000 edits of 4 KiB, engine", engine, peer, with_directory, "at most 1.3");
    report("1,000 edits of 4 KiB, HTTP", http, peer, with_directory, "at most 1.3");
}

fn time(count: usize, mut work: impl FnMut(usize)) -> Duration {
    let start = Instant::now();
    (0..count).for_each(&mut work);
    start.elapsed()
}

fn replace(path: &Path, n: usize, with_directory: bool) {
    let text = std::fs::read_to_string(path).expect("the file").replacen(&marked(n), &marked(n + 1), 1);
    let temporary = path.with_extension("tmp");
    let mut file = File::create(&temporary).expect("a temporary");
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).expect("it can be synced");
    std::fs::rename(&temporary, path).expect("it takes its place");
    if with_directory {
        let dir = File::open(path.parent().expect("a directory"));
        dir.and_then(|dir| dir.sync_all()).expect("it can be synced");
    }
}

/// The report on a text that is not in a 64 MiB file, against grep finding that it is not there.
fn no_match() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut large = text(64 << 20);
    large.truncate(64 << 20);
    let path = put(dir.path(), &large);
    let files = Files::new(&FenceConfig::default(), Limits::default()).expect("an engine");
    let wanted = "    let value_300000 = compute(\"output\", 300001);";
    let ours = median(5, || {
        let cancel = Cancel::after(Duration::from_secs(60));
        let error = files.edit(&edit(&path, wanted, "x"), &cancel).expect_err("it is not there");
        assert_eq!(error.code, Code::NoMatch);
        assert!(!error.data.candidates.expect("candidates").is_empty());
    });
    let theirs = median(5, || {
        let found = Command::new("grep").args(["-cF", wanted]).arg(&path).output().expect("grep runs");
        assert_eq!(found.stdout, b"0\n");
    });
    report("the report of no match in 64 MiB", ours, "grep -cF", theirs, "below 2 s");
}
