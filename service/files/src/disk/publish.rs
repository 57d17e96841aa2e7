//! The one way by which bytes reach a disk. A temporary with the whole content, synced and dressed like the file whose
//! place it takes, is exchanged with it in one step; what came out is verified to be what was read, else it goes back.
//! Where the file system has no exchange, a rename follows the last look at the target at once: there, and only there,
//! a gap of microseconds remains. Where no rename is possible the file is written in place (`in_place.rs`).

use filectx_openapi::{EntryType, Warning, WarningCode};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Access, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use xxhash_rust::xxh3::Xxh3Default;

use super::attributes::{carry_over, set_mode};
use super::exchange::{Refused, identity_at, rename_new};
use super::identity::Identity;
use super::in_place::write_in_place;
use super::journal::{Announced, Journal, temporary_name};
use super::locks::{Guard, Key, Locks};
use super::place::{Existing, Last, Place};
use super::pour::{CHUNK, read_at};
use super::roots::{Fences, Located};
use super::system::sync;
use super::temporary::Temporary;
use crate::{Cancel, Error};

/// What a change of the disk works with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disk<'a> {
    pub(crate) fences: &'a Fences,
    pub(crate) locks: &'a Locks,
    pub(crate) journal: Option<&'a Journal>,
    pub(crate) cancel: &'a Cancel,
}

/// A place that nobody else of this engine changes meanwhile, and what is there.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    /// The place.
    pub(crate) place: Place,
    /// What is there.
    pub(crate) existing: Option<Existing>,
    #[allow(dead_code, reason = "held for its drop")]
    guards: (Guard<'a>, Option<Guard<'a>>),
}

/// What was read of the file that is replaced, as far as it can be verified.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen<'a> {
    /// Its content.
    Bytes(&'a [u8]),
    /// The hash of its content.
    Hash(u128),
    /// Its identity alone.
    Identity,
}

/// What a publish came to.
#[derive(Debug)]
pub(crate) struct Published {
    /// Who the file is now.
    pub(crate) identity: Identity,
    /// False when it was written in place.
    pub(crate) atomic: bool,
    /// What could not be kept.
    pub(crate) warnings: Vec<Warning>,
}

impl<'a> Disk<'a> {
    /// Waits for the place of `at`, looks up what is there, and holds both.
    pub(crate) fn hold(&self, at: &Located, last: Last) -> Result<Held<'a>, Error> {
        loop {
            self.cancel.check()?;
            let ended = self.locks.ended();
            let place = self.fences.place(at, last)?;
            let entry = self.locks.acquire(place.key(), self.cancel)?;
            // If another change ended since, links, parents and the file may be others now.
            let moved = || self.locks.ended() != ended;
            if moved() && !self.fences.place(at, last)?.is_same(&place) {
                continue;
            }
            let Some(existing) = present(&place, last)? else {
                return Ok(Held { place, existing: None, guards: (entry, None) });
            };
            let inode = |existing: &Existing| (existing.identity.dev, existing.identity.ino);
            let (dev, ino) = inode(&existing);
            let guard = self.locks.acquire(Key::Inode(dev, ino), self.cancel)?;
            // A publish makes a new inode: is this still the one that is there, and as it was?
            let existing = if moved() { present(&place, last)? } else { Some(existing) };
            if existing.as_ref().map(inode) == Some((dev, ino)) {
                return Ok(Held { place, existing, guards: (entry, Some(guard)) });
            }
        }
    }
}

fn present(place: &Place, last: Last) -> Result<Option<Existing>, Error> {
    match last {
        Last::Followed => place.existing(),
        Last::Itself => match place.look()? {
            Some(identity) if identity.kind() == EntryType::Symlink => {
                Ok(Some(Existing { identity, fd: None }))
            }
            _ => place.existing(),
        },
    }
}

