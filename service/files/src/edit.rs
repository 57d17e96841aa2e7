//! edit-file: exact edits of one text file, all of them as one write, or none.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use filectx_openapi::{
    EditFileRequest, EditFileResponse, ItemError, Warning, WarningCode, lossy, lossy_base64,
};
use rustix::io::Errno;

use crate::bytes::diff::{self, Diff};
use crate::bytes::kind::{Kind, SAMPLE, Text, classify};
use crate::bytes::matching::{Applied, Options, apply};
use crate::bytes::trace::Change;
use crate::disk::fill::{content_of, fill_with};
use crate::disk::identity::{HASHED_BYTES, Identity, hash_revision};
use crate::disk::place::Last;
use crate::disk::publish::{Disk, Held, Seen};
use crate::disk::roots::check_cwd;
use crate::disk::temporary::{Purpose, Temporary};
use crate::{Cancel, Error, Files, Located, Unlocated};

/// How often a file that moves while it is read is read again.
const READS: u32 = 4;

impl Files {
    /// Applies the edits of `request` to the file that it names.
    pub fn edit(&self, request: &EditFileRequest, cancel: &Cancel) -> Result<EditFileResponse, ItemError> {
        check(request).map_err(|error| error.item(Path::new("")))?;
        let at = self
            .fences()
            .locate(request.path.as_deref(), request.path_base64.as_deref(), request.cwd.as_deref(), "")
            .map_err(|Unlocated { shown, error }| error.item(&shown))?;
        let limit = self.limits().max_write_bytes;
        edit_located(&at, request, limit, &self.disk(cancel)).map_err(|error| error.item(at.joined()))
    }
}

fn check(request: &EditFileRequest) -> Result<(), Error> {
    check_cwd(request.cwd.as_deref())?;
    if request.edits.is_empty() {
        return Err(Error::invalid_request("/edits", "empty; send at least one edit"));
    }
    if let Some(index) = request.edits.iter().position(|edit| edit.old_text.is_empty()) {
        let detail = "empty; an edit names the text that it replaces (write-file writes a whole file)";
        return Err(Error::invalid_request(format!("/edits/{index}/old_text"), detail));
    }
    Ok(())
}

fn edit_located(
    at: &Located,
    request: &EditFileRequest,
    limit: u64,
    disk: &Disk<'_>,
) -> Result<EditFileResponse, Error> {
    for _ in 0..READS {
        let held = disk.hold(at, Last::Followed)?;
        let (content, before) = read(at, &held, limit, disk)?;
        let Some(before) = before else { continue };
        let previous_revision = revision(&content, &before);
        if let Some(expected) = &request.expected_revision
            && *expected != previous_revision
        {
            return Err(Error::RevisionMismatch { revision: previous_revision });
        }
        let text = text_of(&content, &held)?;
        held.check_may_write()?;
        let options = Options { line_endings: request.line_endings, line_breaks: request.line_breaks, limit };
        let applied = apply(&content, text, &request.edits, &options, disk.cancel)?;
        let diff = diff_of(at, text, &content, &applied, disk.cancel)?;
        let outcome = if request.dry_run {
            Outcome { revision: foreseen(&applied.content), atomic: true, warnings: Vec::new() }
        } else {
            publish(&held, &content, &applied.content, disk)?
        };
        return Ok(answer(at, &held, previous_revision, applied, diff, outcome));
    }
    // It is being written all the time.
    Err(Error::ChangedConcurrently)
}

/// The content and who the file was; no identity when it moved while it was read.
fn read(
    at: &Located,
    held: &Held<'_>,
    limit: u64,
    disk: &Disk<'_>,
) -> Result<(Vec<u8>, Option<Identity>), Error> {
    let Some(existing) = &held.existing else {
        return Err(disk.fences.explain(at, Error::NotFound { sibling: None }));
    };
    if at.must_be_directory() {
        return Err(disk.fences.explain(at, Error::Io { errno: Errno::NOTDIR }));
    }
    let Some(fd) = &existing.fd else { return Err(Error::PermissionDenied) };
    let (content, after) = content_of(fd, limit, disk.cancel)?;
    Ok((content, existing.identity.is_still(&after).then_some(after)))
}

fn text_of(content: &[u8], held: &Held<'_>) -> Result<Text, Error> {
    let whole = content.len() <= SAMPLE;
    match classify(&content[..content.len().min(SAMPLE)], whole, held.place.name.as_bytes()) {
        Kind::Text(text) => Ok(text),
        Kind::Image(format) => Err(Error::NotText { mime_type: format.mime_type().to_owned() }),
        Kind::Binary(mime_type) => Err(Error::NotText { mime_type }),
    }
}

fn revision(content: &[u8], identity: &Identity) -> String {
    if content.len() as u64 <= HASHED_BYTES { hash_revision(content) } else { identity.stat_revision() }
}

/// The revision that a content would have. That of a large file tells its inode and times, which nobody knows before:
/// what is told here then is a revision that no file ever has.
fn foreseen(content: &[u8]) -> String {
    let hash = hash_revision(content);
    if content.len() as u64 <= HASHED_BYTES { hash } else { format!("stat:foreseen-{hash}") }
}

fn diff_of(at: &Located, text: Text, old: &[u8], applied: &Applied, cancel: &Cancel) -> Result<Diff, Error> {
    let shifted = |range: &std::ops::Range<usize>| range.start + text.bom..range.end + text.bom;
    let changes: Vec<Change> = applied
        .trace
        .changes()
        .iter()
        .map(|change| Change { old: shifted(&change.old), new: shifted(&change.new) })
        .collect();
    let path = at.joined().as_os_str().as_bytes();
    diff::unified(path, text.encoding, (old, &applied.content), &changes, cancel)
}

struct Outcome {
    revision: String,
    atomic: bool,
    warnings: Vec<Warning>,
}

fn publish(held: &Held<'_>, old: &[u8], new: &[u8], disk: &Disk<'_>) -> Result<Outcome, Error> {
    let mut temporary = Temporary::create(&held.place, Purpose::Replacement, disk.journal)?;
    fill_with(&temporary.file, new, disk.cancel)?;
    // From here on the outcome is one or the other, whether the caller is still there or not.
    disk.cancel.check()?;
    let published = held.replace(&mut temporary, Seen::Bytes(old), disk.journal)?;
    Ok(Outcome {
        revision: revision(new, &published.identity),
        atomic: published.atomic,
        warnings: published.warnings,
    })
}

fn answer(
    at: &Located,
    held: &Held<'_>,
    previous_revision: String,
    applied: Applied,
    diff: Diff,
    outcome: Outcome,
) -> EditFileResponse {
    let path = at.joined().as_os_str().as_bytes();
    let Outcome { revision, atomic, mut warnings } = outcome;
    if diff.cut {
        let message =
            format!("the diff is longer than {} bytes and was cut; the file has all of it", diff::LONGEST);
        warnings.push(Warning { code: WarningCode::DiffCut, message });
    }
    EditFileResponse {
        path: lossy(path),
        path_base64: lossy_base64(path),
        real_path: held.place.real_path.as_ref().map(|real| lossy(real.as_os_str().as_bytes())),
        revision,
        previous_revision,
        edits: applied.edits,
        diff: diff.text,
        line_count: applied.line_count,
        atomic,
        warnings,
    }
}

#[cfg(test)]
mod tests;
