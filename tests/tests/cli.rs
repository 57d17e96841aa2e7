//! The command line as a person and a script meet it: embedded and against a service, with equal output.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use filectx_tests::programs::{self, Service};

struct Place {
    dir: tempfile::TempDir,
    service: Option<Service>,
}

impl Place {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        for (name, content) in files {
            std::fs::write(dir.path().join(name), content).expect("a file");
        }
        Self { dir, service: None }
    }

    fn served(mut self) -> Self {
        self.service = Some(Service::start(&[]));
        self
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(programs::program("filectx"));
        command.args(args).current_dir(self.path()).stdin(Stdio::null());
        for name in ["FILECTX_URL", "FILECTX_TOKEN_FILE", "FILECTX_SOCKET"] {
            command.env_remove(name);
        }
        if let Some(service) = &self.service {
            command.env("FILECTX_URL", service.url()).env("FILECTX_TOKEN_FILE", &service.ready.token_file);
        }
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("filectx runs")
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

#[test]
fn embedded_and_served_say_the_same() {
    let files: &[(&str, &[u8])] =
        &[("a.txt", b"one\ntwo\nthree\n"), ("b:7", b"colon\n"), ("bin", b"\x7fELF\0\0\0\0")];
    let embedded = Place::new(files);
    let served = Place::new(files).served();
    for args in [
        &["read", "a.txt"][..],
        &["read", "a.txt:2-3", "b:7", "gone", "bin"],
        &["read", "a.txt:2", "--limit", "1"],
        &["read", "a.txt:1,3"],
        &["read", "--raw", "a.txt"],
        &["read", "--max-chars", "6", "a.txt"],
        &["read", "a.txt:3-1"],
    ] {
        let here = embedded.run(args);
        // A relative path on a host needs a directory there.
        let cwd = served.path().to_str().expect("UTF-8");
        let there = served.run(&[args, &["--cwd", cwd]].concat());
        let same = |bytes: &[u8]| {
            text(bytes)
                .replace(served.path().to_str().unwrap(), "$DIR")
                .replace(embedded.path().to_str().unwrap(), "$DIR")
        };
        assert_eq!(
            here.status.code(),
            there.status.code(),
            "{args:?}\n{}\n{}",
            text(&here.stderr),
            text(&there.stderr)
        );
        assert_eq!(
            same(&here.stdout).replace(" --cwd $DIR", ""),
            same(&there.stdout).replace(" --cwd $DIR", ""),
            "{args:?}"
        );
    }
}

#[test]
fn lines_are_numbered_and_failures_go_to_stderr() {
    let place = Place::new(&[("a.txt", b"one\ntwo\n")]);
    let output = place.run(&["read", "a.txt", "gone"]);
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output.stdout);
    assert!(
        shown.contains("1\u{2192}one")
            || shown.lines().any(|line| line.trim_start().starts_with('1') && line.ends_with("one")),
        "{shown}"
    );
    assert!(
        text(&output.stderr).contains("gone") && text(&output.stderr).contains("(not_found)"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn raw_gives_the_exact_bytes_whatever_their_number() {
    let mut content = vec![0u8; 3_000_000];
    content.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i * 7 % 251) as u8);
    for place in [Place::new(&[("f", &content)]), Place::new(&[("f", &content)]).served()] {
        let path = place.path().join("f");
        let output = place.run(&["read", "--raw", path.to_str().expect("UTF-8")]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(output.stdout == content, "{} bytes came", output.stdout.len());
    }
}

#[test]
fn json_is_the_contracts_answer() {
    let place = Place::new(&[("a.txt", b"one\ntwo\n")]);
    let output = place.run(&["read", "--json", "a.txt:2"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["file_contexts"][0]["text_content"], "two\n");
    assert_eq!(answer["failed_files"], serde_json::json!([]));
}

#[test]
fn a_request_that_fails_ends_with_two() {
    let place =
        Place::new(&[("token", b"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n")]);
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(place.path().join("token"), std::fs::Permissions::from_mode(0o600))
        .expect("a mode");
    // Nobody listens on the port that was just closed.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a port")
        .port();
    let url = format!("http://127.0.0.1:{port}");
    let output = place.run(&["read", "/etc/passwd", "--url", &url, "--token-file", "token"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains(&port.to_string()), "{}", text(&output.stderr));
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let place = Place::new(&[("f", &b"line\n".repeat(200_000))]);
    let mut child = place
        .command(&["read", "--raw", "f"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("filectx runs");
    drop(child.stdout.take());
    let stderr = programs::drain(child.stderr.take().expect("stderr is piped"));
    child.wait().expect("it ends");
    assert_eq!(stderr, "");
}

#[test]
fn proxies_are_not_asked_for_loopback() {
    let place = Place::new(&[("a.txt", b"one\n")]).served();
    let mut command = place.command(&["info"]);
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env(name, "http://127.0.0.1:9");
    }
    let output = command.output().expect("filectx runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("filectxd"), "{}", text(&output.stdout));
}

/// A grey PNG of 2 x 1 pixels.
fn png() -> Vec<u8> {
    filectx_tests::png::grey(2, 1, &[0, 10, 200])
}

#[test]
fn binaries_and_images_become_files() {
    for served in [false, true] {
        let mut place = Place::new(&[("a.txt", b"one\n"), ("bin", b"\x7fELF\0\0\0\0"), ("icon", &png())]);
        if served {
            place = place.served();
        }
        let cwd = place.path().to_str().expect("UTF-8").to_owned();
        let read = |flags: &[&str]| {
            let paths = ["a.txt", "bin", "icon", "bin"];
            place.run(&[&["read", "--cwd", &cwd, "--save-dir", "saved"][..], &paths, flags].concat())
        };
        let output = read(&[]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        for (line, name) in text(&output.stderr).lines().zip(["bin", "icon.png", "bin-2"]) {
            assert!(line.starts_with(&format!("saved saved/{name} (")), "{line}");
        }
        assert!(text(&output.stdout).contains("one") && text(&output.stdout).contains("[image: image/png"));
        let file = |name: &str| std::fs::read(place.path().join("saved").join(name)).expect("it was saved");
        assert!(file("bin-2") == b"\x7fELF\0\0\0\0" && file("icon.png") == png());
        let answer: serde_json::Value = serde_json::from_slice(&read(&["--json"]).stdout).expect("JSON");
        assert_eq!(answer["file_contexts"][2]["saved_to"], "saved/icon-2.png");
        assert!(answer["file_contexts"][2].get("binary_content").is_none());
    }
}

/// Runs `filectx` on a terminal of its own that answers `answer` to whatever it is asked; what that showed.
fn on_a_terminal(place: &Place, args: &str, environment: &[(&str, &str)], answer: &[u8]) -> Option<String> {
    use std::io::Write as _;
    if !filectx_tests::require::program("script") {
        return None;
    }
    let command = format!("{} {args}", programs::program("filectx").display());
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &command, "/dev/null"]).current_dir(place.path());
    for name in [
        "FILECTX_URL",
        "FILECTX_SOCKET",
        "TMUX",
        "STY",
        "KITTY_WINDOW_ID",
        "TERM_PROGRAM",
        "LC_TERMINAL",
        "NO_COLOR",
    ] {
        script.env_remove(name);
    }
    script.env("TERM", "xterm-256color").envs(environment.iter().copied());
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script runs");
    let mut input = child.stdin.take().expect("stdin is piped");
    input.write_all(answer).expect("the terminal listens");
    let output = child.wait_with_output().expect("it ends");
    drop(input);
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn terminals_that_can_show_pictures_do() {
    let place = Place::new(&[("icon.png", &png())]);
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a [u8], &'a str);
    let cases: [Case<'_>; 3] = [
        (&[("KITTY_WINDOW_ID", "1")], b"", "\x1b_Ga=T,q=2,f=100,m=0;"),
        (&[("TERM_PROGRAM", "WezTerm")], b"", "\x1b]1337;File=inline=1;size="),
        (&[], b"\x1b[?62;4c", "\x1bP0;1q\"1;1;2;1#"),
    ];
    for (environment, answer, expect) in cases {
        let Some(shown) = on_a_terminal(&place, "read icon.png", environment, answer) else { return };
        assert!(shown.contains("[image: image/png, 2x1 pixels"), "{shown:?}");
        assert!(shown.contains(expect), "{expect:?} in {shown:?}");
    }
    let cases: [Case<'_>; 2] = [(&[("TERM", "dumb")], b"", ""), (&[], b"\x1b[?62;9c", "")];
    for (environment, answer, _) in cases {
        let Some(shown) = on_a_terminal(&place, "read icon.png", environment, answer) else { return };
        assert!(shown.contains("[image: image/png, 2x1 pixels"), "{shown:?}");
        assert!(
            !shown.contains("\x1b_G") && !shown.contains("\x1bP") && !shown.contains("\x1b]"),
            "{shown:?}"
        );
    }
}
