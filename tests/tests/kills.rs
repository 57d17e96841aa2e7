//! The service killed (SIGKILL) two hundred times in the middle of changes of every kind: after the next start each file
//! is wholly old or wholly new, what was answered with success is there, and nothing else is left. Long because the files,
//! their changes and the kills are one experiment.
#![allow(clippy::panic, clippy::print_stderr, reason = "a test fails by a panic and speaks on stderr")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use filectx_openapi::routes;
use filectx_tests::programs::program;
use filectx_tests::require;
use serde_json::{Value, json};

const KILLS: u32 = 200;
/// Each so many rounds the service is killed while it starts, too.
const KILLED_AT_START: u32 = 5;

/// How a file is changed, and where it lies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Edited,
    Written,
    Uploaded,
    /// In a directory that takes no new files: in place, from a copy elsewhere.
    InClosedDirectory,
    /// A mount point: in place, from a copy beside it.
    Mounted,
    /// New each time, with its parents.
    Made,
    /// Deleted, if it has the right revision; then new.
    Deleted,
}

impl Kind {
    fn is_in_place(self) -> bool {
        self == Kind::InClosedDirectory || self == Kind::Mounted
    }

    /// Version `n`: a line of another one shows, and no two have the same length in a row, but for the file that is
    /// edited. Those written in place are long, so that a kill may meet half of one.
    fn whole(self, n: u64) -> String {
        let times = 3_000 + 9_000 * (n as usize % 4);
        match self {
            Kind::Edited => format!("version {n}\nanother line\n").repeat(400),
            kind if kind.is_in_place() => format!("version {n}\n").repeat(8 * times),
            _ => format!("version {n}\n").repeat(times),
        }
    }
}