impl Held<'_> {
    /// Lets others change it again.
    pub(crate) fn release(self) -> Place {
        self.place
    }

    /// Fails where the file may not be written: by its mode for everyone, or by the system for this user.
    pub(crate) fn check_may_write(&self) -> Result<(), Error> {
        let Some(existing) = &self.existing else { return Ok(()) };
        if existing.identity.mode & 0o222 == 0 {
            return Err(Error::PermissionDenied);
        }
        match rustix::fs::accessat(&self.place.dir, &self.place.name, Access::WRITE_OK, AtFlags::EACCESS) {
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => Err(Error::PermissionDenied),
            // A program that runs may be replaced; any other trouble shows when it is published.
            _ => Ok(()),
        }
    }

    /// Gives `temporary` the name of the place, where nothing is yet. `None` when something is there by now.
    pub(crate) fn create(
        &self,
        temporary: &mut Temporary<'_>,
        mode: Option<u32>,
    ) -> Result<Option<Published>, Error> {
        if let Some(mode) = mode {
            set_mode(&temporary.file, mode)?;
        }
        sync(temporary.file.as_fd())?;
        let before = Identity::of(&rustix::fs::fstat(&temporary.file)?);
        match temporary.take_new_name(&self.place.name) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(None),
            // The directory was removed meanwhile.
            Err(Errno::NOENT) => return Err(Error::ChangedConcurrently),
            Err(errno) => return Err(errno.into()),
        }
        let identity = settled(before, &temporary.file)?;
        self.place.sync()?;
        Ok(Some(Published { identity, atomic: true, warnings: Vec::new() }))
    }

    /// Puts `temporary` in the place of the existing file, which must still be what was `seen`.
    pub(crate) fn replace(
        &self,
        temporary: &mut Temporary<'_>,
        seen: Seen<'_>,
        journal: Option<&Journal>,
    ) -> Result<Published, Error> {
        let Some(old) = &self.existing else { return Err(Error::ChangedConcurrently) };
        let mut warnings = Vec::new();
        if temporary.beside {
            warnings = carry_over(old, &temporary.file)?;
        }
        sync(temporary.file.as_fd())?;
        let before = Identity::of(&rustix::fs::fstat(&temporary.file)?);
        match self.place.look()? {
            Some(now) if old.identity.is_still(&now) => {}
            _ => return Err(Error::ChangedConcurrently),
        }
        let exchanged =
            if temporary.beside { self.exchange(temporary, old, seen) } else { Err(Refused::Here) };
        match exchanged {
            Ok(()) => {
                if old.identity.links > 1 {
                    warnings.push(Warning {
                        code: WarningCode::HardLinkSplit,
                        message: format!(
                            "the file had {} names; the {} others keep the old content",
                            old.identity.links,
                            old.identity.links - 1
                        ),
                    });
                }
                let identity = settled(before, &temporary.file)?;
                self.place.sync()?;
                Ok(Published { identity, atomic: true, warnings })
            }
            Err(Refused::Here) => {
                let identity = write_in_place(&self.place, old, temporary, seen, journal)?;
                // Nothing but the content was touched, so nothing but it can be lost.
                Ok(Published { identity, atomic: false, warnings: Vec::new() })
            }
            Err(Refused::Failed(error)) => Err(error),
        }
    }

    /// Removes what is there.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        rustix::fs::unlinkat(&self.place.dir, &self.place.name, AtFlags::empty())?;
        Ok(self.place.sync()?)
    }

    /// Removes what is there if it is still what was `seen`: moved aside first, where nobody changes it any more.
    pub(crate) fn remove_if_still(&self, seen: Seen<'_>, journal: Option<&Journal>) -> Result<(), Error> {
        let Some(old) = &self.existing else { return Err(Error::ChangedConcurrently) };
        match self.place.look()? {
            Some(now) if old.identity.is_still(&now) => {}
            _ => return Err(Error::ChangedConcurrently),
        }
        let (dir, name) = (&self.place.dir, &self.place.name);
        let aside = temporary_name();
        let path = self.place.dir_path.join(&aside);
        let entry = journal.map(|journal| journal.announce(&Announced::Aside(path, self.place.path())));
        rename_new(dir, name, dir, &aside)?;
        let still = identity_at(dir, &aside).is_some_and(|now| old.identity.is_same_content(&now));
        if still && holds(old, seen) {
            rustix::fs::unlinkat(dir, &aside, AtFlags::empty())?;
            drop(entry);
            return Ok(self.place.sync()?);
        }
        match rename_new(dir, &aside, dir, name) {
            // Someone made a new one meanwhile: that is the newer.
            Err(Errno::EXIST) => rustix::fs::unlinkat(dir, &aside, AtFlags::empty())?,
            other => other?,
        }
        Err(Error::ChangedConcurrently)
    }
}

/// Whether the file still holds what was seen.
pub(super) fn holds(old: &Existing, seen: Seen<'_>) -> bool {
    let Some(fd) = &old.fd else { return true };
    match seen {
        Seen::Identity => true,
        Seen::Bytes(bytes) => {
            let mut buffer = vec![0; CHUNK.min(bytes.len() + 1)];
            let mut at = 0;
            loop {
                match read_at(fd, &mut buffer, at as u64) {
                    Ok(0) => return at == bytes.len(),
                    Ok(read) if bytes.get(at..at + read) == Some(&buffer[..read]) => at += read,
                    _ => return false,
                }
            }
        }
        Seen::Hash(hash) => hash_of(fd).is_ok_and(|now| now == hash),
    }
}

fn hash_of(fd: &OwnedFd) -> Result<u128, Errno> {
    let mut hasher = Xxh3Default::new();
    let mut buffer = vec![0; CHUNK];
    let mut at = 0;
    loop {
        let read = read_at(fd, &mut buffer, at)?;
        if read == 0 {
            return Ok(hasher.digest128());
        }
        hasher.update(&buffer[..read]);
        at += read as u64;
    }
}

/// The published file's identity. The rename moved its ctime; if anything else moved, someone else wrote already, and
/// theirs must not pass for ours.
fn settled(before: Identity, file: impl AsFd) -> Result<Identity, Errno> {
    let after = Identity::of(&rustix::fs::fstat(file)?);
    Ok(Identity { ctime_ns: after.ctime_ns, links: after.links, ..before })
}

/// Opens the existing file for writing, without following a link.
pub(super) fn open_to_write(place: &Place) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::openat(&place.dir, &place.name, flags, Mode::empty())
}

#[cfg(test)]
mod tests;
