//! Ignore files on a walk: which of `.gitignore`, `.ignore` and `.git/info/exclude` hold at a directory, and what they
//! say of an entry. `.ignore` wins over `.gitignore`, that over `exclude`; of one kind the deepest file wins. There are
//! no user-wide ignore files. The rules of one file are `ignore`'s; its walkers are not used.

use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::roots::{Fences, Located, to_path};

/// The most of an ignore file that is obeyed.
const MOST_BYTES: u64 = 1 << 20;
/// Kinds of ignore files, the strongest first: where each lies in its directory.
pub(crate) const PLACES: [&[u8]; 3] = [b".ignore", b".gitignore", b".git/info/exclude"];

/// The ignore files that hold at a directory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ignores {
    /// Of each kind, the file of the topmost directory first.
    files: [Vec<Arc<IgnoreFile>>; 3],
}

#[derive(Debug)]
struct IgnoreFile {
    /// How much of a path names the directory in which the file holds, slash included.
    prefix: usize,
    lines: Vec<String>,
    rules: Gitignore,
}

/// A rule that ignores an entry: the kind of file, which one of them, and the line.
struct Hit {
    kind: usize,
    file: usize,
    line: String,
}

impl Ignores {
    /// Whether no ignore file holds.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.iter().all(Vec::is_empty)
    }

    /// Whether the entry at `path` is ignored.
    pub(crate) fn ignores(&self, path: &[u8], is_directory: bool) -> bool {
        self.verdict(path, is_directory, false).is_some()
    }

    /// The ignore files without the rules that ignore `path`, which was named.
    pub(crate) fn naming(mut self, path: &[u8], is_directory: bool) -> Self {
        while let Some(hit) = self.verdict(path, is_directory, true) {
            let file = &mut self.files[hit.kind][hit.file];
            let without = file.without(&hit.line);
            if without.lines.len() == file.lines.len() {
                break;
            }
            *file = Arc::new(without);
        }
        self
    }

    /// Adds what the ignore file of `kind` in the directory `at` says, if there is one. `prefix`: how much of a path
    /// names that directory.
    pub(crate) fn add(&mut self, fences: &Fences, at: &Located, kind: usize, prefix: usize) {
        self.add_lines(read_lines(fences, at, kind), kind, prefix);
    }

    /// As [`add`](Self::add), for a directory that was named: a file by which a directory ignores all that is in it
    /// does not hold there.
    pub(crate) fn add_of_named(&mut self, fences: &Fences, at: &Located, kind: usize, prefix: usize) {
        let mut lines = read_lines(fences, at, kind);
        let keeps_something = |line: &String| {
            line.strip_prefix('!').is_some_and(|kept| {
                !matches!(
                    kept.trim().trim_start_matches('/'),
                    ".gitignore" | ".ignore" | ".gitkeep" | ".keep"
                )
            })
        };
        if !lines.iter().any(keeps_something) {
            lines.retain(|line| !matches!(line.trim_end(), "*" | "/*" | "**" | "/**" | "**/*"));
        }
        self.add_lines(lines, kind, prefix);
    }

    fn add_lines(&mut self, lines: Vec<String>, kind: usize, prefix: usize) {
        let rules = compile(&lines);
        if !rules.is_empty() {
            self.files[kind].push(Arc::new(IgnoreFile { prefix, lines, rules }));
        }
    }

    /// The rule that ignores `path`, or with `parents` a directory above it.
    fn verdict(&self, path: &[u8], is_directory: bool, parents: bool) -> Option<Hit> {
        for (kind, files) in self.files.iter().enumerate() {
            for (file, ignore) in files.iter().enumerate().rev() {
                let Some(below) = path.get(ignore.prefix..).filter(|below| !below.is_empty()) else {
                    continue;
                };
                let below = Path::new(std::ffi::OsStr::from_bytes(below));
                let told = match parents {
                    true => ignore.rules.matched_path_or_any_parents(below, is_directory),
                    false => ignore.rules.matched(below, is_directory),
                };
                match told {
                    Match::None => {}
                    Match::Whitelist(_) => return None,
                    Match::Ignore(glob) => return Some(Hit { kind, file, line: glob.original().to_owned() }),
                }
            }
        }
        None
    }
}

impl IgnoreFile {
    fn without(&self, rule: &str) -> IgnoreFile {
        // A rule's text is its line without blanks at the end.
        let others = self.lines.iter().filter(|line| line.trim_end() != rule.trim_end());
        let lines: Vec<_> = others.cloned().collect();
        IgnoreFile { prefix: self.prefix, rules: compile(&lines), lines }
    }
}

fn read_lines(fences: &Fences, at: &Located, kind: usize) -> Vec<String> {
    let Ok(opened) = fences.open_file(&fences.located_below(at, PLACES[kind])) else { return Vec::new() };
    let mut text = Vec::new();
    // What was read before an error holds.
    let _ = std::fs::File::from(opened.fd).take(MOST_BYTES).read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    text.trim_start_matches('\u{feff}').lines().map(str::to_owned).collect()
}

fn compile(lines: &[String]) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    for line in lines {
        // A line that is no glob says nothing; the others hold.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// The ignore files that hold in the directory `root` (a real path) by what lies above it and in it, and how much of a
/// path below `top` names `root`. They hold from the nearest directory with `.git` down; without one, from `root` down.
pub(crate) fn at_root(fences: &Fences, root: &Path) -> (Ignores, Vec<u8>) {
    let has_git =
        |dir: &Path| fences.look(&fences.located_prefix(&join(dir.as_os_str().as_bytes(), b".git"))).is_ok();
    let top = root.ancestors().find(|dir| has_git(dir)).unwrap_or(root);
    let below = root.strip_prefix(top).unwrap_or(Path::new("")).as_os_str().as_bytes();
    let mut ignores = Ignores::default();
    let mut dirs: Vec<&Path> = root.ancestors().take_while(|dir| dir.starts_with(top)).collect();
    dirs.reverse();
    let mut path = below.to_vec();
    if !path.is_empty() {
        path.push(b'/');
    }
    for dir in dirs {
        let own = dir.strip_prefix(top).unwrap_or(Path::new("")).as_os_str().len();
        let prefix = if own == 0 { 0 } else { own + 1 };
        let at = fences.located_prefix(to_path(dir.as_os_str().as_bytes()).as_os_str().as_bytes());
        for kind in 0..PLACES.len() {
            if dir == root {
                ignores.add_of_named(fences, &at, kind, prefix);
            } else {
                ignores.add(fences, &at, kind, prefix);
            }
        }
    }
    if !below.is_empty() && !ignores.is_empty() {
        ignores = ignores.naming(below, true);
    }
    (ignores, path)
}

fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let mut joined = dir.to_vec();
    if !joined.ends_with(b"/") {
        joined.push(b'/');
    }
    joined.extend_from_slice(name);
    joined
}
