//! What a batch read costs, each figure as a ratio against a peer or a limit in the same run:
//! `cargo bench -p filectx-tests --bench read`. `FILECTX_MCP_PEER` names a `rust-mcp-filesystem` to compare with;
//! nginx is used where it is installed.
#![allow(clippy::print_stderr, reason = "a report is for reading")]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use filectx_openapi::{FileRequest, ReadFileContextRequest, routes};
use filectx_tests::bench::{Connection, apart, cpu_of, cpu_while, median, peak_kib, post, report};
use filectx_tests::programs::Service;

fn main() {
    // `cargo bench` passes flags of its own; a name chooses.
    let chosen: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let benches: [(&str, fn()); 4] =
        [("batch", small_batch), ("window", window), ("many", many_files), ("single", single_requests)];
    for (name, bench) in benches {
        if chosen.is_empty() || chosen.iter().any(|arg| arg == name) {
            bench();
        }
    }
}

/// A directory of `count` files of source-like text of about `size` bytes.
fn files(count: usize, size: usize) -> (tempfile::TempDir, Vec<PathBuf>) {
    let dir = tempfile::tempdir().expect("a directory");
    let mut paths = Vec::new();
    for i in 0..count {
        let mut text = String::new();
        let mut line = 0;
        while text.len() < size {
            line += 1;
            writeln!(
                text,
                "    let value_{line} = compute(\"file {i}\", {line}); // keeps what it was given"
            )
            .expect("a line");
        }
        text.truncate(size);
        let path = dir.path().join(format!("file_{i:04}.rs"));
        std::fs::write(&path, text).expect("a file");
        paths.push(path);
    }
    (dir, paths)
}

fn batch(paths: &[PathBuf]) -> ReadFileContextRequest {
    let file =
        |path: &PathBuf| FileRequest { path: path.to_str().map(str::to_owned), ..FileRequest::default() };
    ReadFileContextRequest { files: paths.iter().map(file).collect(), ..ReadFileContextRequest::default() }
}

/// 50 files of 8.5 kB through loopback HTTP and decoded, against a loop of `std::fs::read`, and against an MCP server.
fn small_batch() {
    let (dir, paths) = files(50, 8_500);
    let service = Service::start(&[]);
    let client = service.client();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let request = batch(&paths);
    let ours = median(300, || {
        let answer = runtime.block_on(client.read(&request)).expect("an answer");
        assert_eq!(answer.file_contexts.len(), 50);
    });
    let plain = median(300, || {
        for path in &paths {
            assert_eq!(std::fs::read(path).expect("a file").len(), 8_500);
        }
    });
    report("batch of 50 files, HTTP, decoded", ours, "std::fs::read in a loop", plain, "at most 6");
    if let Some(peer) = std::env::var_os("FILECTX_MCP_PEER") {
        let mut peer = McpPeer::start(&peer, dir.path());
        let theirs = median(100, || peer.read(&paths));
        report(
            "batch of 50 files, HTTP, decoded",
            ours,
            "rust-mcp-filesystem over stdio",
            theirs,
            "at most 0.6",
        );
    }
}

struct McpPeer {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
    id: u64,
}

impl McpPeer {
    fn start(program: &std::ffi::OsStr, dir: &Path) -> Self {
        let mut child = Command::new(program)
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the peer starts");
        let answers = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut peer = Self { child, answers, id: 0 };
        let hello = serde_json::json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}});
        peer.ask("initialize", &hello);
        peer.tell(&serde_json::json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        peer
    }

    fn tell(&mut self, message: &serde_json::Value) {
        let stdin = self.child.stdin.as_mut().expect("stdin is piped");
        writeln!(stdin, "{message}").expect("the peer listens");
    }

    fn ask(&mut self, method: &str, params: &serde_json::Value) -> serde_json::Value {
        self.id += 1;
        self.tell(&serde_json::json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(self.answers.read_line(&mut line).expect("the peer answers") > 0, "the peer ended");
            let answer: serde_json::Value = serde_json::from_str(&line).expect("JSON");
            if answer["id"] == self.id {
                return answer;
            }
        }
    }

    fn read(&mut self, paths: &[PathBuf]) {
        let arguments = serde_json::json!({"paths": paths});
        let answer = self.ask(
            "tools/call",
            &serde_json::json!({"name": "read_multiple_text_files", "arguments": arguments}),
        );
        let text = answer["result"]["content"].to_string();
        assert!(text.len() > 50 * 8_500, "{}", &answer.to_string()[..300]);
    }
}

impl Drop for McpPeer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// 100 lines near the end of a 1 GiB log, with the exact number of lines, against `wc -l`.
fn window() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("log");
    let mut log = std::io::BufWriter::with_capacity(1 << 20, std::fs::File::create(&path).expect("a file"));
    let mut lines = 0u64;
    let mut written = 0;
    while written < 1 << 30 {
        lines += 1;
        let line = format!(
            "2026-01-01T00:00:00.000Z INFO worker-{:02} request {lines:09} took {} ms and was served from the cache\n",
            lines % 64,
            lines % 977
        );
        written += line.len();
        log.write_all(line.as_bytes()).expect("a line");
    }
    log.flush().expect("the log is whole");
    drop(log);
    let service = Service::start(&[]);
    let client = service.client();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut request = batch(std::slice::from_ref(&path));
    request.count_lines = Some(true);
    request.files[0].line_ranges =
        vec![filectx_openapi::LineRange { start: 9_000_000, end: Some(9_000_100) }];
    let ours = median(9, || {
        let answer = runtime.block_on(client.read(&request)).expect("an answer");
        assert_eq!(answer.file_contexts[0].line_count, Some(lines));
    });
    let theirs = median(9, || {
        let output = Command::new("wc").arg("-l").arg(&path).output().expect("wc runs");
        assert!(String::from_utf8_lossy(&output.stdout).starts_with(&lines.to_string()));
    });
    report("lines 9,000,000-9,000,100 of 1 GiB with the line count", ours, "wc -l", theirs, "below 1");
    let raw = median(5, || {
        let mut file = std::fs::File::open(&path).expect("a file");
        let mut block = vec![0; 256 << 10];
        while file.read(&mut block).expect("bytes") > 0 {}
    });
    report("the same", ours, "read() without looking", raw, "near 1.2");
    eprintln!("peak memory of the service: {} KiB (aim: below 40960)", peak_kib(service.pid()));
}

