//! The command line over SSH where things go wrong: start-up files that misbehave, disks that are full, strangers on the
//! port, ways that are lost between two commands.
#![allow(clippy::panic, reason = "a test fails by a panic")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use filectx_tests::line::Line;
use filectx_tests::programs::signal;
use filectx_tests::sshd::{failed, host, printed, reads, text};

#[test]
fn noise_of_the_login_is_ignored() {
    let Some(host) = host("") else { return };
    host.write("home/.bashrc", "echo Welcome\necho begin-x >&2\nseq 1 20000\nprintf 'no line end'\n");
    reads(&host);
    let Some(host) = filectx_tests::sshd::host("DisableForwarding yes") else { return };
    host.write("home/.bashrc", "echo Welcome\nprintf 'no line end'\n");
    reads(&host);
}

#[test]
fn a_shell_that_ends_or_reads_is_named() {
    let Some(host) = host("") else { return };
    for startup in ["echo nologin for you\nexit 3\n", "cat >/dev/null\n"] {
        host.write("home/.bashrc", startup);
        let output = host.run(&["read", "~/a.txt"]);
        let said = failed(&output);
        assert!(said.contains("(probe)") && said.contains(".bashrc"), "{said}");
        assert!(!startup.contains("nologin") || said.contains("nologin for you"), "{said}");
    }
    std::fs::remove_file(host.path("home/.bashrc")).expect("it was there");
    reads(&host);
}

/// A small file system at this place of the host, as long as this lives.
struct Mounted(PathBuf);

impl Mounted {
    fn at(path: PathBuf, options: &str) -> Option<Self> {
        std::fs::create_dir_all(&path).expect("a directory");
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&path).status();
        let there = filectx_tests::require::has("mount", done.is_ok_and(|status| status.success()));
        there.then_some(Self(path))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_place_that_does_not_do_is_named_with_the_way_out() {
    for (options, expected) in [("noexec", "noexec"), ("size=1m", "full"), ("ro", "cannot be made|written")] {
        let Some(host) = host("") else { return };
        let Some(_mounted) = Mounted::at(host.path("home/.local/share"), options) else { return };
        let output = host.run(&["read", "~/a.txt"]);
        let said = failed(&output);
        let named = expected.split('|').any(|word| said.contains(word));
        assert!(named && said.contains("(install)") && said.contains("--remote-dir"), "{options}: {said}");
        let left = std::fs::read_dir(host.path("home/.local/share/filectx")).into_iter().flatten().count();
        assert_eq!(left, 0, "{options}");
        let elsewhere = host.path("home/elsewhere");
        let elsewhere = elsewhere.to_str().expect("UTF-8");
        assert!(printed(&host.run(&["--remote-dir", elsewhere, "read", "~/a.txt"])).contains("two"));
    }
}

#[test]
fn what_ssh_says_is_shown_with_the_step() {
    let Some(host) = host("") else { return };
    let output = host.run(&["--host", "no-such-host.invalid", "read", "/x"]);
    let said = failed(&output);
    assert!(said.contains("(resolve)") && said.contains("no-such-host.invalid"), "{said}");
    let output = host.run(&["--host=-oProxyCommand=touch /tmp/owned", "read", "/x"]);
    assert!(failed(&output).contains("(resolve)"));
    std::fs::write(host.path("user_key.pub"), "").expect("a file");
    let output = host.run(&["read", "/x"]);
    let said = failed(&output);
    assert!(
        said.contains("(authenticate)") && said.contains("Permission denied") && said.contains("ssh-add"),
        "{said}"
    );
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    host.reach_by(free.port());
    let output = host.run(&["read", "/x"]);
    let said = failed(&output);
    assert!(said.contains("(connect)") && said.contains("refused"), "{said}");
}

#[test]
fn a_lost_forward_or_service_is_made_anew() {
    let Some(host) = host("") else { return };
    reads(&host);
    // The service is killed.
    let before = host.services();
    signal(before[0], "KILL");
    reads(&host);
    assert_ne!(host.services(), before);
    // The connection is cut, and with it the forward.
    let sessions = host.sessions();
    for pid in &sessions {
        let _ = Command::new("kill").arg(pid.to_string()).stderr(Stdio::null()).status();
    }
    let after = host.services();
    reads(&host);
    assert_eq!(host.services(), after, "the service outlived the connection");
    printed(&host.run(&["edit", "~/a.txt", "--old", "two", "--new", "three"]));
}

#[test]
fn ssh_asks_by_the_program_of_the_users_choice_or_not_at_all() {
    let Some(host) = host("") else { return };
    let locked = Command::new("ssh-keygen")
        .args(["-q", "-p", "-P", "", "-N", "open sesame", "-f"])
        .arg(host.path("user_key"))
        .stdout(Stdio::null())
        .status();
    assert!(locked.is_ok_and(|status| status.success()), "ssh-keygen");
    let output = host.run(&["read", "~/a.txt"]);
    assert!(failed(&output).contains("(authenticate)"));
    let asker = host.write("asker", "#!/bin/sh\necho open sesame\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&asker, mode).expect("a mode");
    let mut command = host.filectx(&["read", "~/a.txt"]);
    command.env("SSH_ASKPASS", asker).env("SSH_ASKPASS_REQUIRE", "force");
    assert!(printed(&command.output().expect("it runs")).contains("two"));
}

/// Listens on this port, and gives what was said to it when it is asked.
fn stranger(port: u16) -> impl FnOnce() -> Vec<u8> {
    let listener = (0..2000)
        .find_map(|_| TcpListener::bind(("127.0.0.1", port)).inspect_err(|_| std::thread::yield_now()).ok())
        .expect("the port is free now");
    let (send, said) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let mut some = vec![0; 64 << 10];
            stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a limit");
            let read = stream.read(&mut some).unwrap_or(0);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n{\"status\":\"ok\"}");
            let _ = send.send(some[..read].to_vec());
        }
    });
    move || said.try_iter().flatten().collect()
}

#[test]
fn a_stranger_on_the_port_never_sees_the_token() {
    let Some(host) = host("") else { return };
    reads(&host);
    let (state, token) = host.state();
    let port: u16 =
        state["url"].as_str().and_then(|url| url.rsplit(':').next()?.parse().ok()).expect("a port");
    signal(host.services()[0], "KILL");
    let heard = stranger(port);
    reads(&host);
    let heard = heard();
    assert!(!heard.is_empty(), "the stranger was asked for a proof");
    assert!(!text(&heard).contains(&token), "and heard no token");
}

#[test]
fn a_slow_line_changes_nothing() {
    let Some(host) = host("") else { return };
    let line = Line::to(host.port, Duration::from_millis(20));
    host.reach_by(line.port);
    reads(&host);
    line.cut();
    reads(&host);
}
