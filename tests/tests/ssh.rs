//! Over SSH, against a real `sshd`: first contact and second, hosts that allow little, start-up files that misbehave, ways
//! that break.
#![allow(clippy::panic, reason = "a test fails by a panic")]

use std::process::Output;

use filectx_tests::sshd::{self, Host};

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

#[track_caller]
fn printed(output: &Output) -> &str {
    assert_eq!(output.status.code(), Some(0), "{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn first_contact_installs_and_second_contact_reuses() {
    if !sshd::available() {
        return;
    }
    let host = Host::start("");
    let file = host.write("home/a.txt", "one\ntwo\n");
    let file = file.to_str().expect("UTF-8");
    assert!(printed(&host.run(&["read", file])).contains("two"));
    let services = host.services();
    assert_eq!(services.len(), 1, "one service was started");
    let sessions = host.sessions();
    assert!(printed(&host.run(&["read", "~/a.txt:2"])).contains("two"), "the home is the user's");
    assert_eq!(host.services(), services);
    assert_eq!(host.sessions(), sessions, "the connection is the same");
    // A relative path has no directory there, and says so.
    assert_eq!(host.run(&["read", "a.txt"]).status.code(), Some(1));
}
