//! What reading over SSH costs, through a line of 40 ms a round trip and without delay, each figure as a ratio against
//! `sftp`, `ssh cat` and `ssh tar` over a kept connection in the same run: `cargo bench -p filectx-tests --bench ssh`.
//! `FILECTX_BENCH_LONG=1` has sftp fetch 1,000 files through the line too, which takes minutes.
#![allow(clippy::print_stderr, clippy::panic, reason = "a report is for reading")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use filectx_client::hosts::HostManager;
use filectx_openapi::{FileRequest, ReadFileContextRequest};
use filectx_tests::bench::{median, report};
use filectx_tests::line::Line;
use filectx_tests::sshd::{self, Host};

const ONE_WAY: Duration = Duration::from_millis(20);
const SIZE: usize = 8_500;

fn main() {
    if !sshd::available() {
        return;
    }
    for delay in [Duration::ZERO, ONE_WAY] {
        let bench = Bench::new(delay);
        eprintln!("\n== round trip {:?}", delay * 2);
        bench.files(1, 30);
        bench.files(50, 20);
        bench.files(1_000, 5);
        bench.command();
    }
}

struct Bench {
    host: Host,
    delay: Duration,
    dir: PathBuf,
    runtime: tokio::runtime::Runtime,
    manager: HostManager,
}

impl Bench {
    fn new(delay: Duration) -> Self {
        let host = Host::start("");
        if !delay.is_zero() {
            host.reach_by(Line::to(host.port, delay).port);
        }
        let dir = host.path("home/src");
        std::fs::create_dir(&dir).expect("a directory");
        for (i, text) in source(1_000).iter().enumerate() {
            std::fs::write(dir.join(format!("{i:04}.rs")), text).expect("a file");
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let manager = HostManager::new(host.place());
        runtime.block_on(manager.connect(host.options())).unwrap_or_else(|error| panic!("{error}"));
        let bench = Self { host, delay, dir, runtime, manager };
        assert!(
            bench.ssh(&["-M", "-N", "-f", "-o", "ControlPersist=600", "host"]),
            "a connection for the peers"
        );
        bench
    }

    /// The peers' ssh, over a connection of their own.
    fn peer(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.arg("-F").arg(self.host.path("ssh_config"));
        command.arg("-o").arg(format!("ControlPath={}", self.host.path("peer").display()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn ssh(&self, args: &[&str]) -> bool {
        self.peer("ssh").args(args).status().is_ok_and(|status| status.success())
    }

    fn paths(&self, count: usize) -> Vec<String> {
        (0..count).map(|i| self.dir.join(format!("{i:04}.rs")).display().to_string()).collect()
    }

    /// `count` files by us and by the peers.
    fn files(&self, count: usize, runs: usize) {
        let paths = self.paths(count);
        let file = |path: &String| FileRequest { path: Some(path.clone()), ..FileRequest::default() };
        let request = ReadFileContextRequest {
            files: paths.iter().map(file).collect(),
            ..ReadFileContextRequest::default()
        };
        let ours = median(runs, || {
            let client = self.manager.client_for_host("host").expect("it is connected");
            let answer = self.runtime.block_on(client.read(&request)).expect("an answer");
            assert_eq!(answer.file_contexts.len(), count);
        });
        let what = format!("{count} files of 8.5 kB");
        if !self.delay.is_zero() && count <= 50 {
            let aim = if count == 1 { "at most 1.15" } else { "at most 1.25" };
            report(&what, ours, "one round trip", self.delay * 2, aim);
        }
        let names = paths.iter().map(|path| Path::new(path).file_name().expect("a name").to_string_lossy());
        let list = names.collect::<Vec<_>>().join(" ");
        let cat = format!("cd {} && cat {list}", self.dir.display());
        let cat = median(runs, || assert!(self.ssh(&["host", &cat])));
        let aim = if count == 50 && self.delay.is_zero() { "at most 0.3" } else { "-" };
        report(&what, ours, "ssh cat of all", cat, aim);
        if count == 50 {
            let each = median(3, || {
                for path in &paths {
                    assert!(self.ssh(&["host", "cat", path]));
                }
            });
            report(&what, ours, "ssh cat, one after the other", each, "-");
        }
        let tar = format!("cd {} && tar cf - {list}", self.dir.display());
        let tar = median(runs, || assert!(self.ssh(&["host", &tar])));
        let aim = if count == 1_000 && !self.delay.is_zero() { "at most 0.7" } else { "-" };
        report(&what, ours, "ssh tar of all", tar, aim);
        let long = !self.delay.is_zero() && count > 100;
        if !long || std::env::var_os("FILECTX_BENCH_LONG").is_some() {
            // It cuts what it writes to a length, which no device takes.
            let to = self.host.path("fetched");
            std::fs::create_dir_all(&to).expect("a directory");
            let batch: String = paths.iter().map(|path| format!("get {path} {}/\n", to.display())).collect();
            let batch = self.host.write("batch", &batch);
            let once = if count > 1 { 1 } else { 5 };
            let sftp = median(once, || {
                let status = self.peer("sftp").arg("-q").arg("-b").arg(&batch).arg("host").status();
                assert!(status.is_ok_and(|status| status.success()), "sftp");
            });
            report(&what, ours, "sftp -b", sftp, "-");
        }
    }

    /// A whole command where all is in place, against the least that ssh can do.
    fn command(&self) {
        let path = self.paths(1).remove(0);
        let read = || {
            let output = self.host.run(&["read", "--raw", &path]);
            assert_eq!(output.stdout.len(), SIZE, "{}", String::from_utf8_lossy(&output.stderr));
        };
        read();
        let ours = median(20, read);
        let theirs = median(20, || assert!(self.ssh(&["host", "true"])));
        report("filectx --host HOST read", ours, "ssh host true", theirs, "one round trip more at most");
        let more = ours.as_secs_f64() - theirs.as_secs_f64();
        eprintln!("  that is {:.1} ms more; a round trip is {:?}", more * 1000.0, self.delay * 2);
        let _ = self.host.run(&["disconnect"]);
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.ssh(&["-O", "exit", "host"]);
        self.runtime.block_on(self.manager.shutdown());
    }
}

/// Texts of source code, of one size each: the sources of this build's dependencies, cut into pieces.
fn source(count: usize) -> Vec<String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    let mut text = String::new();
    gather(&home.expect("a home").join("registry/src"), count * SIZE, &mut text);
    let text: String = text.chars().filter(char::is_ascii).collect();
    assert!(!text.is_empty(), "sources of dependencies are in cargo's home");
    let whole = text.repeat(count * SIZE / text.len() + 1);
    whole
        .as_bytes()
        .chunks(SIZE)
        .take(count)
        .map(|piece| String::from_utf8_lossy(piece).into_owned())
        .collect()
}

fn gather(dir: &Path, bytes: usize, text: &mut String) {
    let mut entries: Vec<_> =
        std::fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).collect();
    entries.sort();
    for path in entries {
        if text.len() > bytes + (bytes >> 3) {
            return;
        }
        if path.is_dir() {
            gather(&path, bytes, text);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let part = std::fs::read_to_string(&path).unwrap_or_default();
            text.extend(part.chars().take(40_000));
        }
    }
}