fn post_batch(token: &str, paths: &[PathBuf]) -> Vec<u8> {
    post(token, routes::READ_FILE_CONTEXT, &serde_json::to_string(&batch(paths)).expect("a request is JSON"))
}

/// Server CPU of 1,000 files of 4 kB in one batch, against open+read+close in a loop, and against single requests.
fn many_files() {
    const ROUNDS: u32 = 200;
    let (_dir, paths) = files(1_000, 4_096);
    let service = Service::start(&[]);
    let mut connection = Connection::new(service.url().trim_start_matches("http://"));
    let request = post_batch(&service.token, &paths);
    let _apart = apart(&[service.pid()]);
    connection.ask(&request);
    let one_batch = cpu_while(&[service.pid()], || {
        for _ in 0..ROUNDS {
            assert!(connection.ask(&request).len() > 4_000_000);
        }
    }) / ROUNDS;
    let own = std::process::id();
    let mut block = vec![0; 64 << 10];
    let raw = cpu_while(&[own], || {
        for _ in 0..ROUNDS {
            for path in &paths {
                let mut file = std::fs::File::open(path).expect("a file");
                assert_eq!(file.read(&mut block).expect("bytes"), 4_096);
            }
        }
    }) / ROUNDS;
    let singles: Vec<Vec<u8>> =
        paths.iter().map(|path| post_batch(&service.token, std::slice::from_ref(path))).collect();
    let single = cpu_while(&[service.pid()], || {
        for _ in 0..ROUNDS / 20 {
            for request in &singles {
                connection.ask(request);
            }
        }
    }) / (ROUNDS / 20);
    report(
        "server CPU, 1,000 files of 4 kB in one batch",
        one_batch,
        "open+read+close in a loop",
        raw,
        "at most 3",
    );
    report(
        "server CPU, 1,000 files of 4 kB in one batch",
        one_batch,
        "1,000 single requests",
        single,
        "well below 1",
    );
}

/// Server CPU of a request for one file of 4 KiB, against nginx giving the same file.
fn single_requests() {
    const REQUESTS: u32 = 30_000;
    let (dir, paths) = files(1, 4_096);
    let service = Service::start(&[]);
    let mut connection = Connection::new(service.url().trim_start_matches("http://"));
    let request = post_batch(&service.token, &paths);
    let ask = |connection: &mut Connection, request: &[u8]| {
        for _ in 0..REQUESTS {
            connection.ask(request);
        }
    };
    let placed = apart(&[service.pid()]);
    ask(&mut connection, &request);
    let ours = cpu_while(&[service.pid()], || ask(&mut connection, &request)) / REQUESTS;
    let Some(nginx) = Nginx::start(dir.path()) else {
        return eprintln!("server CPU of one file of 4 KiB: {ours:?} (nginx is not there to compare with)");
    };
    let request = b"GET /file_0000.rs HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";
    let mut connection = Connection::new(&nginx.address);
    drop(placed);
    let _apart = apart(&nginx.pids());
    ask(&mut connection, request);
    let theirs = cpu_while(&nginx.pids(), || ask(&mut connection, request)) / REQUESTS;
    report("server CPU of one file of 4 KiB", ours, "nginx", theirs, "at most 1.5");
}

struct Nginx {
    child: Child,
    address: String,
    _dir: tempfile::TempDir,
}

impl Nginx {
    fn start(root: &Path) -> Option<Self> {
        let dir = tempfile::tempdir().expect("a directory");
        let free = std::net::TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a port");
        let at = dir.path().display();
        let configuration = format!(
            "daemon off; worker_processes 1; pid {at}/pid; error_log {at}/error;\n\
             events {{ worker_connections 64; }}\n\
             http {{ access_log {at}/access; keepalive_requests 1000000; sendfile on; tcp_nodelay on;\n\
             client_body_temp_path {at}/a; proxy_temp_path {at}/b; fastcgi_temp_path {at}/c; uwsgi_temp_path {at}/d; scgi_temp_path {at}/e;\n\
             server {{ listen {free}; root {}; }} }}",
            root.display()
        );
        let file = dir.path().join("nginx.conf");
        std::fs::write(&file, configuration).expect("a configuration");
        let user_may_read = Command::new("chmod").arg("-R").arg("a+rX").arg(root).arg(dir.path()).status();
        user_may_read.expect("chmod runs");
        let child = Command::new("nginx")
            .arg("-c")
            .arg(&file)
            .arg("-e")
            .arg(dir.path().join("error"))
            .spawn()
            .ok()?;
        let address = free.to_string();
        while std::net::TcpStream::connect(&address).is_err() {
            std::thread::yield_now();
        }
        Some(Self { child, address, _dir: dir })
    }

    fn pids(&self) -> Vec<u32> {
        let own = self.child.id();
        let children =
            std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        let workers: Vec<u32> = children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
        assert!(
            !workers.is_empty() && workers.iter().all(|&pid| cpu_of(pid) >= Duration::ZERO),
            "nginx has workers"
        );
        workers
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        filectx_tests::programs::signal(self.child.id(), "TERM");
        let _ = self.child.wait();
    }
}