struct Stage {
    dir: tempfile::TempDir,
    /// Whether the service runs as another user, to whom root can close a directory.
    root: bool,
    mounts: bool,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        let root = root && require::program("setpriv");
        let stage = Self { dir, root, mounts: root && require::mounts() };
        for name in ["", "tree", "tree/closed", "runtime"] {
            std::fs::create_dir_all(stage.path(name)).expect("a directory");
            stage.allow(name, if name == "runtime" { 0o700 } else { 0o777 });
        }
        for kind in stage.kinds() {
            if let Some(file) = stage.file(kind) {
                std::fs::write(&file, kind.whole(0)).expect("a file");
                std::fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).expect("a mode");
            }
        }
        std::fs::write(stage.path("tree/mounted"), "hidden\n").expect("a file");
        if root {
            std::os::unix::fs::chown(stage.path("runtime"), Some(65534), Some(65534)).expect("an owner");
        }
        stage.allow("tree/closed", 0o555);
        stage
    }

    fn allow(&self, name: &str, mode: u32) {
        std::fs::set_permissions(self.path(name), PermissionsExt::from_mode(mode)).expect("a mode");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn kinds(&self) -> Vec<Kind> {
        use Kind::{Deleted, Edited, InClosedDirectory, Made, Mounted, Uploaded, Written};
        let mut kinds = vec![Edited, Written, Uploaded, InClosedDirectory, Made, Deleted];
        kinds.extend(self.mounts.then_some(Mounted));
        kinds
    }

    /// The file as the service calls it.
    fn name(&self, kind: Kind) -> PathBuf {
        self.path(match kind {
            Kind::Edited => "tree/edited",
            Kind::Written => "tree/written",
            Kind::Uploaded => "tree/uploaded",
            Kind::InClosedDirectory => "tree/closed/in_place",
            Kind::Mounted => "tree/mounted",
            Kind::Made => "tree/made",
            Kind::Deleted => "tree/deleted",
        })
    }

    /// The file as it is seen from here; `None` where none has to be at the beginning.
    fn file(&self, kind: Kind) -> Option<PathBuf> {
        match kind {
            Kind::Mounted => Some(self.path("tree/source")),
            Kind::Made | Kind::Deleted => None,
            kind => Some(self.name(kind)),
        }
    }

    fn command(&self) -> Command {
        let mut words: Vec<PathBuf> = Vec::new();
        if self.mounts {
            let script = "mount --bind \"$0\" \"$1\"; shift; exec \"$@\"";
            words.extend(["unshare", "-m", "sh", "-ec", script].map(PathBuf::from));
            words.extend([self.path("tree/source"), self.path("tree/mounted")]);
        }
        if self.root {
            words.extend(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"].map(PathBuf::from));
        }
        words.push(program("filectxd"));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command.args(["--ready-json", "--listen", "127.0.0.1:0", "--token-file"]);
        command.arg(self.path("runtime/token")).env("XDG_RUNTIME_DIR", self.path("runtime"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    /// Nothing is there but what belongs there; the journal of the service that runs.
    fn check_leftovers(&self) -> PathBuf {
        let known = ["closed", "deleted", "edited", "made", "mounted", "source", "uploaded", "written"];
        assert_eq!(others(&self.path("tree"), &known), [""; 0], "left beside the files");
        assert_eq!(others(&self.path("tree/closed"), &["in_place"]), [""; 0], "left in the closed directory");
        // Besides the journal of the service that runs, which is empty as long as nothing was asked.
        let runtime = others(&self.path("runtime/filectx"), &[]);
        assert_eq!(runtime.len(), 1, "journals and copies stay: {runtime:?}");
        let journal = self.path("runtime/filectx").join(&runtime[0]);
        assert_eq!(std::fs::metadata(&journal).expect("the journal").len(), 0);
        journal
    }
}

/// The names in a directory that are not `known`.
fn others(dir: &Path, known: &[&str]) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| !known.contains(&name.as_str())).collect()
}

/// Where a service is, and what it asks for.
struct Door {
    address: String,
    token: String,
}

/// Starts a service, which has settled by then what the one before it left.
fn start(stage: &Stage) -> (Child, Door) {
    let mut child = stage.command().spawn().expect("filectxd starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("stdout is piped")).read_line(&mut line).expect("a line");
    let ready: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
    let address = ready["url"].as_str().expect("a URL").trim_start_matches("http://").to_owned();
    let token = std::fs::read_to_string(stage.path("runtime/token")).expect("a token");
    (child, Door { address, token: token.trim().to_owned() })
}

/// A kept-alive connection to a service that ends at any moment.
struct Connection<'a> {
    stream: BufReader<TcpStream>,
    token: &'a str,
}

impl<'a> Connection<'a> {
    fn new(door: &'a Door) -> Option<Self> {
        let stream = BufReader::new(TcpStream::connect(&door.address).ok()?);
        Some(Self { stream, token: &door.token })
    }

    /// The answer to a request; `None` when the service ended before it was complete.
    fn ask(&mut self, route: &str, content_type: &str, body: &[u8]) -> Option<Value> {
        let head = format!(
            "POST {route} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {}\r\ncontent-type: {content_type}\r\n\
             content-length: {}\r\n\r\n",
            self.token,
            body.len()
        );
        self.stream.get_mut().write_all(&[head.as_bytes(), body].concat()).ok()?;
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let begin = head.len();
            if self.stream.read_line(&mut head).ok()? == 0 {
                return None;
            }
            if let Some(value) = head[begin..].to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer).ok()?;
        let answer = serde_json::from_slice(&answer).expect("an answer is JSON");
        assert!(head.starts_with("HTTP/1.1 200 "), "{route}: {answer}");
        Some(answer)
    }

    fn json(&mut self, route: &str, body: &Value) -> Option<Value> {
        self.ask(route, "application/json", body.to_string().as_bytes())
    }
}

/// Changes one file again and again, until the service ends; the version that was acknowledged last.
fn change(kind: Kind, path: &Path, mut n: u64, door: &Door, done: &AtomicU64) -> u64 {
    let Some(mut connection) = Connection::new(door) else { return n };
    let mut revision = None;
    loop {
        let next = n + 1;
        let answer = match kind {
            Kind::Edited => {
                let line = |n| format!("version {n}\n");
                let edit = json!({"old_text": line(n), "new_text": line(next), "replace_all": true});
                connection.json(routes::EDIT_FILE, &json!({"path": path, "edits": [edit]}))
            }
            Kind::Uploaded | Kind::InClosedDirectory => {
                let form = format!(
                    "--B\r\ncontent-disposition: form-data; name=\"request\"\r\n\r\n{}\r\n--B\r\n\
                     content-disposition: form-data; name=\"content\"\r\n\r\n{}\r\n--B--\r\n",
                    json!({"path": path}),
                    kind.whole(next)
                );
                connection.ask(routes::WRITE_FILE, "multipart/form-data; boundary=B", form.as_bytes())
            }
            Kind::Deleted if n % 2 == 1 => {
                let mut request = json!({"path": path});
                if let Some(revision) = revision.take() {
                    request["expected_revision"] = revision;
                }
                connection.json(routes::DELETE_FILE, &request)
            }
            Kind::Made => {
                let path = path.join(format!("{next}/deep/new"));
                connection.json(routes::WRITE_FILE, &json!({"path": path, "text_content": kind.whole(next)}))
            }
            _ => {
                connection.json(routes::WRITE_FILE, &json!({"path": path, "text_content": kind.whole(next)}))
            }
        };
        let Some(answer) = answer else { return n };
        if let Some(atomic) = answer["atomic"].as_bool() {
            assert_eq!(atomic, !kind.is_in_place(), "{kind:?}");
        }
        revision = answer.get("revision").cloned();
        n = next;
        done.fetch_add(1, Ordering::Relaxed);
    }
}

impl Stage {
    /// What a kill left of version `old`, which was acknowledged, and of the next, which may have been under way: either
    /// of them, whole.
    fn version(&self, kind: Kind, old: u64) -> u64 {
        let is_there = |n: u64| match kind {
            Kind::Deleted => self.text(kind) == (n % 2 == 1).then(|| kind.whole(n)),
            Kind::Made => self.made(n),
            _ => self.text(kind) == Some(kind.whole(n)),
        };
        let found = [old + 1, old].into_iter().find(|n| is_there(*n));
        found.unwrap_or_else(|| {
            let text = self.text(kind);
            let lines: std::collections::BTreeSet<_> = text.iter().flat_map(|text| text.lines()).collect();
            panic!(
                "{kind:?} is neither {old} nor the next: {:?} bytes, {lines:?}",
                text.as_ref().map(String::len)
            )
        })
    }

    fn text(&self, kind: Kind) -> Option<String> {
        std::fs::read_to_string(self.file(kind).unwrap_or_else(|| self.name(kind))).ok()
    }

    /// Whether the new file `n` is the last one that is there, without a trace of another.
    fn made(&self, n: u64) -> bool {
        let numbers = self.made_numbers();
        let is_whole = |number: &u64| {
            let deep = self.name(Kind::Made).join(number.to_string()).join("deep");
            let text = std::fs::read_to_string(deep.join("new"));
            text.is_ok_and(|text| text == Kind::Made.whole(*number)) && others(&deep, &["new"]).is_empty()
        };
        numbers.iter().max().copied().unwrap_or(0) == n && numbers.iter().all(is_whole)
    }

    fn made_numbers(&self) -> Vec<u64> {
        let dir = self.name(Kind::Made);
        let names = if dir.exists() { others(&dir, &[]) } else { Vec::new() };
        names.iter().map(|name| name.parse().unwrap_or_else(|_| panic!("left in {dir:?}: {name}"))).collect()
    }

    /// Removes the new files but the last, which are known to be whole.
    fn forget_made(&self) {
        let numbers = self.made_numbers();
        let last = numbers.iter().max();
        for number in numbers.iter().filter(|number| Some(*number) != last) {
            std::fs::remove_dir_all(self.name(Kind::Made).join(number.to_string())).expect("it can go");
        }
    }
}

/// Numbers that differ from kill to kill, and are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    /// Lets a moment pass, shorter than any clock wakes a thread.
    fn moment(&mut self, most: Duration) {
        let until = Instant::now() + Duration::from_micros(self.below(most.as_micros() as u64));
        while Instant::now() < until {
            std::hint::spin_loop();
        }
    }
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !done() {
        assert!(Instant::now() < end, "{what}: not within 30 s");
        std::thread::yield_now();
    }
}

