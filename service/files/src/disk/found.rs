//! What a walk met, and how it is opened: below the root's descriptor without links, or through the fences.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use filectx_openapi::EntryType;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};

use super::beneath::{From, Links, Opener};
use super::identity::Identity;
use super::open::Opened;
use super::roots::{Fences, Located};
use crate::Error;

/// What a walk met.
#[derive(Debug)]
pub(crate) enum Step {
    /// An entry.
    Entry(Entry),
    /// An entry that was not entered or read, for this reason.
    Skipped(Skip),
    /// A directory that could not be walked: its path below the root.
    Failed(Vec<u8>, Error),
}

/// Why an entry was passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skip {
    /// It is hidden.
    Hidden,
    /// It is ignored.
    Ignored,
    /// It is a directory that was entered before.
    LinkedDirectory,
}

/// Something that a walk found.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Its path below the root.
    pub(crate) path: Vec<u8>,
    /// What it is.
    pub(crate) kind: EntryType,
    /// Of links: what they lead to, where that could be told, and whether they are followed.
    pub(crate) link: Option<(Option<EntryType>, bool)>,
    /// Whether it matches the filters.
    pub(crate) accepted: bool,
    /// Whether it stands before the place from which the walk goes on.
    pub(crate) before: bool,
    pub(super) way: Way,
}

/// How an entry is opened.
#[derive(Clone, Debug)]
pub(super) enum Way {
    /// Below the root's descriptor, without links.
    Below(Arc<OwnedFd>),
    /// By its path through the fences: a link was followed on the way.
    Fences,
}

/// Opens what a walk of the directory `root` found, for reading. Only a regular file succeeds.
pub(crate) fn open_entry(fences: &Fences, root: &Located, entry: &Entry) -> Result<Opened, Error> {
    let opened = match &entry.way {
        Way::Below(dir) => open_below(fences, dir, &entry.path, OFlags::empty())?,
        Way::Fences => fences.open_file(&fences.located_below(root, &entry.path))?,
    };
    match opened.identity.kind() {
        EntryType::File => Ok(opened),
        kind => Err(Error::NotRegularFile { kind }),
    }
}

/// Opens `path` below `dir` without following links.
pub(super) fn open_below(
    fences: &Fences,
    dir: &OwnedFd,
    path: &[u8],
    flags: OFlags,
) -> Result<Opened, Error> {
    let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    let fd = if fences.opener == Opener::Steps && fences.are_open() {
        // Without fences a link that someone just put on the way leads to nothing that is closed; a step a part is dear.
        rustix::fs::openat(dir, path, flags | OFlags::NOFOLLOW, Mode::empty())?
    } else {
        fences.opener.open(From::Below(dir.as_fd()), path, flags, Links::Refused)?
    };
    let identity = Identity::of(&rustix::fs::fstat(&fd)?);
    Ok(Opened { fd, identity, real_path: None })
}
