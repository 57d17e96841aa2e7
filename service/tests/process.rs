//! The program: how it starts, says that it is ready, is asked for its health, and ends. Nothing here sleeps: a test
//! waits for the ready line or for the end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

fn filectxd(runtime: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_filectxd"));
    let own = std::env::vars_os()
        .map(|(name, _)| name)
        .filter(|name| name.as_encoded_bytes().starts_with(b"FILECTX_"));
    own.for_each(|name| {
        command.env_remove(name);
    });
    command.env("XDG_RUNTIME_DIR", runtime).stdin(Stdio::null());
    command
}

struct Running {
    child: Child,
    ready: Value,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut child =
            command.arg("--ready-json").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let ready = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        Self { child, ready }
    }

    fn text(&self, field: &str) -> &str {
        self.ready[field].as_str().unwrap()
    }

    fn get(&self, path: &str) -> String {
        let token = fs::read_to_string(self.text("token_file")).unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n",
            token.trim()
        );
        let mut answer = String::new();
        if let Some(url) = self.ready["url"].as_str() {
            let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            stream.read_to_string(&mut answer).unwrap();
        } else {
            let mut stream = UnixStream::connect(self.text("socket")).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            stream.read_to_string(&mut answer).unwrap();
        }
        answer
    }

    /// Tells it to end, and returns how it ended and what it logged.
    fn stop(mut self) -> (ExitStatus, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.ended()
    }

    fn ended(&mut self) -> (ExitStatus, String) {
        let mut log = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        (self.child.wait().unwrap(), log)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Left over only where a test failed before it stopped its own.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn fails(command: &mut Command) -> String {
    let Output { status, stderr, .. } = command.output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert!(!status.success(), "{said}");
    assert!(said.lines().count() <= 12 && !said.contains("panicked"), "{said}");
    said
}

#[test]
fn it_says_where_it_is_and_ends_when_told() {
    let dir = tempfile::tempdir().unwrap();
    let running = Running::start(&mut filectxd(dir.path()));
    assert_eq!(running.ready["pid"], running.child.id());
    assert_eq!(running.ready["socket"], Value::Null);
    assert!(running.text("url").starts_with("http://127.0.0.1:"));
    let token_file = running.text("token_file").to_owned();
    let port = running.text("url").rsplit(':').next().unwrap();
    assert_eq!(Path::new(&token_file), dir.path().join("filectx").join(format!("{port}.token")));
    assert_eq!(fs::metadata(&token_file).unwrap().mode() & 0o7777, 0o600);
    assert_eq!(fs::metadata(dir.path().join("filectx")).unwrap().mode() & 0o7777, 0o700);
    let token = fs::read_to_string(&token_file).unwrap();
    let info = running.get("/v1/info");
    assert!(info.contains(running.text("instance_id")) && info.starts_with("HTTP/1.1 200 "));
    let (status, log) = running.stop();
    assert!(status.success());
    assert!(!Path::new(&token_file).exists(), "a token that opens nothing is not left behind");
    assert!(
        log.contains("no --root") && log.contains("operation=\"info\"") && !log.contains(token.trim()),
        "{log}"
    );
}

#[test]
fn it_listens_on_a_socket_for_its_own_user() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("own/filectxd.sock");
    let running = Running::start(filectxd(dir.path()).arg("--socket").arg(&socket).args(["--root", "/tmp"]));
    assert_eq!((&running.ready["url"], running.text("socket")), (&Value::Null, socket.to_str().unwrap()));
    assert_eq!(fs::metadata(&socket).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(socket.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
    assert!(running.get("/v1/info").contains("\"roots\":[\"/tmp\"]"));
    let second = fails(filectxd(dir.path()).arg("--socket").arg(&socket));
    assert!(second.contains("another service"), "{second}");
    let (status, log) = running.stop();
    assert!(status.success() && !log.contains("no --root"), "{log}");
    assert!(!socket.exists());
    // What a killed service leaves is no hindrance.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let again = Running::start(filectxd(dir.path()).arg("--socket").arg(&socket));
    assert!(again.stop().0.success());
}

#[test]
fn it_ends_for_want_of_requests() {
    let dir = tempfile::tempdir().unwrap();
    let mut running = Running::start(filectxd(dir.path()).args(["--idle-timeout", "1"]));
    let (status, log) = running.ended();
    assert!(status.success() && log.contains("--idle-timeout"), "{log}");
}

#[test]
fn it_takes_its_settings_from_flags_environment_and_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("filectxd.toml");
    fs::write(&file, "read-only = true\nlog-format = 'json'\n[limits]\nmax_files = 3\nmax_file_bytes = 3\n")
        .unwrap();
    let running = Running::start(
        filectxd(dir.path())
            .env("FILECTX_CONFIG", &file)
            .env("FILECTX_LIMIT_MAX_FILES", "2")
            .args(["--limit", "max_batch_bytes=1"]),
    );
    let info = running.get("/v1/info");
    for part in ["\"read_only\":true", "\"max_files\":2", "\"max_file_bytes\":3", "\"max_batch_bytes\":1"] {
        assert!(info.contains(part), "{part}: {info}");
    }
    let (_, log) = running.stop();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let request = lines.iter().find(|line| line["operation"] == "info").unwrap();
    assert_eq!(request["status"], 200);
    assert!(request["request_id"].is_string() && request["bytes"].as_u64() > Some(100), "{request}");
}

#[test]
fn it_does_not_start_where_it_should_not() {
    let dir = tempfile::tempdir().unwrap();
    let open = dir.path().join("open.token");
    fs::write(&open, "x").unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).unwrap();
    let shared = dir.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o755)).unwrap();
    let in_shared = shared.join("s");
    let cases: [(&[&str], &str); 9] = [
        (&["--listen", "0.0.0.0:0"], "127.0.0.1"),
        (&["--listen", "127.0.0.1"], "--listen"),
        (&["--token-file", open.to_str().unwrap()], "0644"),
        (&["--socket", in_shared.to_str().unwrap()], "0755"),
        (&["--root", "/no/such/directory"], "/no/such/directory"),
        (&["--root", "relative"], "absolute"),
        (&["--limit", "max_fils=1"], "max_fils"),
        (&["--config", "/no/such/file.toml"], "/no/such/file.toml"),
        (&["--socket", "/tmp/a/s", "--listen", "127.0.0.1:0"], "--listen"),
    ];
    for (arguments, said) in cases {
        let error = fails(filectxd(dir.path()).args(arguments));
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
    assert_eq!(fs::read_to_string(&open).unwrap(), "x");
}

