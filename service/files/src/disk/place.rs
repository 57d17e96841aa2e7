//! Where a change lands: the real directory, held open, and the name in it. Links are followed first; from here on
//! every step is relative to the held directory, so nothing can be moved away under it. Judged by the fences whether
//! something is there or not; nothing is created here but missing parents, which go again unless they are kept.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use filectx_openapi::EntryType;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::beneath::{From, Links};
use super::identity::Identity;
use super::journal::{Announced, Entry, Journal};
use super::locks::Key;
use super::resolve::{Resolution, resolve};
use super::roots::{Fences, Located, normalised};
use super::system::{self, NAME_ONLY};
use crate::Error;

/// How often a way is looked up again when the tree moves under it.
const RACES: u32 = 8;

/// Whether the last link of a path is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    /// Yes: what it leads to is changed.
    Followed,
    /// No: the link itself is.
    Itself,
}

/// A name in a directory that is held open.
#[derive(Debug)]
pub(crate) struct Place {
    /// The directory; while `missing` is not empty, the deepest one that is there.
    pub(crate) dir: OwnedFd,
    /// Who the directory is.
    pub(crate) dir_identity: Identity,
    /// Where the directory really lies.
    pub(crate) dir_path: PathBuf,
    /// Directories that have to be made below `dir`, outermost first.
    pub(crate) missing: Vec<OsString>,
    /// The name.
    pub(crate) name: OsString,
    /// Where the target really lies, when a link was followed.
    pub(crate) real_path: Option<PathBuf>,
}

/// A file that is there.
#[derive(Debug)]
pub(crate) struct Existing {
    /// Who it is.
    pub(crate) identity: Identity,
    /// The file, open for reading; `None` where this user may not read it, or where it is a link.
    pub(crate) fd: Option<OwnedFd>,
}

impl Fences {
    /// Whether the fences let a change of `at` through, whatever is there.
    pub(crate) fn check_change(&self, at: &Located) -> Result<(), Error> {
        self.judge_change(at.joined(), &resolve(at.joined()).real)
    }

    /// The place that a change of `at` goes to. Fences come before existence.
    pub(crate) fn place(&self, at: &Located, last: Last) -> Result<Place, Error> {
        for _ in 0..RACES {
            let resolution = resolution_of(at.joined(), last);
            self.judge_change(at.joined(), &resolution.real)?;
            match self.place_of(at, &resolution) {
                // A part of the way was moved, or became a link.
                Err(Error::LinkLoop | Error::NotFound { .. } | Error::OutsideRoots)
                    if resolution.error.is_none() => {}
                other => return other.map_err(|error| self.explain(at, error)),
            }
        }
        Err(Error::ChangedConcurrently)
    }

    /// Roots, deny rules, read-only, in this order.
    fn judge_change(&self, joined: &Path, real: &Path) -> Result<(), Error> {
        if !self.roots.is_empty() && self.root_of_real(real).is_none() {
            return Err(Error::OutsideRoots);
        }
        if self.denies(joined) || self.denies(real) {
            return Err(Error::DeniedByPolicy);
        }
        self.check_writable()
    }

    fn place_of(&self, at: &Located, way: &Resolution) -> Result<Place, Error> {
        match way.error {
            None => {}
            Some(Errno::NOENT) if !way.climbs => {}
            Some(errno) => return Err(errno.into()),
        }
        // A root itself, or `/`: there is no place that holds it, and it is a directory anyway.
        let (Some(parent), Some(name)) = (way.real.parent(), way.real.file_name()) else {
            return Err(Error::IsDirectory);
        };
        if self.roots.iter().any(|root| root.real == way.real) {
            return Err(Error::IsDirectory);
        }
        // Where all is there, `found` is the target itself.
        let dir_path = if way.error.is_none() { parent } else { way.found.as_path() };
        let missing = parent.strip_prefix(dir_path).map_err(|_| Error::ChangedConcurrently)?;
        let missing = missing.iter().map(OsStr::to_owned).collect();
        let dir = self.open_real_directory(dir_path)?;
        let dir_identity = Identity::of(&rustix::fs::fstat(&dir)?);
        let followed = way.real != normalised(at.joined());
        Ok(Place {
            dir,
            dir_identity,
            dir_path: dir_path.to_owned(),
            missing,
            name: name.to_owned(),
            real_path: followed.then(|| way.real.clone()),
        })
    }

    /// Opens a directory whose path is without links, and stays within the roots in doing so.
    fn open_real_directory(&self, real: &Path) -> Result<OwnedFd, Errno> {
        let flags = NAME_ONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if self.roots.is_empty() {
            return self.opener.open(From::Slash, real, flags, Links::Refused);
        }
        let (root, rest) = self.root_of_real(real).ok_or(Errno::XDEV)?;
        self.opener.open(From::Below(root.dir.as_fd()), &rest, flags, Links::Refused)
    }
}

fn resolution_of(path: &Path, last: Last) -> Resolution {
    match (last, path.parent(), path.file_name()) {
        (Last::Itself, Some(parent), Some(name)) => {
            let mut way = resolve(parent);
            if way.error.is_none() {
                way.found = way.real.clone();
            }
            way.real.push(name);
            // The parent is there; whether the name is, is for the place to see.
            way.error = way.error.or(Some(Errno::NOENT));
            way
        }
        _ => resolve(path),
    }
}

impl Place {
    /// The name as a path, for error texts and the journal.
    pub(crate) fn path(&self) -> PathBuf {
        let mut path = self.dir_path.clone();
        path.extend(&self.missing);
        path.push(&self.name);
        path
    }

