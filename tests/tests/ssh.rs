//! The command line over SSH, against a real `sshd`: first contact and second, programs and fences, forwards, connections
//! that are shared. What goes wrong is in `ssh_trouble.rs`, ways that break under a session in `hosts.rs`.
#![allow(clippy::panic, reason = "a test fails by a panic")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use filectx_tests::programs::signal;
use filectx_tests::sshd::{Host, failed, host, printed, reads, text, to_bring};
use serde_json::Value;

/// The kind of forward to the host, and what is known of it.
fn known(host: &Host) -> Value {
    let output = host.run(&["hosts", "--json"]);
    let answer: Value = serde_json::from_str(printed(&output)).expect("JSON");
    answer["hosts"][0].clone()
}

#[test]
fn first_contact_installs_and_second_contact_reuses() {
    let Some(host) = host("") else { return };
    reads(&host);
    let services = host.services();
    assert_eq!(services.len(), 1, "one service was started");
    let sessions = host.sessions();
    reads(&host);
    assert_eq!(host.services(), services);
    assert_eq!(host.sessions(), sessions, "the connection is the same");
    // A relative path has no directory there, and says so.
    assert_eq!(host.run(&["read", "a.txt"]).status.code(), Some(1));
    let place = host.path("home/.local/share/filectx");
    assert_eq!(std::fs::read_dir(place).expect("installed").count(), 1, "nothing else is left there");
}

