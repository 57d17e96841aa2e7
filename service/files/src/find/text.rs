//! The verb `find-text`: one ordered walk feeds searchers in parallel, and their rows leave in the order of the walk.
//! The work is shared out in batches: whoever is free takes the next one from the walk, searches it, and puts its rows
//! in their place; the search stops when the answer is full.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use filectx_openapi::{FindTextRequest, FindTextResponse, FindTruncation, ItemError};
use grep_searcher::SearcherBuilder;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::content::{GoingOn, LONGEST_LINE};
use super::cursor::Cursor;
use super::feed::{Feed, Found, SearchRoot, search_roots};
use super::merge::{Merge, Piece};
use super::pattern::Pattern;
use super::rows::Shape;
use super::worker::Worker;
use super::{Tally, cancelled, check_positive, parse_globs};
use crate::disk::walk::Rules;
use crate::{Cancel, Error, Files};

/// Most threads of one search.
const THREADS: usize = 8;
/// More lines of context than that are as good as all.
const MOST_CONTEXT: usize = 1 << 30;
/// Files in a batch: at first, and at most.
const BATCH: (usize, usize) = (4, 64);
/// How many batches may be done before one that is not.
const AHEAD: u64 = 64;

impl Files {
    /// Searches contents.
    pub fn find_text(
        &self,
        request: &FindTextRequest,
        cancel: &Cancel,
    ) -> Result<FindTextResponse, ItemError> {
        check_positive(request.max_results, "/max_results")?;
        check_positive(request.max_line_bytes, "/max_line_bytes")?;
        let cursor = Cursor::decode(request.after.as_deref())?;
        let roots = search_roots(self.fences(), request.paths.as_deref(), request.cwd.as_deref())?;
        let (included, excluded) = parse_globs(&request.globs)?;
        let pattern = Pattern::new(request)?;
        let rules = Rules {
            hidden: request.hidden,
            ignore_files: request.ignore_files,
            follow_links: request.follow_links,
            filters: included.into_iter().collect(),
            excluded,
            ..Rules::default()
        };
        let search = Search::new(self, request, &pattern, &rules, &roots, cursor.as_ref(), cancel);
        search.run();
        search.answer()
    }
}

/// A batch of the walk.
pub(crate) struct Batch {
    pub(crate) number: u64,
    /// What was passed over before each file, and the file.
    pub(crate) files: Vec<(Tally, Found)>,
    /// What was passed over after the last one.
    pub(crate) rest: Tally,
}

/// The walk, and how it is shared out.
struct Source<'a> {
    feed: Feed<'a>,
    next: u64,
    size: usize,
    at_end: bool,
}

/// One search.
pub(crate) struct Search<'a> {
    pub(crate) files: &'a Files,
    pub(crate) roots: &'a [SearchRoot],
    pub(crate) pattern: &'a Pattern,
    pub(crate) cursor: Option<&'a Cursor>,
    cancel: &'a Cancel,
    pub(crate) shape: Shape,
    /// Lines of context.
    pub(crate) context: usize,
    pub(crate) searcher: SearcherBuilder,
    source: Mutex<Source<'a>>,
    merge: Mutex<Merge>,
    /// Whether the answer takes no more.
    full: AtomicBool,
    /// Told when a batch has been put in its place.
    moved: Condvar,
}

impl<'a> Search<'a> {
    fn new(
        files: &'a Files,
        request: &FindTextRequest,
        pattern: &'a Pattern,
        rules: &'a Rules,
        roots: &'a [SearchRoot],
        cursor: Option<&'a Cursor>,
        cancel: &'a Cancel,
    ) -> Self {
        let limits = files.limits();
        let most = |limit: u64| usize::try_from(limit.max(1)).unwrap_or(usize::MAX);
        let (rows, bytes) = (most(limits.max_find_rows), most(limits.max_find_bytes));
        let context = usize::try_from(request.context).unwrap_or(usize::MAX).min(MOST_CONTEXT);
        let shape = Shape {
            line_bytes: most(request.max_line_bytes).min(bytes),
            matches: request.max_results.saturating_add(1),
            rows: rows.saturating_add(1),
            bytes: bytes.saturating_add(1),
        };
        let mut searcher = SearcherBuilder::new();
        searcher
            .line_number(true)
            .bom_sniffing(false)
            .multi_line(request.multiline)
            .before_context(context)
            .after_context(context)
            .heap_limit(Some(2 * LONGEST_LINE + (1 << 20)));
        let feed = Feed::new(files.fences(), rules, roots, cursor, true);
        Self {
            files,
            roots,
            pattern,
            cursor,
            cancel,
            shape,
            context,
            searcher,
            source: Mutex::new(Source { feed, next: 0, size: BATCH.0, at_end: false }),
            merge: Mutex::new(Merge::new(request.max_results, rows, bytes, context as u64)),
            full: AtomicBool::new(false),
            moved: Condvar::new(),
        }
    }

