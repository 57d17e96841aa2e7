//! write-file: the whole content of one file, from memory or as a stream, published wholly or not at all.

use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use filectx_openapi::{ItemError, Warning, WriteFileRequest, WriteFileResponse, lossy, lossy_base64};

use crate::bytes::facts::{Facts, warnings_of_change};
use crate::disk::fill::{facts_of, fill};
use crate::disk::identity::{HASHED_BYTES, format_hash};
use crate::disk::place::{Last, Made, Place, directory_names};
use crate::disk::publish::{Disk, Held, Published, Seen};
use crate::disk::roots::check_cwd;
use crate::disk::temporary::{Purpose, Temporary};
use crate::{Cancel, Error, Files, Located, Unlocated};

/// How much of a file too large to be hashed is looked at for its line ends.
const GLANCE: u64 = 256 << 10;

/// Where the content comes from.
enum Source<'a> {
    /// Memory: it is there at once, so the file is held while it is written.
    Memory(&'a [u8]),
    /// A sender who takes his time: nothing is held before it is all there.
    Stream(&'a mut dyn Read),
}

impl Files {
    /// Writes the content that `request` carries.
    pub fn write(&self, request: &WriteFileRequest, cancel: &Cancel) -> Result<WriteFileResponse, ItemError> {
        let content = match (&request.text_content, &request.binary_content) {
            (Some(text), None) => text.as_bytes(),
            (None, Some(bytes)) => bytes.0.as_slice(),
            (Some(_), Some(_)) => {
                return Err(refuse("/binary_content", "text_content is there too; send one"));
            }
            (None, None) => {
                return Err(refuse("/text_content", "missing; send text_content or binary_content"));
            }
        };
        self.write_source(request, Source::Memory(content), cancel)
    }

    /// Writes what `content` gives until its end, with little memory however much that is. `request` carries none.
    pub fn write_from(
        &self,
        request: &WriteFileRequest,
        content: &mut dyn Read,
        cancel: &Cancel,
    ) -> Result<WriteFileResponse, ItemError> {
        for (there, pointer) in [
            (request.text_content.is_some(), "/text_content"),
            (request.binary_content.is_some(), "/binary_content"),
        ] {
            if there {
                return Err(refuse(pointer, "the content comes as a part of its own; leave this out"));
            }
        }
        self.write_source(request, Source::Stream(content), cancel)
    }

    fn write_source(
        &self,
        request: &WriteFileRequest,
        source: Source<'_>,
        cancel: &Cancel,
    ) -> Result<WriteFileResponse, ItemError> {
        let wanted = Wanted::of(request).map_err(|error| error.item(Path::new("")))?;
        let at = self
            .fences()
            .locate(request.path.as_deref(), request.path_base64.as_deref(), request.cwd.as_deref(), "")
            .map_err(|Unlocated { shown, error }| error.item(&shown))?;
        let limit = self.limits().max_write_bytes;
        self.write_located(&at, &wanted, source, limit, &self.disk(cancel))
            .map_err(|error| error.item(at.joined()))
    }

    fn write_located(
        &self,
        at: &Located,
        wanted: &Wanted<'_>,
        source: Source<'_>,
        limit: u64,
        disk: &Disk<'_>,
    ) -> Result<WriteFileResponse, Error> {
        disk.fences.check_change(at)?;
        if at.names_directory() {
            return Err(Error::IsDirectory);
        }
        let mut held = disk.hold(at, Last::Followed)?;
        let mut old = wanted.check(at, &held, disk)?;
        let directories = directory_names(at.joined(), &held.place.missing, &held.place.dir_path);
        let mut made = held.place.make_parents(disk.journal)?;
        if !directories.is_empty() {
            // Now that its directory is there, the file is known by another lock.
            (held, old) = hold_again(at, wanted, &held.release(), disk)?;
        }
        let purpose = if held.existing.is_some() { Purpose::Replacement } else { Purpose::New };
        let mut temporary = Temporary::create(&held.place, purpose, disk.journal)?;
        let new = match source {
            Source::Memory(mut content) => fill(&temporary.file, &mut content, limit, disk.cancel)?,
            Source::Stream(content) => {
                let place = held.release();
                let facts = fill(&temporary.file, content, limit, disk.cancel)?;
                (held, old) = hold_again(at, wanted, &place, disk)?;
                facts
            }
        };
        disk.cancel.check()?;
        let published = publish(wanted, &held, &mut temporary, purpose, &old, disk)?;
        Ok(answer(at, &held, &old, &new, published, &kept(&mut made, directories)?))
    }
}

/// Holds the place that was held before, and looks again at what is there.
fn hold_again<'a>(
    at: &Located,
    wanted: &Wanted<'_>,
    place: &Place,
    disk: &Disk<'a>,
) -> Result<(Held<'a>, Option<Old>), Error> {
    let held = disk.hold(at, Last::Followed)?;
    if !held.place.is_same(place) {
        return Err(Error::ChangedConcurrently);
    }
    let old = wanted.check(at, &held, disk)?;
    Ok((held, old))
}

/// What a request wants, beside the content.
struct Wanted<'a> {
    expected_revision: Option<&'a str>,
    create_only: bool,
    create_parents: bool,
    mode: Option<u32>,
}

impl<'a> Wanted<'a> {
    fn of(request: &'a WriteFileRequest) -> Result<Self, Error> {
        check_cwd(request.cwd.as_deref())?;
        if request.create_only && request.expected_revision.is_some() {
            let detail = "a file that must not be there has no revision; leave expected_revision or this out";
            return Err(Error::invalid_request("/create_only", detail));
        }
        Ok(Self {
            expected_revision: request.expected_revision.as_deref(),
            create_only: request.create_only,
            create_parents: request.create_parents,
            mode: request.mode.as_deref().map(mode_of).transpose()?,
        })
    }