#[test]
fn every_command_works_there() {
    let Some(host) = host("") else { return };
    let mut write = host
        .filectx(&["write", "~/b.txt"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("runs");
    write.stdin.take().expect("stdin").write_all(b"alpha\nbeta\n").expect("content");
    assert!(write.wait().expect("it ends").success());
    printed(&host.run(&["edit", "~/b.txt", "--old", "beta", "--new", "gamma"]));
    assert_eq!(std::fs::read_to_string(host.path("home/b.txt")).expect("a file"), "alpha\ngamma\n");
    let mode = |name: &str| {
        let meta = std::fs::metadata(host.path(name)).expect("a file");
        std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o777
    };
    assert_eq!(mode("home/b.txt"), mode("home/a.txt"), "a new file is as the user's other programs make it");
    let home = host.path("home");
    let home = home.to_str().expect("UTF-8");
    assert!(printed(&host.run(&["ls", home])).contains("b.txt"));
    assert!(printed(&host.run(&["find", "gamma", home])).contains("b.txt"));
    assert!(printed(&host.run(&["paths", "b.txt", home])).contains("b.txt"));
    printed(&host.run(&["rm", "~/b.txt"]));
    assert!(!host.path("home/b.txt").exists());
    assert!(printed(&host.run(&["info"])).contains("filectxd"));
}

#[test]
fn another_program_gets_a_service_of_its_own_and_ends_nobodys() {
    let Some(host) = host("") else { return };
    reads(&host);
    let before = host.services();
    // What follows a program's end does not change what it does, but its hash.
    let mut newer = std::fs::read(to_bring()).expect("a program");
    newer.extend_from_slice(b"newer");
    let path = host.path("newer");
    std::fs::write(&path, newer).expect("a program");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode).expect("a mode");
    printed(&host.run(&["disconnect"]));
    let read = |program: &PathBuf| {
        let mut command = Command::new(filectx_tests::programs::program("filectx"));
        let base = host.filectx(&[]);
        for (name, value) in base.get_envs() {
            value.map(|value| command.env(name, value));
        }
        printed(&command.arg("--filectxd").arg(program).args(["read", "~/a.txt"]).output().expect("runs"))
            .to_owned()
    };
    assert!(read(&path).contains("two"));
    let both = host.services();
    assert!(both.len() == 2 && both.contains(&before[0]), "{before:?} {both:?}");
    printed(&host.run(&["disconnect"]));
    reads(&host);
    assert_eq!(host.services().len(), 2, "the first program's service is found again");
}

#[test]
fn a_new_program_takes_the_place_of_what_nobody_has_brought_for_a_month() {
    let Some(host) = host("") else { return };
    let day = std::time::Duration::from_secs(86_400);
    let names: [(&str, u32); 6] = [
        ("filectxd-0.0.1-0123456789ab", 40),
        (".filectxd.1.new", 3),
        ("filectxd-0.0.2-0123456789ab", 20),
        ("filectxd-linux-x86_64", 400),
        ("below/filectxd-0.0.1-0123456789ab", 40),
        ("below/.filectxd.1.new", 3),
    ];
    for (name, days) in names {
        let path = host.write(&format!("home/.local/share/filectx/{name}"), "old");
        let then = std::time::SystemTime::now() - day * days;
        std::fs::File::options()
            .append(true)
            .open(path)
            .and_then(|file| file.set_modified(then))
            .expect("a time");
    }
    reads(&host);
    let there = names.map(|(name, _)| host.path(&format!("home/.local/share/filectx/{name}")).exists());
    let why = "old programs and pieces of them go; those of this month, what has another name, and what lies below stay";
    assert_eq!(there, [false, false, true, true, true, true], "{why}");
}

#[test]
fn fences_have_a_service_of_their_own() {
    let Some(host) = host("") else { return };
    host.write("home/src/in.txt", "inside\n");
    reads(&host);
    let root = host.path("home/src");
    let root = root.to_str().expect("UTF-8");
    let fenced = ["--root", root, "--read-only"];
    assert!(printed(&host.run(&[&fenced[..], &["read", "~/src/in.txt"]].concat())).contains("inside"));
    let output = host.run(&[&fenced[..], &["read", "~/a.txt"]].concat());
    assert!(text(&output.stderr).contains("outside_roots"), "{}", text(&output.stderr));
    let output = host.run(&[&fenced[..], &["rm", "~/src/in.txt"]].concat());
    assert!(text(&output.stderr).contains("read_only"), "{}", text(&output.stderr));
    assert_eq!(host.services().len(), 2);
}

#[test]
fn the_first_forward_that_a_host_allows_is_taken() {
    for (config, kind) in [
        ("", "port"),
        ("AllowStreamLocalForwarding no", "port"),
        // OpenSSH's server takes this as a word on sockets too.
        ("AllowTcpForwarding no", "relay"),
        ("AllowTcpForwarding no\nAllowStreamLocalForwarding no", "relay"),
        ("DisableForwarding yes", "relay"),
    ] {
        let Some(host) = host(config) else { return };
        reads(&host);
        reads(&host);
        let known = known(&host);
        assert_eq!(
            (known["forward"].as_str(), known["connected"].as_bool()),
            (Some(kind), Some(true)),
            "{config}"
        );
        assert_eq!(host.services().len(), 1, "{config}");
    }
}

#[test]
fn a_kind_of_forward_can_be_chosen() {
    let Some(host) = host("") else { return };
    for kind in ["socket", "relay", "port", "auto"] {
        let output = host.run(&["--forward", kind, "read", "~/a.txt"]);
        assert!(printed(&output).contains("two"), "{kind}");
    }
    let known = host.run(&["hosts"]);
    let known = printed(&known);
    assert!(["socket", "relay", "port"].iter().all(|kind| known.contains(kind)), "{known}");
    assert_eq!(host.services().len(), 1, "one service behind all of them");
    let Some(host) = filectx_tests::sshd::host("AllowTcpForwarding no") else { return };
    let output = host.run(&["--forward", "port", "read", "~/a.txt"]);
    let said = failed(&output);
    assert!(said.contains("(forward)") && said.contains("--forward auto"), "{said}");
}

#[test]
fn one_session_at_a_time_is_enough() {
    let Some(host) = host("MaxSessions 1") else { return };
    reads(&host);
    reads(&host);
    let Some(host) = filectx_tests::sshd::host("MaxSessions 1\nDisableForwarding yes") else { return };
    reads(&host);
}

#[test]
fn two_clients_at_once_share_a_service() {
    let Some(host) = host("") else { return };
    // Two of one agent's side, and one from a side of its own.
    std::fs::create_dir(host.path("other")).expect("a directory");
    let start = |side: &str| {
        let mut command = host.filectx(&["read", "~/a.txt"]);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(host.path(side), mode).expect("a mode");
        command
            .env("XDG_RUNTIME_DIR", host.path(side))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("runs")
    };
    let clients = ["agent", "agent", "other"].map(start);
    for client in clients {
        assert!(printed(&client.wait_with_output().expect("it ends")).contains("two"));
    }
    assert_eq!(host.services().len(), 1);
}

#[test]
fn a_connection_of_the_users_is_used_and_left_alone() {
    let Some(host) = host("MaxSessions 1") else { return };
    let socket = host.path("agent/own");
    let config = format!(
        "{} ControlPath {}\n",
        std::fs::read_to_string(host.path("ssh_config")).expect("a file"),
        socket.display()
    );
    host.write("ssh_config", &config);
    let ssh = |args: &[&str]| {
        Command::new(host.path("ssh")).args(args).stdin(Stdio::null()).output().expect("ssh runs")
    };
    assert!(ssh(&["-M", "-N", "-f", "-o", "ControlPersist=60", "host"]).status.success());
    let sessions = host.sessions();
    reads(&host);
    let other = |pid: &u32| !sessions.contains(pid);
    assert!(!host.sessions().iter().any(other), "no other connection was made");
    printed(&host.run(&["disconnect"]));
    assert!(ssh(&["-O", "check", "host"]).status.success(), "it is still there");
    reads(&host);
    assert!(ssh(&["-O", "exit", "host"]).status.success());
    reads(&host);
}

/// A command that stays, but not longer than its test.
struct Staying(std::process::Child);

impl Drop for Staying {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn connect_stays_and_says_how_to_get_there() {
    let Some(host) = host("") else { return };
    let staying = host.filectx(&["connect", "host", "--json"]).stdout(Stdio::piped()).spawn();
    let mut staying = Staying(staying.expect("runs"));
    let mut line = String::new();
    let mut lines = BufReader::new(staying.0.stdout.take().expect("stdout"));
    lines.read_line(&mut line).expect("a line");
    let said: Value = serde_json::from_str(&line).expect("JSON");
    let token = std::fs::read_to_string(said["token_file"].as_str().expect("a file")).expect("a token");
    let address = said["url"].as_str().and_then(|url| url.strip_prefix("http://")).expect("a URL");
    let mut stream = TcpStream::connect(address).expect("it forwards");
    write!(
        stream,
        "GET /v1/info HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n",
        token.trim()
    )
    .expect("asked");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("filectxd"), "{answer}");
    assert!(
        said["curl"]
            .as_str()
            .is_some_and(|curl| curl.contains("Bearer $(cat") && !curl.contains(token.trim()))
    );
    assert_eq!(said["docs"].as_str(), Some(format!("http://{address}/docs/").as_str()));
    let sessions = host.sessions();
    reads(&host);
    assert_eq!(host.sessions(), sessions, "other commands use the connection");
    assert_eq!(known(&host)["host"], "host");
    // The service is lost, and there again at the same address.
    signal(host.services()[0], "KILL");
    reads(&host);
    let mut line = String::new();
    lines.read_line(&mut line).expect("it says so");
    let again: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!((&again["url"], &again["token_file"]), (&said["url"], &said["token_file"]));
    let new_token = std::fs::read_to_string(said["token_file"].as_str().expect("a file")).expect("a token");
    assert_ne!(new_token, token);
    signal(staying.0.id(), "TERM");
    assert_eq!(staying.0.wait().expect("it ends").code(), Some(0));
    assert_eq!(known(&host), Value::Null, "what it began has ended");
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn install_and_disconnect_say_what_they_did() {
    let Some(host) = host("") else { return };
    let output = host.run(&["install", "host", "--json"]);
    let said: Value = serde_json::from_str(printed(&output)).expect("JSON");
    assert!(said["program"].as_str().is_some_and(|path| std::path::Path::new(path).is_file()), "{said}");
    assert_eq!(host.services().len(), 0);
    let was = |host: &Host| {
        let output = host.run(&["disconnect", "--json"]);
        serde_json::from_str::<Value>(printed(&output)).expect("JSON")["was_connected"].clone()
    };
    assert_eq!(was(&host), true);
    assert_eq!(was(&host), false);
    assert_eq!(host.sessions().len(), 0);
}
