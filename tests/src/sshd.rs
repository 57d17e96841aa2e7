//! A host for tests: a real `sshd` on a free port of 127.0.0.1 with keys, configuration and a home of its own, and the
//! agent's side beside it: an `ssh` that knows it, and a runtime directory. All of it ends with its test.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use filectx_client::ssh::{HostOptions, Place};

use crate::programs::{program, signal};

/// The program of OpenSSH's server, which no user has on the path.
const SSHD: &str = "/usr/sbin/sshd";

/// Whether this machine can have hosts: sshd takes root to become its users.
pub fn available() -> bool {
    let root =
        std::fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
    let there = Path::new(SSHD).is_file() && crate::require::program("ssh") && root;
    crate::require::has("sshd", there)
}

/// A host, reached as `host`.
#[derive(Debug)]
pub struct Host {
    sshd: Child,
    /// Its port.
    pub port: u16,
    dir: tempfile::TempDir,
}

impl Host {
    /// A host whose `sshd_config` has these lines besides.
    pub fn start(config: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("fx").tempdir().expect("a directory");
        for name in ["home", "run", "agent"] {
            std::fs::create_dir(dir.path().join(name)).expect("a directory");
        }
        for (name, mode) in [("run", 0o700), ("agent", 0o700)] {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(dir.path().join(name), mode).expect("a mode");
        }
        for key in ["host_key", "user_key"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(dir.path().join(key))
                .status();
            assert!(made.is_ok_and(|status| status.success()), "ssh-keygen");
        }
        let _ = std::fs::create_dir("/run/sshd");
        let (sshd, port) = (0..5).find_map(|_| try_start(dir.path(), config)).expect("sshd starts");
        let host = Self { sshd, port, dir };
        host.reach_by(port);
        host
    }

    /// Lets `ssh host` go to this port of 127.0.0.1: the host's own, or that of a line in between.
    pub fn reach_by(&self, port: u16) {
        let dir = self.dir.path().display();
        let known = format!(
            "Host host\n HostName 127.0.0.1\n Port {port}\n User root\n IdentityFile {dir}/user_key\n IdentitiesOnly yes\n \
             UserKnownHostsFile {dir}/known_hosts\n StrictHostKeyChecking accept-new\n LogLevel ERROR\n"
        );
        std::fs::write(self.path("ssh_config"), known).expect("a file");
        self.write("ssh", &format!("#!/bin/sh\nexec /usr/bin/ssh -F {dir}/ssh_config \"$@\"\n"));
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(self.path("ssh"), mode).expect("a mode");
    }

    /// A path below the host's directory: `home/...` is the user's there, `run/...` its runtime directory, `agent/...` the
    /// runtime directory on this side.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file below the host's directory.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("parents");
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// `filectx` as the agent runs it, with the host named in the environment.
    pub fn filectx(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program("filectx"));
        for name in ["FILECTX_URL", "FILECTX_TOKEN_FILE", "FILECTX_SOCKET", "SSH_ASKPASS", "DISPLAY"] {
            command.env_remove(name);
        }
        command
            .arg("--filectxd")
            .arg(to_bring())
            .args(args)
            .env("FILECTX_HOST", "host")
            .env("FILECTX_SSH", self.path("ssh"))
            .env("XDG_RUNTIME_DIR", self.path("agent"))
            .stdin(Stdio::null());
        command
    }

    /// Runs `filectx` to its end.
    pub fn run(&self, args: &[&str]) -> Output {
        self.filectx(args).output().expect("filectx runs")
    }

    /// The process ids of the services that run, by what they said when they started.
    pub fn services(&self) -> Vec<u32> {
        let entries = std::fs::read_dir(self.path("run/filectx")).into_iter().flatten().flatten();
        let states = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("ssh-"));
        let texts = states.filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
        let pid = |text: String| {
            let ready: serde_json::Value = serde_json::from_str(text.lines().nth(1)?).ok()?;
            u32::try_from(ready["pid"].as_u64()?).ok()
        };
        texts.filter_map(pid).filter(|pid| Path::new(&format!("/proc/{pid}/exe")).exists()).collect()
    }

    /// What the service that was started last said, and its token.
    pub fn state(&self) -> (serde_json::Value, String) {
        let entries = std::fs::read_dir(self.path("run/filectx")).into_iter().flatten().flatten();
        let state = entries.map(|entry| entry.path()).find(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ssh-")) && path.is_file()
        });
        let text = std::fs::read_to_string(state.expect("a service was started")).expect("a state");
        let ready: serde_json::Value =
            serde_json::from_str(text.lines().nth(1).expect("a ready line")).expect("JSON");
        let token = std::fs::read_to_string(ready["token_file"].as_str().expect("a file")).expect("a token");
        (ready, token.trim().to_owned())
    }

    /// The library's options for this host.
    pub fn options(&self) -> HostOptions {
        let mut options = HostOptions::new("host");
        options.ssh = self.path("ssh").into_os_string();
        options.program = Some(to_bring());
        options
    }

    /// A place for the library on the agent's side.
    pub fn place(&self) -> Place {
        Place::of_process_below(&self.path("agent")).expect("a place")
    }

    /// A port of this side that leads to `port` of the host's 127.0.0.1, as `ssh -L` makes it.
    pub fn forward(&self, port: u16) -> Forward {
        (0..5).find_map(|_| Forward::try_start(self, port)).expect("ssh forwards")
    }

    /// The processes of sshd for the connections that are there, without the one that listens.
    pub fn sessions(&self) -> Vec<u32> {
        descendants(self.sshd.id())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for pid in self.services() {
            signal(pid, "KILL");
        }
        for pid in self.sessions() {
            let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status();
        }
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
    }
}