#[test]
fn its_health_can_be_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    assert!(fails(filectxd(dir.path()).arg("healthcheck")).contains("no service answers"));
    let socket = dir.path().join("own/filectxd.sock");
    let on_port = Running::start(&mut filectxd(dir.path()));
    let on_socket = Running::start(filectxd(dir.path()).arg("--socket").arg(&socket));
    let well = |command: &mut Command| command.output().unwrap().status.success();
    assert!(well(filectxd(dir.path()).arg("healthcheck")), "found by its token file");
    let address = on_port.text("url").strip_prefix("http://").unwrap();
    assert!(well(filectxd(dir.path()).args(["--listen", address, "healthcheck"])));
    assert!(well(filectxd(dir.path()).env("FILECTX_SOCKET", &socket).arg("healthcheck")));
    let wrong = on_socket.text("token_file");
    let stranger =
        fails(filectxd(dir.path()).args(["--listen", address, "--token-file", wrong, "healthcheck"]));
    assert!(stranger.contains("another service"), "{stranger}");
    drop((on_port.stop(), on_socket.stop()));
    assert!(
        fails(filectxd(dir.path()).arg("--socket").arg(&socket).arg("healthcheck")).contains("filectxd.sock")
    );
}

#[test]
fn systemd_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("notify");
    let manager = UnixDatagram::bind(&place).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let hear = || {
        let mut heard = [0; 32];
        let n = manager.recv(&mut heard).unwrap();
        String::from_utf8_lossy(&heard[..n]).into_owned()
    };
    let running = Running::start(filectxd(dir.path()).env("NOTIFY_SOCKET", &place));
    assert_eq!(hear(), "READY=1");
    assert!(running.stop().0.success());
    assert_eq!(hear(), "STOPPING=1");
}

#[test]
fn a_socket_that_systemd_made_is_taken() {
    // What systemd does, in a shell: the descriptor is 3, and the process id is the one that the program keeps.
    let dir = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let program = filectxd(dir.path()).get_program().to_owned();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "export LISTEN_PID=$$; exec 3<&0 0</dev/null; exec \"$0\" \"$@\""]).arg(program);
    shell.env("XDG_RUNTIME_DIR", dir.path()).env("LISTEN_FDS", "1");
    shell.stdin(Stdio::from(std::os::fd::OwnedFd::from(listener)));
    let running = Running::start(&mut shell);
    assert_eq!(running.text("url"), format!("http://{address}"));
    assert!(running.get("/v1/info").starts_with("HTTP/1.1 200 "));
    assert!(running.stop().0.success());
}

#[test]
fn the_document_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let printed = filectxd(dir.path()).arg("openapi").output().unwrap();
    let document: Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert!(document["paths"]["/v1/read-file-context"]["post"].is_object());
}
