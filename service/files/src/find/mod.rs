//! What `find-text` and `find-paths` share: the roots in request order, what was passed over, the place where a page
//! ended. `text.rs` and `paths.rs` are the verbs, `feed.rs` joins the walks of the roots into one.

mod content;
mod cursor;
mod feed;
mod merge;
mod paths;
mod pattern;
mod rows;
#[cfg(test)]
mod tests;
mod text;
mod worker;

use std::path::Path;

use filectx_openapi::{Code, FindError, ItemError, Skipped, lossy, lossy_base64};

use crate::bytes::glob::{GlobError, Globs};
use crate::disk::found::Skip;
use crate::disk::roots::to_path;
use crate::{Error, escaped};

/// How many errors are listed; all are counted.
const LISTED_ERRORS: usize = 20;
/// The most bytes of one request's globs.
const GLOB_BYTES: usize = 256 << 10;

/// What a search passed over or could not do, so far.
#[derive(Clone, Debug, Default)]
struct Tally {
    files_searched: u64,
    skipped: Skipped,
    errors: Vec<FindError>,
    error_count: u64,
}

impl Tally {
    fn skip(&mut self, skip: Skip) {
        match skip {
            Skip::Hidden => self.skipped.hidden += 1,
            Skip::Ignored => self.skipped.ignored += 1,
            Skip::LinkedDirectory => self.skipped.linked_directories += 1,
        }
    }

    /// A file or directory that is there and could not be searched.
    fn unreadable(&mut self, shown: &[u8], error: &Error) {
        self.skipped.unreadable += 1;
        self.fail(shown, error);
    }

    fn fail(&mut self, shown: &[u8], error: &Error) {
        let ItemError { code, message, .. } = error.item(&to_path(shown));
        self.list(shown, code, message);
    }

    /// A failure that is a search's alone.
    fn fail_as(&mut self, shown: &[u8], code: Code, detail: &str) {
        self.list(shown, code, format!("{}: {detail}", escaped(shown)));
    }

    fn list(&mut self, shown: &[u8], code: Code, message: String) {
        self.error_count += 1;
        if self.errors.len() < LISTED_ERRORS {
            self.errors.push(FindError {
                path: lossy(shown),
                path_base64: lossy_base64(shown),
                code,
                message,
            });
        }
    }

    /// Adds what was met later.
    fn append(&mut self, later: Tally) {
        self.files_searched += later.files_searched;
        let (sum, more) = (&mut self.skipped, later.skipped);
        sum.hidden += more.hidden;
        sum.ignored += more.ignored;
        sum.binary += more.binary;
        sum.unreadable += more.unreadable;
        sum.special += more.special;
        sum.linked_files += more.linked_files;
        sum.linked_directories += more.linked_directories;
        self.error_count += later.error_count;
        let room = LISTED_ERRORS - self.errors.len().min(LISTED_ERRORS);
        self.errors.extend(later.errors.into_iter().take(room));
    }
}

/// The globs of a request: what is asked for (no filter when nothing is), and what is left out.
fn parse_globs(globs: &[String]) -> Result<(Option<Globs>, Globs), ItemError> {
    let bytes: usize = globs.iter().map(String::len).sum();
    if bytes > GLOB_BYTES {
        let detail = format!("{bytes} bytes of globs are over the limit of {GLOB_BYTES}");
        let limit = Some(GLOB_BYTES as u64);
        return Err(Error::InvalidRequest { pointer: "/globs".into(), detail, limit }.item(Path::new("")));
    }
    let (mut included, mut excluded) = (Globs::default(), Globs::default());
    for glob in globs {
        let (set, text, cut) = match glob.strip_prefix('!') {
            Some(rest) => (&mut excluded, rest, 1),
            None => (&mut included, glob.as_str(), 0),
        };
        set.add(text).map_err(|error| bad_glob(glob, &error, cut))?;
    }
    let included = (!included.is_empty()).then(|| included.below_directories());
    Ok((included, excluded))
}

fn bad_glob(glob: &str, error: &GlobError, cut: usize) -> ItemError {
    let offset = (error.offset + cut) as u64;
    let detail = format!("the glob {glob:?} cannot be read: at byte {offset}, {}", error.detail);
    Error::InvalidPattern { offset: Some(offset), detail }.item(Path::new(""))
}

/// Fails on a number that has to be at least 1.
fn check_positive(value: u64, pointer: &str) -> Result<(), ItemError> {
    if value == 0 {
        return Err(Error::invalid_request(pointer, "0; it is at least 1").item(Path::new("")));
    }
    Ok(())
}

/// Whether a failed open means that the file went away since its name was read.
fn went_away(error: &Error) -> bool {
    matches!(error, Error::NotFound { .. } | Error::LinkLoop)
        || matches!(error, Error::Io { errno } if *errno == rustix::io::Errno::NOTDIR)
}

/// Ends a verb that was cancelled.
fn cancelled() -> ItemError {
    ItemError::new(Code::DeadlineExceeded, "given up, as the caller is gone")
}