    /// Searches until the answer is full or the walk at its end.
    fn run(&self) {
        let mut own = Worker::new(self);
        // Most searches that find their file at once need no threads.
        if !own.step(self) {
            return;
        }
        let threads = self.files.cores().min(THREADS);
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| {
                    let mut worker = Worker::new(self);
                    while worker.step(self) {}
                });
            }
            while own.step(self) {}
        });
    }

    fn answer(self) -> Result<FindTextResponse, ItemError> {
        let mut merge = self.merge.into_inner();
        merge.finish(self.roots);
        let source = self.source.into_inner();
        if let Some(Error::Cancelled) = merge.interrupted {
            return Err(cancelled());
        }
        if let Some(problem) = source.feed.failure().filter(|_| merge.interrupted.is_none()) {
            return Err(problem);
        }
        let deadline_exceeded = merge.interrupted.is_some();
        let truncation =
            merge.cut.as_ref().map(|(limit, cursor)| FindTruncation { limit: *limit, next: cursor.encode() });
        let tally = merge.tally;
        Ok(FindTextResponse {
            rows: merge.rows,
            truncation,
            complete: !deadline_exceeded && tally.error_count == 0,
            deadline_exceeded,
            case_sensitive: self.pattern.case_sensitive,
            files_searched: tally.files_searched,
            skipped: tally.skipped,
            errors: tally.errors,
            error_count: tally.error_count,
        })
    }

    pub(crate) fn going_on(&self) -> GoingOn<'_> {
        GoingOn { cancel: self.cancel, full: &self.full }
    }

    /// Puts what came of a batch in its place.
    pub(crate) fn put(&self, number: u64, pieces: Vec<Piece>) {
        let mut merge = self.merge();
        merge.put(number, pieces, self.roots);
        if merge.cut.is_some() {
            self.full.store(true, Ordering::Relaxed);
        }
        drop(merge);
        self.moved.notify_all();
    }

    pub(crate) fn merge(&self) -> MutexGuard<'_, Merge> {
        self.merge.lock()
    }

    /// The next batch of the walk, when one is needed.
    pub(crate) fn next_batch(&self) -> Option<Batch> {
        let mut source = self.source.lock();
        if source.at_end || !self.merge().needs_more() {
            return None;
        }
        let number = source.next;
        source.next += 1;
        let size = source.size;
        source.size = (size * 2).min(BATCH.1);
        let (mut files, mut tally) = (Vec::with_capacity(size), Tally::default());
        while files.len() < size {
            match source.feed.next(&mut tally, self.cancel) {
                Ok(Some(found)) => files.push((std::mem::take(&mut tally), found)),
                Ok(None) => {
                    source.at_end = true;
                    break;
                }
                Err(error) => {
                    source.at_end = true;
                    self.merge().interrupt(error);
                    break;
                }
            }
        }
        Some(Batch { number, files, rest: tally })
    }

    /// Waits while too many batches are done before one that is not; false when the search is over. A batch that was
    /// given out is searched, whatever later ones hold: its rows come before theirs.
    pub(crate) fn wait_for_room(&self, number: u64) -> bool {
        let mut merge = self.merge();
        while !merge.is_over() && number >= merge.next() + AHEAD {
            if let Err(error) = self.cancel.check() {
                merge.interrupt(error);
            }
            self.moved.wait_for(&mut merge, Duration::from_millis(50));
        }
        !merge.is_over()
    }
}
