//! What a search costs, each figure as a ratio against ripgrep in the same run, on a tree of many files:
//! `cargo bench -p filectx-tests --bench find`. `FILECTX_RG` names the ripgrep to compare with (else the one on the
//! path), `FILECTX_TREE` a tree to search instead of a made one. Both sides are whole programs, start to end.
#![allow(clippy::print_stderr, reason = "a report is for reading")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use filectx_openapi::routes;
use filectx_tests::bench::{Connection, cpu_of_children, median, peak_kib, post, report};
use filectx_tests::programs::{Service, program};

/// Files of the made tree.
const FILES: usize = 60_000;
/// Runs of each program, one after the other in turn.
const RUNS: usize = 11;

fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let made = std::env::var_os("FILECTX_TREE").is_none().then(made_tree);
    let tree = match &made {
        Some(dir) => dir.path().to_owned(),
        None => PathBuf::from(std::env::var_os("FILECTX_TREE").expect("it was there just now")),
    };
    let rg = std::env::var_os("FILECTX_RG").unwrap_or_else(|| "rg".into());
    let version = Command::new(&rg).arg("--version").output().expect("ripgrep runs").stdout;
    eprintln!("against {}", String::from_utf8_lossy(&version).lines().next().unwrap_or_default());
    let wanted = |name: &str| chosen.is_empty() || chosen.iter().any(|arg| arg == name);
    let rg = Path::new(&rg);
    if wanted("few") {
        few(&tree, rg);
    }
    if wanted("first") {
        first(&tree, rg);
    }
    if wanted("memory") {
        memory(&tree);
    }
    if wanted("list") {
        list();
    }
}

/// A tree of source-like files of 1 to 16 kB in directories of a hundred, twelve of them with the word `Xylograph`.
fn made_tree() -> tempfile::TempDir {
    const WORDS: [&str; 16] = [
        "let", "value", "compute", "match", "state", "return", "fn", "buffer", "offset", "length", "index",
        "struct", "impl", "self", "option", "result",
    ];
    let dir = tempfile::tempdir().expect("a directory");
    let mut seed: u64 = 1;
    let mut next = move || {
        // A plain linear congruential generator: the tree is the same in every run.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize
    };
    let mut text = String::new();
    for number in 0..FILES {
        let below = dir.path().join(format!("part_{:02}/module_{:03}", number / 6_000, number / 100));
        if number % 100 == 0 {
            std::fs::create_dir_all(&below).expect("a directory");
        }
        text.clear();
        let size = 1_000 + next() % 15_000;
        while text.len() < size {
            text.push_str("    ");
            for _ in 0..3 + next() % 8 {
                write!(text, "{}_{} ", WORDS[next() % WORDS.len()], next() % 1_000).expect("a word");
            }
            text.push_str(";\n");
        }
        if number % 5_000 == 4_999 {
            text.push_str("    // Xylograph\n");
        }
        std::fs::write(below.join(format!("file_{number:05}.rs")), &text).expect("a file");
    }
    dir
}

/// Wall and CPU time of one run of a program and of all that it started, and its output.
fn timed(command: &mut Command) -> (Duration, Duration, Vec<u8>) {
    let (cpu, start) = (cpu_of_children(), Instant::now());
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    (start.elapsed(), cpu_of_children() - cpu, output.stdout)
}

/// Runs both in turn; the medians of their wall times and the means of their CPU times, ours first.
fn both(ours: &mut Command, theirs: &mut Command, same: impl Fn(&[u8], &[u8])) -> [(Duration, Duration); 2] {
    let (_, _, our_rows) = timed(ours);
    let (_, _, their_rows) = timed(theirs);
    same(&our_rows, &their_rows);
    let mut walls = [Vec::new(), Vec::new()];
    let mut cpus = [Duration::ZERO; 2];
    for _ in 0..RUNS {
        for (side, command) in [&mut *ours, &mut *theirs].into_iter().enumerate() {
            let (wall, cpu, _) = timed(command);
            walls[side].push(wall);
            cpus[side] += cpu;
        }
    }
    let [a, b] = walls.map(|mut times| {
        times.sort();
        times[RUNS / 2]
    });
    [(a, cpus[0] / RUNS as u32), (b, cpus[1] / RUNS as u32)]
}

