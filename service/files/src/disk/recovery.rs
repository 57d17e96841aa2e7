//! The next start after a kill: settles what the journal of a dead process announced. Touches only what is surely that
//! process's: names that only this program gives, files that are still the ones it wrote to.

use std::ffi::OsString;
use std::path::Path;

use filectx_openapi::EntryType;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::identity::Identity;
use super::journal::{Announced, Swept, is_temporary};
use super::open::{Bounds, Links, open_beneath};
use super::pour::pour;

/// A target that was changed so long after its copy was made was changed by someone else.
const LATE_NS: i128 = 3_600 * 1_000_000_000;

/// Settles one announcement; false when it has to be tried again at a later start.
pub(super) fn settle(announced: &Announced, swept: &mut Swept) -> bool {
    match announced {
        Announced::Temporary(path) => {
            if remove(path) {
                swept.removed.push(path.clone());
            }
            true
        }
        Announced::Directory(path) => {
            if let Some((dir, name)) = parent_of(path) {
                let _ = rustix::fs::unlinkat(&dir, &name, AtFlags::REMOVEDIR);
            }
            true
        }
        Announced::Aside(path, from) => {
            if come_back(path, from) {
                swept.restored.push(from.clone());
            }
            true
        }
        Announced::InPlace { copy, target, dev, ino, size, mtime_ns } => {
            let done = complete(copy, target, |now| {
                let same = (now.dev, now.ino) == (*dev, *ino);
                let untouched = now.size == *size && now.mtime_ns == *mtime_ns;
                same && !untouched
            });
            match done {
                Ok(true) => swept.completed.push(target.clone()),
                Ok(false) => {}
                // A full disk: the copy is all there is of the new content.
                Err(_) => return false,
            }
            remove(copy);
            true
        }
    }
}

fn parent_of(path: &Path) -> Option<(OwnedFd, OsString)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // Without links: the paths of the journal are real ones.
    let dir = open_beneath(CWD, path.parent()?, flags, Links::Refused, Bounds::None).ok()?;
    Some((dir, path.file_name()?.to_owned()))
}

fn remove(path: &Path) -> bool {
    let Some((dir, name)) = parent_of(path) else { return false };
    is_temporary(&name)
        && rustix::fs::statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| Identity::of(&stat).kind() == EntryType::File)
        && rustix::fs::unlinkat(&dir, &name, AtFlags::empty()).is_ok()
}

fn come_back(path: &Path, from: &Path) -> bool {
    match (parent_of(path), parent_of(from)) {
        (Some((dir, name)), Some((home, old))) if is_temporary(&name) => {
            super::exchange::rename_new(&dir, &name, &home, &old).is_ok()
        }
        _ => false,
    }
}

fn complete(copy: &Path, target: &Path, wants: impl Fn(&Identity) -> bool) -> Result<bool, Errno> {
    let open = |path: &Path, flags: OFlags| {
        let (dir, name) = parent_of(path).ok_or(Errno::NOENT)?;
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(dir, name, flags, Mode::empty())?;
        let identity = Identity::of(&rustix::fs::fstat(&fd)?);
        if identity.kind() == EntryType::File { Ok((fd, identity)) } else { Err(Errno::NOENT) }
    };
    let (Ok((source, whole)), Ok((sink, now))) = (open(copy, OFlags::RDONLY), open(target, OFlags::RDWR))
    else {
        return Ok(false);
    };
    if !wants(&now) || now.mtime_ns > whole.mtime_ns + LATE_NS {
        return Ok(false);
    }
    pour(&source, &sink, whole.size)?;
    rustix::fs::ftruncate(&sink, whole.size)?;
    rustix::fs::fsync(&sink)?;
    Ok(true)
}
