//! One file in another's place, in one step: exchanged, and given back when what came out is not what was read. Where
//! the file system exchanges nothing, a rename.

use std::ffi::OsStr;

use rustix::fd::OwnedFd;
use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::identity::Identity;
use super::place::Existing;
use super::publish::{Held, Seen, holds};
use super::system::{rename_no_replace, swap};
use super::temporary::Temporary;
use crate::Error;

impl Held<'_> {
    /// Exchanges the existing file, which was `seen`, with `temporary`.
    pub(super) fn exchange(
        &self,
        temporary: &mut Temporary<'_>,
        old: &Existing,
        seen: Seen<'_>,
    ) -> Result<(), Refused> {
        let name = temporary.name().map_err(Refused::from)?.to_owned();
        let (dir, target) = (&self.place.dir, &self.place.name);
        let ours = Identity::of(&rustix::fs::fstat(&temporary.file).map_err(Refused::from)?);
        match swap(dir, &name, target) {
            Ok(()) => {}
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP | Errno::NOTTY) => {
                rustix::fs::renameat(dir, &name, dir, target).map_err(Refused::from)?;
                temporary.forget();
                return Ok(());
            }
            Err(Errno::NOENT) => return Err(Refused::Failed(Error::ChangedConcurrently)),
            Err(errno) => return Err(Refused::from(errno)),
        }
        let came_out = identity_at(dir, &name);
        if came_out.is_some_and(|now| old.identity.is_same_content(&now)) && holds(old, seen) {
            temporary.remove().map_err(|errno| Refused::Failed(errno.into()))?;
            return Ok(());
        }
        Err(Refused::Failed(self.swap_back(temporary, &name, &ours, came_out)))
    }

    /// Someone changed the target between the last look and the exchange: theirs goes back in its place.
    pub(super) fn swap_back(
        &self,
        temporary: &mut Temporary<'_>,
        name: &OsStr,
        ours: &Identity,
        theirs: Option<Identity>,
    ) -> Error {
        let (dir, target) = (&self.place.dir, &self.place.name);
        match swap(dir, name, target) {
            Ok(()) => {}
            Err(Errno::NOENT) if rename_new(dir, name, dir, target).is_ok() => {
                temporary.forget();
                return Error::ChangedConcurrently;
            }
            Err(errno) => {
                // What lies aside is someone's; better a stray file than a lost one.
                temporary.forget();
                return errno.into();
            }
        }
        let is = |now: Option<Identity>, known: &Identity| now.is_some_and(|now| known.is_same_content(&now));
        if is(identity_at(dir, name), ours) {
            let _ = temporary.remove();
            return Error::ChangedConcurrently;
        }
        // While ours was in place, someone built on it or replaced it: that is the newest, and belongs there.
        if swap(dir, name, target).is_ok() && theirs.is_some_and(|theirs| is(identity_at(dir, name), &theirs))
        {
            let _ = temporary.remove();
        } else {
            temporary.forget();
        }
        Error::ChangedConcurrently
    }
}

/// Why a file did not take another's place.
pub(super) enum Refused {
    /// The system does not rename here; the file may be written in place.
    Here,
    /// For good.
    Failed(Error),
}

impl From<Errno> for Refused {
    fn from(errno: Errno) -> Self {
        match errno {
            // A mount point, another file system, a directory that may not be changed.
            Errno::BUSY | Errno::XDEV | Errno::TXTBSY | Errno::ACCESS | Errno::PERM | Errno::ROFS => {
                Refused::Here
            }
            errno => Refused::Failed(errno.into()),
        }
    }
}

/// Who is at `name`, if anyone.
pub(super) fn identity_at(dir: &OwnedFd, name: &OsStr) -> Option<Identity> {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| Identity::of(&stat))
}

/// Renames without replacing what may be there.
pub(super) fn rename_new(from_dir: &OwnedFd, from: &OsStr, dir: &OwnedFd, to: &OsStr) -> Result<(), Errno> {
    match rename_no_replace(from_dir, from, dir, to) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
        other => return other,
    }
    match rustix::fs::linkat(from_dir, from, dir, to, AtFlags::empty()) {
        Ok(()) => rustix::fs::unlinkat(from_dir, from, AtFlags::empty()),
        // A file system without hard links.
        Err(Errno::PERM | Errno::NOTSUP | Errno::NOSYS) => {
            if identity_at(dir, to).is_some() {
                return Err(Errno::EXIST);
            }
            rustix::fs::renameat(from_dir, from, dir, to)
        }
        Err(errno) => Err(errno),
    }
}
