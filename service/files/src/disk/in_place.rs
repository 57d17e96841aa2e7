//! Writing a file in place, where no other file can take its place: a mount point, a closed directory. The whole new
//! content lies synced in a copy first, and the room for it is taken; the journal knows of it, so that a killed
//! process's half is completed at the next start. A failure puts the old content back.

use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

use super::attributes::set_mode;
use super::identity::Identity;
use super::journal::{Announced, Journal};
use super::place::{Existing, Place};
use super::pour::{pour, read_at, write_all_at};
use super::publish::{Seen, holds, open_to_write};
use super::system;
use super::temporary::Temporary;
use crate::Error;

/// The largest old content that is kept in memory against a failure; above it the room taken first is the only guard.
const KEPT: u64 = 64 << 20;

/// Writes the content of `copy`, which is synced, over the existing file.
pub(super) fn write_in_place(
    place: &Place,
    old: &Existing,
    copy: &mut Temporary<'_>,
    seen: Seen<'_>,
    journal: Option<&Journal>,
) -> Result<Identity, Error> {
    let target = open_to_write(place)?;
    let now = Identity::of(&rustix::fs::fstat(&target)?);
    if !old.identity.is_still(&now) || !holds(old, seen) {
        return Err(Error::ChangedConcurrently);
    }
    copy.name()?;
    let length = Identity::of(&rustix::fs::fstat(&copy.file)?).size;
    // Before a byte of the old content is gone.
    system::take_room(&target, length)?;
    let before = old_content(old)?;
    let entry = match (journal, copy.path()) {
        (Some(journal), Some(path)) => {
            Some(journal.announce(&Announced::in_place(path, place.path(), &old.identity)))
        }
        _ => None,
    };
    let written = overwrite(&target, length, || pour(&copy.file, &target, length));
    if let Err(errno) = written {
        let restored = before.is_some_and(|before| {
            overwrite(&target, before.len() as u64, || write_all_at(&target, &before, 0)).is_ok()
        });
        if !restored {
            // Half of each: the copy is whole, and the next start completes it.
            copy.leave();
            entry.into_iter().for_each(super::journal::Entry::leave);
        }
        return Err(errno.into());
    }
    // Writing takes the set-id bits off, from all but root's files.
    let mode = Identity::of(&rustix::fs::fstat(&target)?).mode;
    if mode != old.identity.mode {
        let _ = set_mode(&target, old.identity.mode);
    }
    drop(entry);
    let _ = copy.remove();
    Ok(Identity::of(&rustix::fs::fstat(&target)?))
}

fn overwrite(target: &OwnedFd, length: u64, write: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
    write()?;
    if Identity::of(&rustix::fs::fstat(target)?).size != length {
        rustix::fs::ftruncate(target, length)?;
    }
    system::sync(target.as_fd())
}

fn old_content(old: &Existing) -> Result<Option<Vec<u8>>, Errno> {
    match &old.fd {
        Some(fd) if old.identity.size <= KEPT => {
            let mut content = vec![0; usize::try_from(old.identity.size).map_err(|_| Errno::FBIG)?];
            let read = read_at(fd, &mut content, 0)?;
            content.truncate(read);
            Ok(Some(content))
        }
        _ => Ok(None),
    }
}
