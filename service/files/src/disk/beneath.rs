//! From a path to what it names, within bounds: by the kernel in one call where it can hold them (`openat2`), else one
//! step after the other (`steps.rs`). Both say the same; which one it is, only this file asks.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use super::identity::Identity;
use super::{steps, system};

/// From where a path is walked, and what bounds that sets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum From<'a> {
    /// From `/`, an absolute path; the way may lead anywhere.
    Slash,
    /// From this directory, and never out of it: `EXDEV` when the way would.
    Below(BorrowedFd<'a>),
}

/// Whether links are followed on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    /// No: `ELOOP` at the first.
    Refused,
    /// Yes.
    Followed,
}

/// What is wanted of the thing at the end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Aim {
    /// To open it.
    Open(OFlags),
    /// To know who it is, without opening it.
    Look,
}

/// What a path led to.
#[derive(Debug)]
pub(crate) struct Reached {
    /// The thing, or the directory that holds it as `name`.
    pub(super) fd: OwnedFd,
    pub(super) name: Option<OsString>,
    /// Who it is.
    pub(crate) identity: Identity,
    /// Whether a link may have been followed on the way.
    pub(crate) followed: bool,
}

impl Reached {
    /// An open thing.
    pub(super) fn open(fd: OwnedFd, followed: bool) -> Result<Self, Errno> {
        let identity = Identity::of(&rustix::fs::fstat(&fd)?);
        Ok(Self { fd, name: None, identity, followed })
    }

    /// The descriptor of what was opened.
    pub(crate) fn into_fd(self) -> OwnedFd {
        self.fd
    }

    /// Where it really lies, as the system tells it.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        let path = system::path_of(&self.fd)?;
        Some(self.name.iter().fold(path, |path, name| path.join(name)))
    }
}

/// How this system keeps a way within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opener {
    /// The kernel does.
    Kernel,
    /// This program does, step by step.
    Steps,
}

impl Opener {
    /// The one of this system.
    pub(crate) fn here() -> Self {
        if system::opens_by_kernel() { Opener::Kernel } else { Opener::Steps }
    }

    /// Goes the way of `path`.
    pub(crate) fn reach(self, from: From<'_>, path: &Path, aim: Aim, links: Links) -> Result<Reached, Errno> {
        match (self, from, aim, links) {
            (Opener::Kernel, ..) => by_kernel(from, path, aim, links),
            // Without bounds there is nothing to keep.
            (Opener::Steps, From::Slash, Aim::Open(flags), Links::Followed) => {
                Reached::open(rustix::fs::openat(CWD, path, flags, Mode::empty())?, true)
            }
            (Opener::Steps, ..) => steps::reach(from, path, aim, links),
        }
    }

    /// Opens what `path` names.
    pub(crate) fn open(
        self,
        from: From<'_>,
        path: &Path,
        flags: OFlags,
        links: Links,
    ) -> Result<OwnedFd, Errno> {
        match self {
            Opener::Kernel => system::open_by_kernel(from, path, flags, links),
            Opener::Steps => self.reach(from, path, Aim::Open(flags), links).map(Reached::into_fd),
        }
    }
}

/// First without links: the common case, and so it is known for free that none was followed.
fn by_kernel(from: From<'_>, path: &Path, aim: Aim, links: Links) -> Result<Reached, Errno> {
    let flags = match aim {
        Aim::Open(flags) => flags,
        Aim::Look => system::NAME_ONLY | OFlags::CLOEXEC,
    };
    match system::open_by_kernel(from, path, flags, Links::Refused) {
        Err(Errno::LOOP) if links == Links::Followed => {
            Reached::open(system::open_by_kernel(from, path, flags, links)?, true)
        }
        opened => Reached::open(opened?, false),
    }
}

#[cfg(test)]
mod tests;
