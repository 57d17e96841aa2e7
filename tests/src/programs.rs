//! The programs under test: built once, started on a port or socket of their own, awaited by their ready line, ended
//! by their pid.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::OnceLock;

use filectx_client::{Client, Target, Token};
use serde::Deserialize;

use crate::repo;

/// The path of the program `name`, built now unless `FILECTX_PROGRAMS` names the directory where it is.
pub fn program(name: &str) -> PathBuf {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(directory).join(name)
}

fn directory() -> PathBuf {
    if let Some(built) = std::env::var_os("FILECTX_PROGRAMS") {
        return repo::root().join(built);
    }
    // Tests lie in target/PROFILE/deps.
    let own = std::env::current_exe().expect("a test has a path");
    let profile = own.parent().and_then(Path::parent).expect("a test lies in target/PROFILE/deps").to_owned();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "build",
        "--quiet",
        "--locked",
        "--package=filectx-service",
        "--package=filectx-client",
        "--bins",
    ]);
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let status = cargo.current_dir(repo::root()).status().expect("cargo runs");
    assert!(status.success(), "the programs do not build");
    profile
}

/// What `filectxd --ready-json` says.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs, reason = "as the contract has them")]
pub struct Ready {
    pub url: Option<String>,
    pub token_file: PathBuf,
    pub socket: Option<PathBuf>,
    pub pid: u32,
    pub version: String,
    pub instance_id: String,
}

/// A running `filectxd`, ended when dropped.
#[derive(Debug)]
pub struct Service {
    child: Child,
    /// Its ready line.
    pub ready: Ready,
    /// The token that it asks for.
    pub token: String,
    private: tempfile::TempDir,
}

impl Service {
    /// Starts `filectxd` with `args` on a free port of 127.0.0.1, or on a socket where the args say so.
    pub fn start(args: &[&str]) -> Self {
        Self::start_by(&[], args)
    }

    /// [`start`](Self::start) by way of another command, which ends by becoming the program that is named behind it.
    pub fn start_by(wrapper: &[&str], args: &[&str]) -> Self {
        let private = tempfile::tempdir().expect("a directory");
        let mut words = wrapper.iter().map(PathBuf::from).chain([program("filectxd")]);
        let mut command = Command::new(words.next().expect("the program at least"));
        command.args(words);
        command.arg("--ready-json").args(args).arg("--token-file").arg(private.path().join("token"));
        if !args.iter().any(|arg| arg.starts_with("--listen") || arg.starts_with("--socket")) {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let log = std::fs::File::create(private.path().join("log")).expect("a log");
        let mut child = command
            .env("XDG_RUNTIME_DIR", private.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("filectxd starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("stdout is piped");
        BufReader::new(stdout).read_line(&mut line).expect("a ready line");
        let log = || std::fs::read_to_string(private.path().join("log")).unwrap_or_default();
        let ready: Ready =
            serde_json::from_str(&line).unwrap_or_else(|e| panic!("ready line {line:?}: {e}; {}", log()));
        let token = std::fs::read_to_string(&ready.token_file).expect("a token").trim().to_owned();
        Self { child, ready, token, private }
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        self.ready.url.as_deref().expect("it listens on a port")
    }

    /// A client of it.
    pub fn client(&self) -> Client {
        let target = Target::from_url(self.url()).expect("a URL");
        Client::builder(target).token(Token::new(&self.token).expect("a token")).build().expect("a client")
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.private.path().join("log")).expect("the log is readable")
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end (SIGTERM) and gives its exit status.
    pub fn terminate(mut self) -> Option<i32> {
        signal(self.child.id(), "TERM");
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process by its pid.
pub fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).status();
    assert!(status.is_ok_and(|status| status.success()), "kill -{name} {pid}");
}

/// All that a child says on stderr.
pub fn drain(mut stderr: ChildStderr) -> String {
    let mut text = String::new();
    let _ = stderr.read_to_string(&mut text);
    text
}
