//! The next start after a kill: settles what the journal of a dead process announced. Touches only what is surely that
//! process's: names that only this program gives, files that are still the ones it wrote to.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use filectx_openapi::EntryType;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::beneath::{From, Links, Opener};
use super::identity::Identity;
use super::journal::{Announced, Swept, is_temporary};
use super::pour::pour;
use super::system::sync;

/// A target that was changed so long after its copy was made was changed by someone else.
const LATE_NS: i128 = 3_600 * 1_000_000_000;

/// Settles one announcement. When that has to be tried again at a later start: the file that must stay until then.
pub(super) fn settle<'a>(announced: &'a Announced, swept: &mut Swept) -> Option<&'a PathBuf> {
    match announced {
        Announced::Temporary(path) => {
            if remove(path) {
                swept.removed.push(path.clone());
            }
        }
        Announced::Directory(path) => {
            if let Ok((dir, name)) = parent_of(path) {
                let _ = rustix::fs::unlinkat(&dir, &name, AtFlags::REMOVEDIR);
            }
        }
        Announced::Aside(path, from) => {
            if come_back(path, from) {
                swept.restored.push(from.clone());
            }
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
                Err(_) => {
                    swept.pending.push(target.clone());
                    return Some(copy);
                }
            }
            remove(copy);
        }
    }
    None
}

fn parent_of(path: &Path) -> Result<(OwnedFd, OsString), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let (parent, name) = path.parent().zip(path.file_name()).ok_or(Errno::NOENT)?;
    // Without links: the paths of the journal are real ones.
    let dir = Opener::here().open(From::Slash, parent, flags, Links::Refused)?;
    Ok((dir, name.to_owned()))
}

fn remove(path: &Path) -> bool {
    let Ok((dir, name)) = parent_of(path) else { return false };
    is_temporary(&name)
        && rustix::fs::statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| Identity::of(&stat).kind() == EntryType::File)
        && rustix::fs::unlinkat(&dir, &name, AtFlags::empty()).is_ok()
}

fn come_back(path: &Path, from: &Path) -> bool {
    match (parent_of(path), parent_of(from)) {
        (Ok((dir, name)), Ok((home, old))) if is_temporary(&name) => {
            super::exchange::rename_new(&dir, &name, &home, &old).is_ok()
        }
        _ => false,
    }
}

/// Pours the copy over the target that `wants` it; whether it did.
fn complete(copy: &Path, target: &Path, wants: impl Fn(&Identity) -> bool) -> Result<bool, Errno> {
    let (Some((source, whole)), Some((sink, now))) =
        (open(copy, OFlags::RDONLY)?, open(target, OFlags::WRONLY)?)
    else {
        return Ok(false);
    };
    if !wants(&now) || now.mtime_ns > whole.mtime_ns + LATE_NS {
        return Ok(false);
    }
    pour(&source, &sink, whole.size)?;
    rustix::fs::ftruncate(&sink, whole.size)?;
    sync(sink.as_fd())?;
    Ok(true)
}

/// The regular file that is at `path`, if one is.
fn open(path: &Path, flags: OFlags) -> Result<Option<(OwnedFd, Identity)>, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = match parent_of(path).and_then(|(dir, name)| rustix::fs::openat(dir, name, flags, Mode::empty()))
    {
        Ok(fd) => fd,
        // Gone, or something else by now: a link, a directory, a pipe that nobody reads.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ISDIR | Errno::NXIO) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    let identity = Identity::of(&rustix::fs::fstat(&fd)?);
    Ok((identity.kind() == EntryType::File).then_some((fd, identity)))
}