    /// Fails where what is there is not as the request wants it; what is known of it.
    fn check(&self, at: &Located, held: &Held<'_>, disk: &Disk<'_>) -> Result<Option<Old>, Error> {
        let missing = || disk.fences.explain(at, Error::NotFound { sibling: None });
        if held.existing.is_none() {
            let unwanted =
                self.expected_revision.is_some() || (!self.create_parents && !held.place.missing.is_empty());
            return if unwanted { Err(missing()) } else { Ok(None) };
        }
        let old = Old::of(held, disk.cancel)?;
        if self.create_only {
            return Err(Error::AlreadyExists { revision: old.known_revision() });
        }
        if let Some(expected) = self.expected_revision {
            let Some(revision) = &old.revision else { return Err(Error::PermissionDenied) };
            if revision != expected {
                return Err(Error::RevisionMismatch { revision: revision.clone() });
            }
        }
        held.check_may_write()?;
        Ok(Some(old))
    }
}

fn mode_of(text: &str) -> Result<u32, Error> {
    let octal = text.len() == 4 && text.bytes().all(|b| matches!(b, b'0'..=b'7'));
    octal
        .then(|| u32::from_str_radix(text, 8).ok())
        .flatten()
        .ok_or_else(|| Error::invalid_request("/mode", "not four octal digits, such as \"0644\""))
}

/// The file that is replaced.
struct Old {
    /// `None` where it may not be read.
    revision: Option<String>,
    stat_revision: String,
    /// Of its beginning where it is too large to be hashed.
    facts: Facts,
    hash: Option<u128>,
}

impl Old {
    fn of(held: &Held<'_>, cancel: &Cancel) -> Result<Self, Error> {
        let Some(existing) = &held.existing else { return Err(Error::NotFound { sibling: None }) };
        let stat_revision = existing.identity.stat_revision();
        let Some(fd) = &existing.fd else {
            return Ok(Self { revision: None, stat_revision, facts: Facts::default(), hash: None });
        };
        if existing.identity.size > HASHED_BYTES {
            let facts = facts_of(fd, GLANCE, cancel)?;
            return Ok(Self { revision: Some(stat_revision.clone()), stat_revision, facts, hash: None });
        }
        let facts = facts_of(fd, HASHED_BYTES + 1, cancel)?;
        let hash = facts.hash();
        Ok(Self { revision: Some(format_hash(hash)), stat_revision, facts, hash: Some(hash) })
    }

    fn known_revision(&self) -> String {
        self.revision.clone().unwrap_or_else(|| self.stat_revision.clone())
    }
}

fn publish(
    wanted: &Wanted<'_>,
    held: &Held<'_>,
    temporary: &mut Temporary<'_>,
    purpose: Purpose,
    old: &Option<Old>,
    disk: &Disk<'_>,
) -> Result<Published, Error> {
    if let Some(old) = old {
        let seen = old.hash.map_or(Seen::Identity, Seen::Hash);
        return held.replace(temporary, seen, disk.journal);
    }
    if purpose == Purpose::Replacement {
        // It was there when the content began to come, and is gone.
        return Err(Error::ChangedConcurrently);
    }
    if let Some(published) = held.create(temporary, wanted.mode)? {
        return Ok(published);
    }
    // Someone else made it meanwhile, past the lock.
    match (wanted.create_only, held.place.existing()?) {
        (true, Some(existing)) => {
            Err(Error::AlreadyExists { revision: revision_of(&existing, disk.cancel)? })
        }
        _ => Err(Error::ChangedConcurrently),
    }
}

fn revision_of(existing: &crate::disk::place::Existing, cancel: &Cancel) -> Result<String, Error> {
    match &existing.fd {
        Some(fd) if existing.identity.size <= HASHED_BYTES => {
            Ok(format_hash(facts_of(fd, HASHED_BYTES + 1, cancel)?.hash()))
        }
        _ => Ok(existing.identity.stat_revision()),
    }
}

/// The parents stay; their names.
fn kept(made: &mut Made<'_>, mut directories: Vec<PathBuf>) -> Result<Vec<PathBuf>, Error> {
    // Someone else made the outer ones meanwhile: they are not ours to tell.
    let others = directories.len().saturating_sub(made.count());
    directories.drain(..others);
    made.keep()?;
    Ok(directories)
}

fn answer(
    at: &Located,
    held: &Held<'_>,
    old: &Option<Old>,
    new: &Facts,
    published: Published,
    directories: &[PathBuf],
) -> WriteFileResponse {
    let path = at.joined().as_os_str().as_bytes();
    let mut warnings: Vec<Warning> = published.warnings;
    if let Some(old) = old {
        warnings.extend(warnings_of_change(&old.facts, new));
    }
    let revision = if new.length() <= HASHED_BYTES {
        format_hash(new.hash())
    } else {
        published.identity.stat_revision()
    };
    WriteFileResponse {
        path: lossy(path),
        path_base64: lossy_base64(path),
        real_path: held.place.real_path.as_ref().map(|real| lossy(real.as_os_str().as_bytes())),
        revision,
        previous_revision: old.as_ref().and_then(|old| old.revision.clone()),
        created: old.is_none(),
        bytes_written: new.length(),
        created_directories: directories.iter().map(|path| lossy(path.as_os_str().as_bytes())).collect(),
        atomic: published.atomic,
        warnings,
    }
}

fn refuse(pointer: &str, detail: &str) -> ItemError {
    Error::invalid_request(pointer, detail).item(Path::new(""))
}

#[cfg(test)]
mod tests;
