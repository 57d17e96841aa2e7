//! The journal of publishes under way: one small file a process in the runtime directory, locked while the process
//! lives. What a killed process left behind is told by its journal and swept at the next start: temporaries and empty
//! directories go, a write in place that was cut off is completed from its synced copy. Best effort by design: a
//! journal that cannot be written costs no publish.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use filectx_openapi::Base64;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags};

use super::identity::Identity;
use super::pour::write_all_at;
use super::random::random_name;
use super::recovery;

/// A journal that is longer than this is written anew with its live entries alone.
const LONG: u64 = 64 << 10;
const PREFIX: &str = "publish-";
const SUFFIX: &str = ".journal";

/// This process's journal.
#[derive(Debug)]
pub(crate) struct Journal {
    directory: PathBuf,
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: OwnedFd,
    next: u64,
    live: BTreeMap<u64, String>,
    length: u64,
}

/// A line of the journal that holds until it is dropped.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    journal: &'a Journal,
    id: u64,
    /// False when it must outlive this process: its work is left for the next start.
    strike: bool,
}

/// What an entry announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Announced {
    /// A temporary that goes.
    Temporary(PathBuf),
    /// A directory that goes if it is empty.
    Directory(PathBuf),
    /// A file that was moved aside and comes back: where it is, where it was.
    Aside(PathBuf, PathBuf),
    /// A write in place: the copy with the whole new content, the target, and who the target was.
    InPlace { copy: PathBuf, target: PathBuf, dev: u64, ino: u64, size: u64, mtime_ns: i128 },
}

/// What a sweep found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Temporaries of killed processes that were removed.
    pub removed: Vec<PathBuf>,
    /// Files whose write in place was cut off, and that were completed.
    pub completed: Vec<PathBuf>,
    /// Files that were moved aside and came back.
    pub restored: Vec<PathBuf>,
    /// Files whose write in place was cut off and could not be completed; the next start tries again.
    pub pending: Vec<PathBuf>,
}

impl Journal {
    /// Begins this process's journal in `directory`, which exists and belongs to this user alone.
    pub(crate) fn begin(directory: &Path) -> std::io::Result<Self> {
        let name = format!("{PREFIX}{}-{}", std::process::id(), random_name());
        let path = directory.join(format!("{name}{SUFFIX}"));
        let file = new_file(&directory.join(name), &path, "")?;
        let state = Mutex::new(State { file, next: 0, live: BTreeMap::new(), length: 0 });
        Ok(Self { directory: directory.to_owned(), path, state })
    }

    /// Where copies go that cannot lie beside their target.
    pub(crate) fn directory_for_copies(&self) -> &Path {
        &self.directory
    }

    /// Announces what a killed process would leave behind.
    pub(crate) fn announce(&self, what: &Announced) -> Entry<'_> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let id = state.next;
        state.next += 1;
        let line = line_of(id, what);
        state.append(&line);
        state.live.insert(id, line);
        Entry { journal: self, id, strike: true }
    }
}

/// A journal at `path` that holds `text`, in place of what may be there. It is named so only once it is whole and
/// locked, lest a sweep takes it for a dead one's, or a kill leaves half of it.
fn new_file(unlocked: &Path, path: &Path, text: &str) -> std::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::APPEND | OFlags::CLOEXEC;
    let file = rustix::fs::openat(CWD, unlocked, flags, Mode::from_raw_mode(0o600))?;
    let done = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)
        .and_then(|()| write_all_at(&file, text.as_bytes(), 0))
        .and_then(|()| rustix::fs::rename(unlocked, path));
    if let Err(errno) = done {
        let _ = rustix::fs::unlink(unlocked);
        return Err(errno.into());
    }
    Ok(file)
}

impl State {
    fn append(&mut self, line: &str) {
        if let Ok(written) = rustix::io::write(&self.file, line.as_bytes()) {
            self.length += written as u64;
        }
    }
}