    /// What a change of it locks.
    pub(crate) fn key(&self) -> Key {
        let mut name = Vec::new();
        for part in self.missing.iter().chain([&self.name]) {
            name.extend_from_slice(part.as_bytes());
            name.push(b'/');
        }
        Key::Entry(self.dir_identity.dev, self.dir_identity.ino, name)
    }

    /// Whether both are one name in one directory.
    pub(crate) fn is_same(&self, other: &Place) -> bool {
        let dir = |place: &Place| (place.dir_identity.dev, place.dir_identity.ino);
        dir(self) == dir(other) && self.name == other.name && self.missing == other.missing
    }

    /// What is here now, without following a link and without opening what is no regular file.
    pub(crate) fn look(&self) -> Result<Option<Identity>, Error> {
        if !self.missing.is_empty() {
            return Ok(None);
        }
        match rustix::fs::statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Identity::of(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The regular file that is here, opened for reading where that is allowed.
    pub(crate) fn existing(&self) -> Result<Option<Existing>, Error> {
        let Some(seen) = self.look()? else { return Ok(None) };
        match seen.kind() {
            EntryType::File => {}
            EntryType::Directory => return Err(Error::IsDirectory),
            // The last link was followed before: someone just put this one here.
            EntryType::Symlink => return Err(Error::ChangedConcurrently),
            kind => return Err(Error::NotRegularFile { kind }),
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.dir, &self.name, flags, Mode::empty()) {
            Ok(fd) => {
                let identity = Identity::of(&rustix::fs::fstat(&fd)?);
                match identity.kind() {
                    EntryType::File => Ok(Some(Existing { identity, fd: Some(fd) })),
                    kind => Err(Error::NotRegularFile { kind }),
                }
            }
            Err(Errno::ACCESS | Errno::PERM) => Ok(Some(Existing { identity: seen, fd: None })),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// What the link that is here holds.
    pub(crate) fn link_text(&self) -> Result<std::ffi::CString, Errno> {
        rustix::fs::readlinkat(&self.dir, &self.name, Vec::new())
    }

    /// Makes the missing parents and steps into them.
    pub(crate) fn make_parents<'a>(&mut self, journal: Option<&'a Journal>) -> Result<Made<'a>, Error> {
        let mut made = Made { steps: Vec::new(), kept: false };
        let missing = std::mem::take(&mut self.missing);
        for name in missing {
            let path = self.dir_path.join(&name);
            let entry = journal.map(|journal| journal.announce(&Announced::Directory(path.clone())));
            let own = match rustix::fs::mkdirat(&self.dir, &name, Mode::from_raw_mode(0o777)) {
                Ok(()) => true,
                Err(Errno::EXIST) => false,
                Err(errno) => return Err(errno.into()),
            };
            let flags = NAME_ONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let child = rustix::fs::openat(&self.dir, &name, flags, Mode::empty());
            let parent = match child {
                Ok(child) => std::mem::replace(&mut self.dir, child),
                Err(errno) => {
                    if own {
                        let _ = rustix::fs::unlinkat(&self.dir, &name, AtFlags::REMOVEDIR);
                    }
                    return Err(errno.into());
                }
            };
            if own {
                made.steps.push(Step { parent, name: name.clone(), entry });
            }
            self.dir_path = path;
        }
        self.dir_identity = Identity::of(&rustix::fs::fstat(&self.dir)?);
        Ok(made)
    }

    /// Makes the directory's entries last.
    pub(crate) fn sync(&self) -> Result<(), Errno> {
        sync_directory(self.dir.as_fd())
    }
}

/// A directory that may be searched but not read cannot be synced by this user; that is no failure.
fn sync_directory(dir: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rustix::fs::openat(dir, ".", flags, Mode::empty()) {
        Ok(fd) => match system::sync(fd.as_fd()) {
            // File systems that sync no directories say so.
            Err(Errno::INVAL | Errno::NOTSUP | Errno::ROFS) => Ok(()),
            other => other,
        },
        Err(Errno::ACCESS | Errno::PERM) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Parents that were made on the way; they go again when this is dropped without being kept.
#[derive(Debug)]
pub(crate) struct Made<'a> {
    steps: Vec<Step<'a>>,
    kept: bool,
}

#[derive(Debug)]
struct Step<'a> {
    parent: OwnedFd,
    name: OsString,
    #[allow(dead_code, reason = "held for its drop, which strikes it from the journal")]
    entry: Option<Entry<'a>>,
}

impl Made<'_> {
    /// How many were made.
    pub(crate) fn count(&self) -> usize {
        self.steps.len()
    }

    /// They stay; makes them last.
    pub(crate) fn keep(&mut self) -> Result<(), Errno> {
        self.kept = true;
        self.steps.iter().try_for_each(|step| sync_directory(step.parent.as_fd()))
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // Innermost first; one that someone else uses by now is not empty and stays.
        while let Some(step) = self.steps.pop() {
            let _ = rustix::fs::unlinkat(&step.parent, &step.name, AtFlags::REMOVEDIR);
        }
    }
}

/// The made directories as the caller calls them: prefixes of the joined path where it ends like the real one.
pub(crate) fn directory_names(joined: &Path, missing: &[OsString], dir_path: &Path) -> Vec<PathBuf> {
    let prefixes: Vec<&Path> = joined.ancestors().skip(1).take(missing.len()).collect();
    let alike = prefixes.len() == missing.len()
        && prefixes
            .iter()
            .zip(missing.iter().rev())
            .all(|(prefix, name)| prefix.file_name().is_some_and(|own| own.as_bytes() == name.as_bytes()));
    if alike {
        return prefixes.into_iter().rev().map(Path::to_owned).collect();
    }
    let mut path = dir_path.to_owned();
    let below = missing.iter().map(|name| {
        path.push(name);
        path.clone()
    });
    below.collect()
}