/// A port that leads to one of the host's, as long as this lives.
#[derive(Debug)]
pub struct Forward {
    ssh: Child,
    /// The port on this side.
    pub port: u16,
}

impl Forward {
    fn try_start(host: &Host, to: u16) -> Option<Self> {
        let port = free_port()?;
        let mut ssh = Command::new(host.path("ssh"))
            .args(["-N", "-L", &format!("127.0.0.1:{port}:127.0.0.1:{to}")])
            .args(["-o", "ExitOnForwardFailure=yes", "-o", "PermitLocalCommand=yes"])
            // It is run once the forward stands.
            .args(["-o", "LocalCommand=echo forwarded", "host"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("ssh runs");
        let mut said = String::new();
        let stdout = ssh.stdout.take().expect("stdout is piped");
        let _ = BufReader::new(stdout).read_line(&mut said);
        if said.trim() == "forwarded" {
            return Some(Self { ssh, port });
        }
        let _ = ssh.kill();
        let _ = ssh.wait();
        None
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        let _ = self.ssh.kill();
        let _ = self.ssh.wait();
    }
}

/// A port of 127.0.0.1 for a program that takes no port 0: what is free now is most likely free in a moment.
fn free_port() -> Option<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    Some(listener.ok()?.port())
}

/// A `filectxd` without what only a debugger wants: it is sent often.
pub fn to_bring() -> PathBuf {
    let whole = program("filectxd");
    let stripped = whole.with_file_name("filectxd.stripped");
    let changed = |path: &Path| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
    if changed(&stripped) < changed(&whole) {
        // Tests that run side by side, processes or threads, may all do this; each puts a whole one in place.
        let own = (std::process::id(), std::thread::current().id());
        let new = whole.with_file_name(format!("filectxd.{}.{:?}.new", own.0, own.1));
        let done = Command::new("strip").arg("-o").arg(&new).arg(&whole).status();
        assert!(done.is_ok_and(|status| status.success()), "strip");
        std::fs::rename(new, &stripped).expect("the program takes its place");
    }
    stripped
}

/// All processes below this one.
fn descendants(pid: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
    children.flat_map(|child: u32| std::iter::once(child).chain(descendants(child))).collect()
}

fn try_start(dir: &Path, config: &str) -> Option<(Child, u16)> {
    let port = free_port()?;
    let own = dir.display();
    let text = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {own}/host_key\nAuthorizedKeysFile {own}/user_key.pub\n\
         StrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile none\nMaxStartups 100\nSubsystem sftp internal-sftp\n\
         SetEnv HOME={own}/home XDG_RUNTIME_DIR={own}/run\n{config}\n"
    );
    std::fs::write(dir.join("sshd_config"), text).ok()?;
    let mut sshd = Command::new(SSHD)
        .args(["-D", "-e", "-f"])
        .arg(dir.join("sshd_config"))
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sshd runs");
    let mut lines = BufReader::new(sshd.stderr.take().expect("stderr is piped"));
    let mut line = String::new();
    while lines.read_line(&mut line).is_ok_and(|read| read > 0) {
        if line.contains("Server listening on") {
            // What it says later is read, and forgotten: it must not wait for a reader.
            std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
            return Some((sshd, port));
        }
    }
    let _ = sshd.wait();
    eprintln!("sshd: {line}");
    None
}

/// Output as text.
pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// What a command that did all printed.
#[track_caller]
pub fn printed(output: &Output) -> &str {
    assert_eq!(output.status.code(), Some(0), "{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// What a command that failed as a whole said.
#[track_caller]
pub fn failed(output: &Output) -> &str {
    assert_eq!(output.status.code(), Some(2), "{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stderr)
}

/// A host with a file, if this machine can have one.
pub fn host(config: &str) -> Option<Host> {
    available().then(|| {
        let host = Host::start(config);
        host.write("home/a.txt", "one\ntwo\n");
        host
    })
}

/// Reads the host's file.
#[track_caller]
pub fn reads(host: &Host) {
    assert!(printed(&host.run(&["read", "~/a.txt"])).contains("two"));
}