impl Entry<'_> {
    /// Leaves the entry for the next start to deal with.
    pub(crate) fn leave(mut self) {
        self.strike = false;
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        if !self.strike {
            return;
        }
        let mut state = self.journal.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.live.remove(&self.id);
        if state.length > LONG {
            let live = state.live.values().cloned().collect::<String>();
            let path = &self.journal.path;
            if let Ok(file) = new_file(&path.with_extension(""), path, &live) {
                (state.file, state.length) = (file, live.len() as u64);
                return;
            }
        }
        state.append(&format!("- {}\n", self.id));
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if state.live.is_empty() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Deals with what killed processes left behind, as their journals in `directory` tell.
pub(crate) fn sweep(directory: &Path) -> std::io::Result<Swept> {
    let mut swept = Swept::default();
    for item in std::fs::read_dir(directory)? {
        let Ok(item) = item else { continue };
        let name = item.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        if rest.ends_with(SUFFIX) {
            sweep_one(&item.path(), &mut swept);
        } else if is_dead(rest.split('-').next().unwrap_or_default()) {
            // Its process ended before it was a journal.
            let _ = std::fs::remove_file(item.path());
        }
    }
    Ok(swept)
}

/// Whether `pid` was a process's, and no longer is.
fn is_dead(pid: &str) -> bool {
    pid.parse()
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .is_some_and(|pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

fn sweep_one(path: &Path, swept: &mut Swept) {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat(CWD, path, flags, Mode::empty()) else { return };
    // Locked: its process lives.
    if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return;
    }
    let Ok(text) = std::fs::read(path) else { return };
    // The last first, as it would have been undone. A copy that is still needed stays.
    let (entries, mut needed) = (left(&text), Vec::new());
    for announced in entries.iter().rev() {
        if !matches!(announced, Announced::Temporary(path) if needed.contains(&path)) {
            needed.extend(recovery::settle(announced, swept));
        }
    }
    if needed.is_empty() {
        let _ = rustix::fs::unlinkat(CWD, path, AtFlags::empty());
    }
}

/// The entries that were never struck.
fn left(text: &[u8]) -> Vec<Announced> {
    let mut live: Vec<(u64, Announced)> = Vec::new();
    for line in text.split(|&b| b == b'\n').filter_map(|line| std::str::from_utf8(line).ok()) {
        let mut words = line.split(' ');
        match (words.next(), words.next().and_then(|id| id.parse().ok())) {
            (Some("-"), Some(id)) => live.retain(|(other, _)| *other != id),
            (Some(kind), Some(id)) => {
                live.extend(parse(kind, &words.collect::<Vec<_>>()).map(|what| (id, what)));
            }
            _ => {}
        }
    }
    live.into_iter().map(|(_, what)| what).collect()
}

fn line_of(id: u64, what: &Announced) -> String {
    let path = |path: &Path| Base64::encode(path.as_os_str().as_bytes());
    let mut line = String::new();
    let _ = match what {
        Announced::Temporary(at) => writeln!(line, "temporary {id} {}", path(at)),
        Announced::Directory(at) => writeln!(line, "directory {id} {}", path(at)),
        Announced::Aside(at, from) => writeln!(line, "aside {id} {} {}", path(at), path(from)),
        Announced::InPlace { copy, target, dev, ino, size, mtime_ns } => {
            writeln!(line, "in_place {id} {} {} {dev} {ino} {size} {mtime_ns}", path(copy), path(target))
        }
    };
    line
}

fn parse(kind: &str, words: &[&str]) -> Option<Announced> {
    let path = |word: &&str| Some(PathBuf::from(OsString::from_vec(Base64::decode(word)?)));
    Some(match (kind, words) {
        ("temporary", [at]) => Announced::Temporary(path(at)?),
        ("directory", [at]) => Announced::Directory(path(at)?),
        ("aside", [at, from]) => Announced::Aside(path(at)?, path(from)?),
        ("in_place", [copy, target, dev, ino, size, mtime_ns]) => Announced::InPlace {
            copy: path(copy)?,
            target: path(target)?,
            dev: dev.parse().ok()?,
            ino: ino.parse().ok()?,
            size: size.parse().ok()?,
            mtime_ns: mtime_ns.parse().ok()?,
        },
        _ => return None,
    })
}

impl Announced {
    /// A write in place of `target`, which was `before`.
    pub(crate) fn in_place(copy: PathBuf, target: PathBuf, before: &Identity) -> Self {
        let Identity { dev, ino, size, mtime_ns, .. } = *before;
        Self::InPlace { copy, target, dev, ino, size, mtime_ns }
    }
}

/// Whether a name is one that this program gives to temporaries.
pub(crate) fn is_temporary(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(b".filectx-") && name.ends_with(b".tmp")
}

/// A new name for a temporary.
pub(crate) fn temporary_name() -> OsString {
    format!(".filectx-{}.tmp", random_name()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<Announced> {
        let odd = PathBuf::from(OsString::from_vec(b"/tmp/a b\n\xff".to_vec()));
        vec![
            Announced::Temporary(odd.clone()),
            Announced::Directory("/tmp/d".into()),
            Announced::Aside("/tmp/x".into(), odd.clone()),
            Announced::InPlace { copy: odd, target: "/t".into(), dev: 1, ino: 2, size: 3, mtime_ns: -4 },
        ]
    }

    #[test]
    fn lines_are_read_as_written() {
        let text: String = entries().iter().enumerate().map(|(id, what)| line_of(id as u64, what)).collect();
        assert_eq!(left(text.as_bytes()), entries());
        let struck = text + "- 0\n- 2\n- 3\nnonsense\n- \ntemporary 9";
        assert_eq!(left(struck.as_bytes()), vec![Announced::Directory("/tmp/d".into())]);
    }

    #[test]
    fn a_live_journal_is_left_alone_and_a_clean_end_leaves_none() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join(".filectx-1.tmp");
        std::fs::write(&target, "x").unwrap();
        let journal = Journal::begin(dir.path()).unwrap();
        let entry = journal.announce(&Announced::Temporary(target.clone()));
        assert_eq!(sweep(dir.path()).unwrap(), Swept::default());
        assert!(target.exists());
        drop(entry);
        drop(journal);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_long_journal_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::begin(dir.path()).unwrap();
        let path = PathBuf::from("/".to_owned() + &"x".repeat(3000));
        for _ in 0..100 {
            journal.announce(&Announced::Temporary(path.clone()));
        }
        assert!(std::fs::metadata(&journal.path).unwrap().len() < 2 * LONG);
    }

    #[test]
    fn a_journal_that_begins_anew_keeps_what_is_under_way() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::begin(dir.path()).unwrap();
        let live = Announced::Temporary("/under/way".into());
        let entry = journal.announce(&live);
        let path = PathBuf::from("/".to_owned() + &"x".repeat(3000));
        for _ in 0..50 {
            journal.announce(&Announced::Temporary(path.clone()));
            // At no moment is the journal without it, nor one that a sweep takes for a dead one's.
            assert!(left(&std::fs::read(&journal.path).unwrap()).contains(&live));
            assert_eq!(sweep(dir.path()).unwrap(), Swept::default());
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        drop(entry);
        drop(journal);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_was_to_become_a_journal_goes_with_its_process() {
        let dir = tempfile::tempdir().unwrap();
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let names = [format!("{PREFIX}{}-abc", ended.id()), format!("{PREFIX}{}-abc", std::process::id())];
        names.iter().for_each(|name| std::fs::write(dir.path().join(name), "").unwrap());
        sweep(dir.path()).unwrap();
        assert_eq!(names.map(|name| dir.path().join(name).exists()), [false, true]);
    }
}
