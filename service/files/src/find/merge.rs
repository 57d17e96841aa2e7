//! Rows in order: batches come back in any order, and leave as one list that ends where a limit is reached. The pages
//! of a search, joined, are the rows of the same search without limits.

use std::collections::BTreeMap;

use filectx_openapi::{LimitName, Row, lossy, lossy_base64};

use super::Tally;
use super::cursor::Cursor;
use super::feed::SearchRoot;
use super::rows::cost;
use crate::Error;

/// The outcome of files that follow each other: only the last one has rows.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    /// What was passed over and searched.
    pub(crate) tally: Tally,
    /// The file of the rows: its root and the path below it.
    pub(crate) place: Option<(usize, Vec<u8>)>,
    pub(crate) rows: Vec<Row>,
    /// How many of them are matches.
    pub(crate) matches: u64,
    /// What they count.
    pub(crate) bytes: usize,
}

impl Piece {
    /// Appends a piece to this one, which has no rows.
    pub(crate) fn follow(&mut self, mut later: Piece) {
        let mut tally = std::mem::take(&mut self.tally);
        tally.append(later.tally);
        later.tally = tally;
        *self = later;
    }
}

/// The answer, as far as it is known.
#[derive(Debug)]
pub(crate) struct Merge {
    max_results: u64,
    max_rows: usize,
    max_bytes: usize,
    context: u64,
    /// The batch that comes next.
    next: u64,
    /// Batches that are done before it.
    waiting: BTreeMap<u64, Vec<Piece>>,
    /// Matches, rows and bytes that are there, the waiting ones included.
    there: (u64, usize, usize),
    /// Matches and bytes in `rows`.
    matches: u64,
    bytes: usize,
    pub(crate) rows: Vec<Row>,
    pub(crate) tally: Tally,
    /// The place of the last row.
    last: Option<Cursor>,
    /// The line of the last match in the file at hand.
    last_match: Option<u64>,
    /// The limit that cut the rows, and where they go on.
    pub(crate) cut: Option<(LimitName, Cursor)>,
    /// Why the search was given up.
    pub(crate) interrupted: Option<Error>,
}

impl Merge {
    pub(crate) fn new(max_results: u64, max_rows: usize, max_bytes: usize, context: u64) -> Self {
        Self {
            max_results,
            max_rows,
            max_bytes,
            context,
            next: 0,
            waiting: BTreeMap::new(),
            there: (0, 0, 0),
            matches: 0,
            bytes: 0,
            rows: Vec::new(),
            tally: Tally::default(),
            last: None,
            last_match: None,
            cut: None,
            interrupted: None,
        }
    }

    /// The batch that comes next.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Whether batches after those that were given out can still matter.
    pub(crate) fn needs_more(&self) -> bool {
        let (matches, rows, bytes) = self.there;
        !self.is_over() && matches <= self.max_results && rows <= self.max_rows && bytes <= self.max_bytes
    }

    /// Whether the answer is full, or the search given up.
    pub(crate) fn is_over(&self) -> bool {
        self.cut.is_some() || self.interrupted.is_some()
    }

    /// The search is given up; what is there is returned.
    pub(crate) fn interrupt(&mut self, error: Error) {
        // Once it is full, nobody needs what is left undone.
        if self.cut.is_none() {
            self.interrupted.get_or_insert(error);
        }
    }

    /// Puts a batch in its place.
    pub(crate) fn put(&mut self, number: u64, pieces: Vec<Piece>, roots: &[SearchRoot]) {
        for piece in &pieces {
            self.there.0 += piece.matches;
            self.there.1 += piece.rows.len();
            self.there.2 += piece.bytes;
        }
        self.waiting.insert(number, pieces);
        while let Some(pieces) = self.waiting.remove(&self.next) {
            self.next += 1;
            self.take(pieces, roots);
        }
    }

    /// Takes what still waits: where the search was given up, batches before it may be missing.
    pub(crate) fn finish(&mut self, roots: &[SearchRoot]) {
        for (_, pieces) in std::mem::take(&mut self.waiting) {
            self.take(pieces, roots);
        }
    }

    fn take(&mut self, pieces: Vec<Piece>, roots: &[SearchRoot]) {
        for piece in pieces {
            if self.cut.is_some() {
                return;
            }
            let Some((root, below)) = piece.place else {
                self.tally.append(piece.tally);
                continue;
            };
            let before = self.tally.clone();
            self.tally.append(piece.tally);
            let first = self.rows.len();
            self.last_match = None;
            let shown = roots[root].show(&below);
            let (path, path_base64) = (lossy(&shown), lossy_base64(&shown));
            for row in piece.rows {
                if let Some(limit) = self.full(&row) {
                    self.cut_at(limit, first, before);
                    break;
                }
                self.matches += u64::from(!row.is_context);
                self.bytes += cost(&row);
                if !row.is_context {
                    self.last_match = Some(row.line);
                }
                self.rows.push(Row { path: path.clone(), path_base64: path_base64.clone(), ..row });
            }
            if self.rows.len() > first {
                let line = self.rows.last().map_or(0, |row| row.line);
                self.last = Some(Cursor { root, path: below, line });
            }
            if let (Some((_, cursor)), Some(last)) = (&mut self.cut, &self.last) {
                *cursor = last.clone();
            }
        }
    }

    /// The limit that has no room for the row.
    fn full(&self, row: &Row) -> Option<LimitName> {
        if !row.is_context && self.matches >= self.max_results {
            return Some(LimitName::MaxResults);
        }
        if self.rows.len() >= self.max_rows {
            return Some(LimitName::MaxFindRows);
        }
        if self.bytes + cost(row) > self.max_bytes && !self.rows.is_empty() {
            return Some(LimitName::MaxFindBytes);
        }
        None
    }

    /// Ends the page. `first`: the first row of the file at hand; `before`: what was passed over before it.
    fn cut_at(&mut self, limit: LimitName, first: usize, before: Tally) {
        if limit == LimitName::MaxResults {
            // What stands before the next match belongs to it.
            let near = self.last_match.map(|line| line + self.context);
            while self.rows.len() > first
                && self
                    .rows
                    .last()
                    .is_some_and(|row| row.is_context && near.is_none_or(|near| row.line > near))
            {
                self.rows.pop();
            }
        }
        if self.rows.len() == first {
            self.tally = before;
        }
        self.cut = Some((limit, Cursor { root: 0, path: Vec::new(), line: 0 }));
    }
}
