//! What a test needs of its machine. Where it is missing the test says so and passes, unless `TESTS_REQUIRE` (names
//! apart by blanks; CI names all) asks for it: then it fails.

use std::process::{Command, Stdio};

/// Whether `tool` can be used: `there` tells. Says so on stderr when it cannot.
pub fn has(tool: &str, there: bool) -> bool {
    let required = std::env::var("TESTS_REQUIRE").unwrap_or_default();
    let asked = required.split_whitespace().any(|name| name == tool || name == "all");
    assert!(there || !asked, "TESTS_REQUIRE names {tool}, and it is not there");
    if !there {
        eprintln!("skipped: {tool} is not there (TESTS_REQUIRE={tool} makes this a failure)");
    }
    there
}

/// Whether the program `name` is on the path.
pub fn program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    has(name, std::env::split_paths(&path).any(|dir| dir.join(name).is_file()))
}

/// Whether file systems can be mounted in a namespace of one's own. That is a right and no tool, which a container may not
/// give even to root: `all` does not ask for it, `mounts` does.
pub fn mounts() -> bool {
    let tried = Command::new("unshare").args(["-m", "true"]).stderr(Stdio::null()).status();
    let there = tried.is_ok_and(|status| status.success());
    let required = std::env::var("TESTS_REQUIRE").unwrap_or_default();
    let asked = required.split_whitespace().any(|name| name == "mounts");
    assert!(there || !asked, "TESTS_REQUIRE names mounts, and they are not allowed");
    if !there {
        eprintln!("skipped: mounts are not allowed (TESTS_REQUIRE=mounts makes this a failure)");
    }
    there
}

/// Debian's Python, which sees Debian's modules; where `module` is there.
pub fn python(module: &str) -> Option<&'static str> {
    const PYTHON: &str = "/usr/bin/python3";
    let import =
        Command::new(PYTHON).arg("-c").arg(format!("import {module}")).stderr(Stdio::null()).status();
    has(module, import.is_ok_and(|status| status.success())).then_some(PYTHON)
}