fn text_of(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

#[test]
fn killed_at_any_moment_files_are_old_or_new() {
    let stage = Stage::new();
    let mut random = Random(1);
    let mut versions: Vec<(Kind, u64)> = stage.kinds().into_iter().map(|kind| (kind, 0)).collect();
    let (mut temporaries, mut torn) = (0, 0);
    // On a busy machine a kill comes late: some rounds more, then, until each kind of hit was among them.
    for round in 0..=3 * KILLS {
        if round > KILLS && temporaries > 0 && torn > 0 {
            break;
        }
        // In every second round nothing but what is hit most rarely.
        let is_busy = |kind: Kind| round % 2 == 0 || kind.is_in_place();
        let (mut child, door) = start(&stage);
        let journal = stage.check_leftovers();
        for (kind, n) in &mut versions {
            *n = stage.version(*kind, *n);
        }
        stage.forget_made();
        let (done, enough) = (AtomicU64::new(0), random.below(16));
        versions = std::thread::scope(|scope| {
            let (stage, door, done) = (&stage, &door, &done);
            let changes: Vec<_> = versions
                .iter()
                .map(|&(kind, n)| {
                    let work = move || change(kind, &stage.name(kind), n, door, done);
                    scope.spawn(move || (kind, if is_busy(kind) { work() } else { n }))
                })
                .collect();
            wait_until("the service answers", || done.load(Ordering::Relaxed) >= enough);
            if is_busy(Kind::Edited) {
                random.moment(Duration::from_millis(4));
            } else {
                // While a file is written in place, or soon after.
                let begun = || text_of(&journal).matches("in_place").count();
                let before = begun();
                wait_until("a file is written in place", || begun() > before);
                random.moment(Duration::from_micros(600));
            }
            child.kill().expect("it lives until now");
            child.wait().expect("it ends");
            changes.into_iter().map(|change| change.join().expect("every answer is a success")).collect()
        });
        let tree = others(&stage.path("tree"), &[]);
        temporaries += tree.iter().filter(|name| name.starts_with(".filectx-")).count();
        let is_torn =
            |kind: Kind, n: u64| ![n, n + 1].into_iter().any(|n| stage.text(kind) == Some(kind.whole(n)));
        torn += versions.iter().filter(|(kind, n)| kind.is_in_place() && is_torn(*kind, *n)).count();
        if round % KILLED_AT_START == 0 {
            let mut child = stage.command().spawn().expect("filectxd starts");
            random.moment(Duration::from_millis(30));
            child.kill().expect("it lives until now");
            child.wait().expect("it ends");
        }
    }
    // Kills that never hit a change would prove nothing.
    eprintln!("{KILLS} kills left {temporaries} temporaries, and {torn} files half written in place");
    assert!(temporaries > 0, "no kill left a temporary behind");
    assert!(torn > 0, "no kill met half of a file");
    let (mut child, _) = start(&stage);
    stage.check_leftovers();
    for (kind, n) in versions {
        stage.version(kind, n);
    }
    child.kill().and_then(|()| child.wait()).expect("it ends");
}
