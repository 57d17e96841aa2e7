//! A way within bounds without the kernel's help: one component at a time, each opened below the directory before it and
//! never through a link. Links are read and followed here, and `..` goes back to where this way came from, not to where
//! a directory lies by then; so nothing that others move meanwhile leads out.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use filectx_openapi::EntryType;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::beneath::{Aim, From, Links, Reached};
use super::identity::Identity;
use super::resolve::LINKS;
use super::system::NAME_ONLY;

/// Goes the way of `path`.
pub(super) fn reach(from: From<'_>, path: &Path, aim: Aim, links: Links) -> Result<Reached, Errno> {
    let mut way = Way::begin(from, links)?;
    way.add(path.as_os_str(), true)?;
    while let Some(part) = way.left.pop_front() {
        if part.as_bytes() == b".." {
            way.go_up()?;
        } else if !way.left.is_empty() {
            way.go_down(part)?;
        } else if let Some(reached) = way.arrive(&part, aim)? {
            return Ok(reached);
        }
    }
    way.stay(aim)
}

struct Way {
    /// Where it began: at `/`, or at the directory that it stays below.
    start: OwnedFd,
    bounded: bool,
    links: Links,
    /// How many links were followed.
    followed: u32,
    /// The directory where it is, and the names from the start down to it.
    here: OwnedFd,
    names: Vec<OsString>,
    left: VecDeque<OsString>,
    /// Whether what it leads to has to be a directory: its path ends in a slash.
    to_directory: bool,
}

impl Way {
    fn begin(from: From<'_>, links: Links) -> Result<Self, Errno> {
        let (start, bounded) = match from {
            From::Slash => (slash()?, false),
            From::Below(dir) => (copy(dir)?, true),
        };
        let here = copy(&start)?;
        let (names, left) = (Vec::new(), VecDeque::new());
        Ok(Self { start, bounded, links, followed: 0, here, names, left, to_directory: false })
    }

    /// Puts the parts of `path` before what is left. `last`: nothing is left behind it.
    fn add(&mut self, path: &OsStr, last: bool) -> Result<(), Errno> {
        let path = path.as_bytes();
        if path.is_empty() {
            return Err(Errno::NOENT);
        }
        if path.starts_with(b"/") {
            if self.bounded {
                return Err(Errno::XDEV);
            }
            (self.here, self.names) = (copy(&self.start)?, Vec::new());
        }
        let is_name = |part: &&[u8]| !part.is_empty() && *part != b".";
        for part in path.split(|&b| b == b'/').rev().filter(is_name) {
            self.left.push_front(OsStr::from_bytes(part).to_owned());
        }
        self.to_directory |= last && (path.ends_with(b"/") || path.ends_with(b"/."));
        Ok(())
    }

    fn go_up(&mut self) -> Result<(), Errno> {
        if self.names.pop().is_none() && self.bounded {
            return Err(Errno::XDEV);
        }
        self.here = copy(&self.start)?;
        for name in &self.names {
            self.here = rustix::fs::openat(&self.here, name, PASSING, Mode::empty())?;
        }
        Ok(())
    }

    fn go_down(&mut self, name: OsString) -> Result<(), Errno> {
        match rustix::fs::openat(&self.here, &name, PASSING, Mode::empty()) {
            Ok(dir) => {
                self.here = dir;
                self.names.push(name);
                Ok(())
            }
            Err(errno) => self.follow(&name, errno, false),
        }
    }

    /// Takes the last step; `None` where it is a link, and more is left now.
    fn arrive(&mut self, name: &OsStr, aim: Aim) -> Result<Option<Reached>, Errno> {
        let must = if self.to_directory { OFlags::DIRECTORY } else { OFlags::empty() };
        let refused = match aim {
            Aim::Open(flags) => {
                match rustix::fs::openat(&self.here, name, flags | must | OFlags::NOFOLLOW, Mode::empty()) {
                    Ok(fd) => return Reached::open(fd, self.followed > 0).map(Some),
                    Err(errno) => errno,
                }
            }
            Aim::Look => {
                let identity =
                    Identity::of(&rustix::fs::statat(&self.here, name, AtFlags::SYMLINK_NOFOLLOW)?);
                match identity.kind() {
                    EntryType::Symlink => Errno::LOOP,
                    kind if self.to_directory && kind != EntryType::Directory => return Err(Errno::NOTDIR),
                    _ => {
                        let (fd, name) = (copy(&self.here)?, Some(name.to_owned()));
                        return Ok(Some(Reached { fd, name, identity, followed: self.followed > 0 }));
                    }
                }
            }
        };
        self.follow(name, refused, true)?;
        Ok(None)
    }

    /// The way ends in the directory where it is.
    fn stay(self, aim: Aim) -> Result<Reached, Errno> {
        let followed = self.followed > 0;
        match aim {
            Aim::Open(flags) => {
                Reached::open(rustix::fs::openat(&self.here, ".", flags, Mode::empty())?, followed)
            }
            Aim::Look => Reached::open(self.here, followed),
        }
    }

    /// `name` could not be opened as what is no link, for the reason `errno`: if it is one, its text is the way now.
    fn follow(&mut self, name: &OsStr, errno: Errno, last: bool) -> Result<(), Errno> {
        // Systems differ in what they call a link that is not to be followed.
        if !matches!(errno, Errno::LOOP | Errno::MLINK | Errno::NOTDIR) {
            return Err(errno);
        }
        self.followed += 1;
        if self.followed > LINKS {
            return Err(Errno::LOOP);
        }
        match rustix::fs::readlinkat(&self.here, name, Vec::new()) {
            Ok(_) if self.links == Links::Refused => Err(Errno::LOOP),
            Ok(target) => self.add(&OsString::from_vec(target.into_bytes()), last),
            Err(Errno::INVAL) if errno == Errno::NOTDIR => Err(errno),
            // It was a link a moment ago: once more.
            Err(Errno::INVAL) => {
                self.left.push_front(name.to_owned());
                Ok(())
            }
            Err(errno) => Err(errno),
        }
    }
}

/// How a directory is opened that is only passed through.
const PASSING: OFlags = NAME_ONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn slash() -> Result<OwnedFd, Errno> {
    rustix::fs::openat(CWD, "/", PASSING, Mode::empty())
}

fn copy(fd: impl AsFd) -> Result<OwnedFd, Errno> {
    rustix::io::fcntl_dupfd_cloexec(fd, 0)
}
