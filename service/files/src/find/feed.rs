//! The walks of a request's roots as one: in request order, what lies under two roots once, from the place where the
//! page before ended. A root that cannot be searched is one error; the others go on.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use filectx_openapi::{EntryType, ItemError};
use xxhash_rust::xxh3::xxh3_128;

use super::Tally;
use super::cursor::Cursor;
use crate::disk::found::{Entry, Step, open_entry};
use crate::disk::open::Opened;
use crate::disk::roots::{check_cwd, normalised};
use crate::disk::walk::{From, Rules, Walk};
use crate::{Cancel, Error, Fences, Located};

/// A root of a search.
#[derive(Debug)]
pub(crate) struct SearchRoot {
    /// How paths below it begin, as it was given.
    shown: Vec<u8>,
    /// The path as it was sent.
    sent: Vec<u8>,
    located: Result<Located, (PathBuf, Error)>,
    /// Whether something under it may lie under another root too.
    overlaps: bool,
}

impl SearchRoot {
    fn new(fences: &Fences, sent: &str, cwd: Option<&str>) -> Self {
        let mut shown = sent.as_bytes();
        while let Some(rest) = shown.strip_prefix(b"./") {
            shown = rest;
            while let Some(rest) = shown.strip_prefix(b"/") {
                shown = rest;
            }
        }
        if shown == b"." {
            shown = b"";
        }
        let located =
            fences.locate_bytes(sent.as_bytes(), cwd).map_err(|unlocated| (unlocated.shown, unlocated.error));
        Self { shown: shown.to_vec(), sent: sent.as_bytes().to_vec(), located, overlaps: false }
    }

    /// The path of a row: the root as given, and what is below it.
    pub(crate) fn show(&self, below: &[u8]) -> Vec<u8> {
        if below.is_empty() {
            return if self.shown.is_empty() { self.sent.clone() } else { self.shown.clone() };
        }
        let mut path = self.shown.clone();
        while path.len() > 1 && path.ends_with(b"/") {
            path.pop();
        }
        if !path.is_empty() && !path.ends_with(b"/") {
            path.push(b'/');
        }
        path.extend_from_slice(below);
        path
    }

    /// The name of the root itself.
    pub(crate) fn name(&self) -> Vec<u8> {
        let path = self.located.as_ref().map_or(&self.sent[..], |at| at.joined().as_os_str().as_bytes());
        path.rsplit(|&b| b == b'/').find(|name| !name.is_empty()).unwrap_or_default().to_vec()
    }

    /// The absolute `pattern` relative to the root; `None` when it is not below it.
    pub(crate) fn strip<'p>(&self, pattern: &'p str) -> Option<&'p str> {
        let root = normalised(self.located.as_ref().ok()?.joined());
        let rest = pattern.strip_prefix(root.to_str()?)?;
        let below = rest.strip_prefix('/').or_else(|| root.parent().is_none().then_some(rest));
        below.filter(|below| !below.is_empty())
    }

    /// Opens an entry that was found under the root, for reading.
    pub(crate) fn open(&self, fences: &Fences, entry: &Entry) -> Result<Opened, Error> {
        let located = self.located.as_ref().map_err(|(_, error)| error.clone())?;
        open_entry(fences, located, entry)
    }
}

/// The roots of a request, in its order.
pub(crate) fn search_roots(
    fences: &Fences,
    paths: Option<&[String]>,
    cwd: Option<&str>,
) -> Result<Vec<SearchRoot>, ItemError> {
    check_cwd(cwd).map_err(|error| error.item(Path::new("")))?;
    let refused = |detail| Err(Error::invalid_request("/paths", detail).item(Path::new("")));
    let here = [".".to_owned()];
    let sent = match (paths, cwd) {
        (Some([]), _) => return refused("empty; leave it out to search the cwd"),
        (Some(paths), _) => paths,
        (None, Some(_)) => &here,
        (None, None) => return refused("missing, and there is no cwd either; send one of them"),
    };
    let mut roots: Vec<_> = sent.iter().map(|path| SearchRoot::new(fences, path, cwd)).collect();
    mark_overlaps(fences, &mut roots);
    Ok(roots)
}

/// Marks the roots that lie in another one or hold one.
fn mark_overlaps(fences: &Fences, roots: &mut [SearchRoot]) {
    if roots.len() < 2 {
        return;
    }
    let real = |root: &SearchRoot| fences.real_path(root.located.as_ref().ok()?);
    let mut order: Vec<(PathBuf, usize)> =
        roots.iter().enumerate().filter_map(|(index, root)| Some((real(root)?, index))).collect();
    order.sort();
    let mut top: Option<&(PathBuf, usize)> = None;
    for next in &order {
        match top {
            Some((path, index)) if next.0.starts_with(path) => {
                roots[*index].overlaps = true;
                roots[next.1].overlaps = true;
            }
            _ => top = Some(next),
        }
    }
}

/// What was found under a root.
#[derive(Debug)]
pub(crate) struct Found {
    /// Which root.
    pub(crate) root: usize,
    /// The entry; `None`: the root itself, a file.
    pub(crate) entry: Option<Entry>,
    /// The file, where it is open already.
    pub(crate) opened: Option<Opened>,
}

impl Found {
    /// The path below the root.
    pub(crate) fn below(&self) -> &[u8] {
        self.entry.as_ref().map_or(b"", |entry| &entry.path)
    }