fn lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte == b'\n').count()
}

/// A full search with few matches: a literal, a regex, and one whose case does not count.
fn few(tree: &Path, rg: &Path) {
    for pattern in ["Xylograph", "X[a-z]+graph$", "xylograph"] {
        let mut ours = Command::new(program("filectx"));
        ours.args(["find", pattern]).arg(tree);
        let mut theirs = Command::new(rg);
        theirs.args(["--no-config", "-j2", "-S", "-n", pattern]).arg(tree);
        let [(wall, cpu), (their_wall, their_cpu)] =
            both(&mut ours, &mut theirs, |ours, theirs| assert_eq!(lines(ours), lines(theirs)));
        report(&format!("full search for {pattern:?}, wall"), wall, "rg -j2", their_wall, "at most 1.1");
        report(&format!("full search for {pattern:?}, CPU"), cpu, "rg -j2", their_cpu, "at most 1.1");
    }
}

/// The first 50 of very many matches.
fn first(tree: &Path, rg: &Path) {
    let mut ours = Command::new(program("filectx"));
    ours.args(["find", "value_", "--max-results", "50"]).arg(tree);
    let mut theirs = Command::new("sh");
    theirs.args(["-c", "exec \"$0\" --no-config -j2 -n value_ \"$1\" | head -50"]).arg(rg).arg(tree);
    let [(wall, cpu), (their_wall, their_cpu)] =
        both(&mut ours, &mut theirs, |ours, theirs| assert_eq!((lines(ours), lines(theirs)), (50, 50)));
    report("the first 50 of very many, wall", wall, "rg | head -50", their_wall, "at most 1");
    report("the first 50 of very many, CPU", cpu, "rg | head -50", their_cpu, "at most 1");
}

/// The service's peak memory does not grow with the number of matches in the tree.
fn memory(tree: &Path) {
    for (what, pattern, most) in
        [("12 matches", "Xylograph", 50), ("50 of millions", "_", 50), ("5,000 of millions", "_", 5_000)]
    {
        let service = Service::start(&[]);
        let mut connection = Connection::new(service.url().trim_start_matches("http://"));
        let idle = peak_kib(service.pid());
        let body = serde_json::json!({"cwd": tree, "pattern": pattern, "max_results": most});
        let size = connection.ask(&post(&service.token, routes::FIND_TEXT, &body.to_string())).len();
        let peak = peak_kib(service.pid());
        eprintln!("peak memory, {what}: {peak} KiB ({idle} KiB before; the answer has {size} bytes)");
    }
}

/// The first page of a directory of 100,000 entries, against `ls` giving all of them unsorted and without their data.
fn list() {
    let dir = tempfile::tempdir().expect("a directory");
    for number in 0..100_000 {
        std::fs::File::create(dir.path().join(format!("entry_{number:06}"))).expect("a file");
    }
    let service = Service::start(&[]);
    let mut connection = Connection::new(service.url().trim_start_matches("http://"));
    let body = serde_json::json!({"path": dir.path()}).to_string();
    let request = post(&service.token, routes::LIST_DIRECTORY, &body);
    let ours = median(9, || assert!(connection.ask(&request).len() > 1_000 * 100));
    let theirs = median(9, || {
        let output = Command::new("ls").arg("-U").arg(dir.path()).output().expect("ls runs");
        assert_eq!(lines(&output.stdout), 100_000);
    });
    report("the first 1,000 of 100,000 entries", ours, "ls -U", theirs, "well under a second");
    eprintln!("peak memory of the service: {} KiB", peak_kib(service.pid()));
}
