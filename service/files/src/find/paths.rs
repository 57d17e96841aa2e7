//! The verb `find-paths`: names that match a pattern, in the order of the walk.

use std::path::Path;

use filectx_openapi::{
    EntryType, FindPathsRequest, FindPathsResponse, FindTruncation, FoundPath, ItemError, LimitName,
    PathTypeFilter, lossy, lossy_base64,
};

use super::cursor::Cursor;
use super::feed::{Feed, Found, SearchRoot, search_roots};
use super::{Tally, bad_glob, cancelled, check_positive, parse_globs};
use crate::bytes::glob::{Globs, comparable};
use crate::disk::walk::Rules;
use crate::{Cancel, Error, Files};

/// What names are compared with.
enum Wanted {
    /// Every name, or those that the walk's filters let pass.
    Any,
    /// A text in the name, or in the path from the root; in NFC, in lower case unless case counts.
    Text { text: String, in_path: bool, case_sensitive: bool },
}

impl Files {
    /// Searches names.
    pub fn find_paths(
        &self,
        request: &FindPathsRequest,
        cancel: &Cancel,
    ) -> Result<FindPathsResponse, ItemError> {
        check_positive(request.max_results, "/max_results")?;
        let cursor = Cursor::decode(request.after.as_deref())?;
        let roots = search_roots(self.fences(), request.paths.as_deref(), request.cwd.as_deref())?;
        let (included, excluded) = parse_globs(&request.globs)?;
        let mut rules = Rules {
            hidden: request.hidden,
            ignore_files: request.ignore_files,
            filters: included.into_iter().collect(),
            excluded,
            ..Rules::default()
        };
        let pattern = request.pattern.as_deref();
        if let Some(pattern) = pattern {
            parse_pattern(pattern, &mut rules)?;
        }
        let wanted = |root: &SearchRoot| pattern.map_or(Wanted::Any, |pattern| Wanted::of(pattern, root));
        let wanted: Vec<Wanted> = roots.iter().map(wanted).collect();
        let mut answer = Answer::new(request, self);
        let mut feed = Feed::new(self.fences(), &rules, &roots, cursor.as_ref(), false);
        let interrupted = loop {
            match feed.next(&mut answer.tally, cancel) {
                Ok(Some(found)) if is_cursor(&found, cursor.as_ref()) => {}
                Ok(Some(found)) => {
                    answer.count_links(&found);
                    let shown =
                        answer.wants(&found) && wanted[found.root].takes(&found, &roots[found.root], &rules);
                    if shown && answer.add(&found, &roots[found.root]) {
                        break None;
                    }
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        match interrupted {
            Some(Error::Cancelled) => return Err(cancelled()),
            None => {
                if let Some(problem) = feed.failure() {
                    return Err(problem);
                }
            }
            Some(_) => {}
        }
        Ok(answer.finish(interrupted.is_some()))
    }
}

/// Whether it is the row that ended the page before.
fn is_cursor(found: &Found, cursor: Option<&Cursor>) -> bool {
    cursor.is_some_and(|cursor| cursor.root == found.root && cursor.path == found.below())
}

fn is_glob(pattern: &str) -> bool {
    pattern.contains(['*', '?', '[', '{'])
}

/// Makes the walk obey the pattern: as a filter where it is a glob; the names that it spells out are consent.
fn parse_pattern(pattern: &str, rules: &mut Rules) -> Result<(), ItemError> {
    if pattern.is_empty() {
        let detail = "the pattern is empty; leave it out to list everything".to_owned();
        return Err(Error::InvalidPattern { offset: Some(0), detail }.item(Path::new("")));
    }
    if is_glob(pattern) {
        let mut filter = Globs::default();
        filter.add(pattern).map_err(|error| bad_glob(pattern, &error, 0))?;
        rules.filters.push(filter);
    } else {
        let names: Vec<_> = pattern.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
        if !names.is_empty() {
            rules.spelled.add_names(names.into_iter());
        }
    }
    Ok(())
}

impl Wanted {
    fn of(pattern: &str, root: &SearchRoot) -> Self {
        if is_glob(pattern) {
            return Wanted::Any;
        }
        let case_sensitive = pattern.chars().any(char::is_uppercase);
        let in_path = pattern.contains('/');
        // Absolute and below the root: what is left of it there.
        let text = root.strip(pattern).unwrap_or_else(|| pattern.trim_start_matches("./"));
        let text = comparable(text.as_bytes());
        let text = if case_sensitive { text.into_owned() } else { text.to_lowercase() };
        Wanted::Text { text, in_path, case_sensitive }
    }

    fn takes(&self, found: &Found, root: &SearchRoot, rules: &Rules) -> bool {
        let shown;
        let path = match &found.entry {
            Some(entry) => &entry.path,
            None => {
                shown = root.name();
                &shown
            }
        };
        let name = path.rsplit(|&b| b == b'/').next().unwrap_or_default();
        if found.entry.is_none() {
            // A root that is a file was not judged by the walk.
            let name = comparable(name);
            let passes = |globs: &Globs| globs.accepts(&globs.start(b""), &name, false);
            if !rules.filters.iter().all(passes) || passes(&rules.excluded) {
                return false;
            }
        }
        match self {
            Wanted::Any => true,
            Wanted::Text { text, in_path, case_sensitive } => {
                let hay = comparable(if *in_path { path } else { name });
                if *case_sensitive {
                    hay.contains(text.as_str())
                } else {
                    hay.to_lowercase().contains(text.as_str())
                }
            }
        }
    }
}

/// The answer, as far as it is known.
struct Answer {
    type_: PathTypeFilter,
    max_results: u64,
    max_rows: u64,
    max_bytes: u64,
    bytes: u64,
    paths: Vec<FoundPath>,
    tally: Tally,
    /// What was passed over up to the last path, and where that is.
    last: Option<(Tally, Cursor)>,
    cut: Option<LimitName>,
}

impl Answer {
    fn new(request: &FindPathsRequest, files: &Files) -> Self {
        Self {
            type_: request.type_,
            max_results: request.max_results,
            max_rows: files.limits().max_find_rows.max(1),
            max_bytes: files.limits().max_find_bytes.max(1),
            bytes: 0,
            paths: Vec::new(),
            tally: Tally::default(),
            last: None,
            cut: None,
        }
    }

    /// Links are listed, and neither followed nor what they lead to; they are counted.
    fn count_links(&mut self, found: &Found) {
        let Some((target, followed)) = found.entry.as_ref().and_then(|entry| entry.link) else { return };
        if followed {
            return;
        }
        match target {
            Some(EntryType::Directory) => self.tally.skipped.linked_directories += 1,
            _ => self.tally.skipped.linked_files += 1,
        }
    }

    fn wants(&self, found: &Found) -> bool {
        let accepted = found.entry.as_ref().is_none_or(|entry| entry.accepted);
        accepted
            && match self.type_ {
                PathTypeFilter::Any => true,
                PathTypeFilter::File => found.kind() == EntryType::File,
                PathTypeFilter::Directory => found.kind() == EntryType::Directory,
            }
    }

    /// Adds a path; true when there is no room for it.
    fn add(&mut self, found: &Found, root: &SearchRoot) -> bool {
        let path = root.show(found.below());
        let count = self.paths.len() as u64;
        let bytes = self.bytes + path.len() as u64;
        if count >= self.max_results {
            self.cut = Some(LimitName::MaxResults);
        } else if count >= self.max_rows {
            self.cut = Some(LimitName::MaxFindRows);
        } else if count > 0 && bytes > self.max_bytes {
            self.cut = Some(LimitName::MaxFindBytes);
        }
        if self.cut.is_some() {
            return true;
        }
        self.bytes = bytes;
        let cursor = Cursor { root: found.root, path: found.below().to_vec(), line: 0 };
        // The tally of the last path matters only where the page ends.
        if count + 1 == self.max_results.min(self.max_rows) || bytes + 4096 > self.max_bytes {
            self.last = Some((self.tally.clone(), cursor));
        }
        self.paths.push(FoundPath {
            path: lossy(&path),
            path_base64: lossy_base64(&path),
            type_: found.kind(),
        });
        false
    }

    fn finish(self, deadline_exceeded: bool) -> FindPathsResponse {
        let (tally, truncation) = match (self.cut, self.last) {
            (Some(limit), Some((tally, cursor))) => {
                (tally, Some(FindTruncation { limit, next: cursor.encode() }))
            }
            _ => (self.tally, None),
        };
        FindPathsResponse {
            paths: self.paths,
            truncation,
            complete: !deadline_exceeded && tally.error_count == 0,
            deadline_exceeded,
            skipped: tally.skipped,
            errors: tally.errors,
            error_count: tally.error_count,
        }
    }
}