    /// What it is.
    pub(crate) fn kind(&self) -> EntryType {
        self.entry.as_ref().map_or(EntryType::File, |entry| entry.kind)
    }
}

/// The walks of all roots.
pub(crate) struct Feed<'a> {
    fences: &'a Fences,
    rules: &'a Rules,
    roots: &'a [SearchRoot],
    cursor: Option<&'a Cursor>,
    /// Whether a root that is a file is opened: one that cannot be has failed.
    opens: bool,
    walk: Option<Walk<'a>>,
    next_root: usize,
    /// What was found under roots that overlap, by its real path.
    seen: HashSet<u128>,
    /// Whether any root could be searched.
    any_root: bool,
    first_failure: Option<ItemError>,
}

impl<'a> Feed<'a> {
    pub(crate) fn new(
        fences: &'a Fences,
        rules: &'a Rules,
        roots: &'a [SearchRoot],
        cursor: Option<&'a Cursor>,
        opens: bool,
    ) -> Self {
        Self {
            fences,
            rules,
            roots,
            cursor,
            opens,
            walk: None,
            next_root: 0,
            seen: HashSet::new(),
            any_root: cursor.is_some(),
            first_failure: None,
        }
    }

    /// Why nothing could be searched at all: the first root's failure. Asked at the end.
    pub(crate) fn failure(self) -> Option<ItemError> {
        self.first_failure.filter(|_| !self.any_root)
    }

    /// What is found next; what is passed over on the way is counted in `tally`. `None` at the end.
    pub(crate) fn next(&mut self, tally: &mut Tally, cancel: &Cancel) -> Result<Option<Found>, Error> {
        loop {
            let Some(walk) = &mut self.walk else {
                cancel.check()?;
                let Some(root) = self.roots.get(self.next_root) else { return Ok(None) };
                self.next_root += 1;
                match self.begin(root, cancel) {
                    Ok(None) => {}
                    Ok(Some(found)) => return Ok(Some(found)),
                    Err(error @ (Error::Cancelled | Error::DeadlineExceeded)) => return Err(error),
                    Err(error) => self.fail(root, &error, tally),
                }
                continue;
            };
            let root = self.next_root - 1;
            match walk.next(cancel)? {
                None => self.walk = None,
                Some(Step::Skipped(skip)) => tally.skip(skip),
                Some(Step::Failed(below, error)) => tally.unreadable(&self.roots[root].show(&below), &error),
                Some(Step::Entry(entry)) => {
                    if self.is_first(root, &entry) && !entry.before {
                        return Ok(Some(Found { root, entry: Some(entry), opened: None }));
                    }
                }
            }
        }
    }

    /// Begins with a root; a file is found at once.
    fn begin(&mut self, root: &'a SearchRoot, cancel: &Cancel) -> Result<Option<Found>, Error> {
        let index = self.next_root - 1;
        let from = match self.cursor {
            Some(cursor) if index < cursor.root && !root.overlaps => return Ok(None),
            Some(cursor) if index < cursor.root => From::Never,
            Some(cursor) if index == cursor.root && !cursor.path.is_empty() => {
                From::Path(&cursor.path, root.overlaps)
            }
            _ => From::Start,
        };
        let located = root.located.as_ref().map_err(|(_, error)| error.clone())?;
        let kind = self.fences.look(located).map_err(|error| self.fences.explain(located, error))?.kind();
        match kind {
            EntryType::File if !located.names_directory() => {
                let opened = if self.opens { Some(self.fences.open_file(located)?) } else { None };
                self.any_root = true;
                let key = if root.overlaps { self.fences.real_path(located) } else { None };
                let first = key.is_none_or(|real| self.seen.insert(xxh3_128(real.as_os_str().as_bytes())));
                let found = first && !matches!(from, From::Never);
                Ok(found.then_some(Found { root: index, entry: None, opened }))
            }
            EntryType::File | EntryType::Directory => {
                self.walk = Some(Walk::new(self.fences, self.rules, located, from, cancel)?);
                self.any_root = true;
                Ok(None)
            }
            kind => Err(Error::NotRegularFile { kind }),
        }
    }

    fn fail(&mut self, root: &SearchRoot, error: &Error, tally: &mut Tally) {
        if self.cursor.is_some_and(|cursor| self.next_root - 1 < cursor.root) {
            return;
        }
        let joined = match &root.located {
            Ok(located) => located.joined(),
            Err((shown, _)) => shown,
        };
        if self.first_failure.is_none() {
            self.first_failure = Some(error.item(joined));
        }
        match error {
            Error::PermissionDenied | Error::Io { .. } => tally.unreadable(&root.show(b""), error),
            error => tally.fail(&root.show(b""), error),
        }
    }

    /// Whether the entry was not found under an earlier root.
    fn is_first(&mut self, root: usize, entry: &Entry) -> bool {
        let follows = self.rules.follow_links && self.roots.len() > 1;
        if !(self.roots[root].overlaps || follows) || !entry.accepted {
            return true;
        }
        let Some(walk) = &self.walk else { return true };
        let mut real = walk.root_real().to_vec();
        real.push(b'/');
        real.extend_from_slice(&entry.path);
        self.seen.insert(xxh3_128(&real))
    }
}
