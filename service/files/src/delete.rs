//! delete-file: one regular file or link, never a directory. Nothing is created on the way.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use filectx_openapi::{DeleteFileRequest, DeleteFileResponse, EntryType, ItemError, lossy, lossy_base64};

use crate::disk::fill::facts_of;
use crate::disk::identity::{HASHED_BYTES, format_hash, hash_revision};
use crate::disk::place::{Existing, Last};
use crate::disk::publish::{Disk, Held, Seen};
use crate::disk::roots::check_cwd;
use crate::{Cancel, Error, Files, Located, Unlocated};

impl Files {
    /// Deletes the file or link that `request` names.
    pub fn delete(
        &self,
        request: &DeleteFileRequest,
        cancel: &Cancel,
    ) -> Result<DeleteFileResponse, ItemError> {
        check_cwd(request.cwd.as_deref()).map_err(|error| error.item(Path::new("")))?;
        let at = self
            .fences()
            .locate(request.path.as_deref(), request.path_base64.as_deref(), request.cwd.as_deref(), "")
            .map_err(|Unlocated { shown, error }| error.item(&shown))?;
        delete_located(&at, request.expected_revision.as_deref(), &self.disk(cancel))
            .map_err(|error| error.item(at.joined()))?;
        let path = at.joined().as_os_str().as_bytes();
        Ok(DeleteFileResponse { path: lossy(path), path_base64: lossy_base64(path), deleted: true })
    }
}

fn delete_located(at: &Located, expected: Option<&str>, disk: &Disk<'_>) -> Result<(), Error> {
    if at.must_be_directory() {
        return Err(no_file(at, disk));
    }
    let held = disk.hold(at, Last::Itself)?;
    let Some(existing) = &held.existing else {
        return Err(disk.fences.explain(at, Error::NotFound { sibling: None }));
    };
    let Some(expected) = expected else {
        disk.cancel.check()?;
        return held.remove();
    };
    let (revision, seen) = revision_of(at, &held, existing, disk)?;
    if revision != expected {
        return Err(Error::RevisionMismatch { revision });
    }
    disk.cancel.check()?;
    held.remove_if_still(seen, disk.journal)
}

/// Why a path that can only name a directory names no file to delete.
fn no_file(at: &Located, disk: &Disk<'_>) -> Error {
    let found = disk.fences.check_change(at).and_then(|()| disk.fences.look(at));
    match found {
        Ok(identity) if identity.kind() == EntryType::Directory => Error::IsDirectory,
        Ok(_) => disk.fences.explain(at, Error::Io { errno: rustix::io::Errno::NOTDIR }),
        Err(error) => disk.fences.explain(at, error),
    }
}

/// The revision that a read of this path tells: a link's is that of what it leads to.
fn revision_of<'a>(
    at: &Located,
    held: &Held<'_>,
    existing: &Existing,
    disk: &Disk<'_>,
) -> Result<(String, Seen<'a>), Error> {
    if existing.identity.kind() == EntryType::Symlink {
        let revision = match disk.fences.open_file(at) {
            Ok(opened) if opened.identity.size <= HASHED_BYTES => {
                format_hash(facts_of(&opened.fd, HASHED_BYTES + 1, disk.cancel)?.hash())
            }
            Ok(opened) => opened.identity.stat_revision(),
            // It leads nowhere that could be read: the link alone.
            Err(_) => hash_revision(held.place.link_text()?.as_bytes()),
        };
        return Ok((revision, Seen::Identity));
    }
    let Some(fd) = &existing.fd else { return Err(Error::PermissionDenied) };
    if existing.identity.size > HASHED_BYTES {
        return Ok((existing.identity.stat_revision(), Seen::Identity));
    }
    let hash = facts_of(fd, HASHED_BYTES + 1, disk.cancel)?.hash();
    Ok((format_hash(hash), Seen::Hash(hash)))
}

#[cfg(test)]
mod tests;
