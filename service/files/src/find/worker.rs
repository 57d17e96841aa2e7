//! One thread of a search: it takes batches of files, searches each, and says what came of it. A file that makes a
//! searcher panic costs that file alone.

use std::panic::{AssertUnwindSafe, catch_unwind};

use filectx_openapi::{Code, EntryType};
use grep_searcher::Searcher;

use super::content::{Content, LONGEST_LINE};
use super::feed::Found;
use super::merge::Piece;
use super::pattern::Pattern;
use super::rows::Rows;
use super::text::Search;
use super::{Tally, went_away};
use crate::Error;
use crate::disk::open::Opened;

/// A file of at most this size is searched as a whole.
const WHOLE: usize = 256 << 10;
/// The lines before a match are kept in memory; more of them are reserved there first.
const MUCH_CONTEXT: usize = 1_000;

/// One thread of a search, with what it uses again and again.
pub(crate) struct Worker {
    searcher: Searcher,
    pattern: Pattern,
    /// The text of the file at hand.
    plain: Vec<u8>,
}

impl Worker {
    pub(crate) fn new(search: &Search<'_>) -> Self {
        Self { searcher: search.searcher.build(), pattern: search.pattern.clone(), plain: Vec::new() }
    }

    /// Searches the next batch; false when there is no more to do.
    pub(crate) fn step(&mut self, search: &Search<'_>) -> bool {
        let Some(batch) = search.next_batch() else { return false };
        if !search.wait_for_room(batch.number) {
            return false;
        }
        let pieces = self.search(search, batch.files, batch.rest);
        search.put(batch.number, pieces);
        true
    }

    fn search(&mut self, search: &Search<'_>, files: Vec<(Tally, Found)>, rest: Tally) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let (mut matches, mut rows, mut bytes) = (0, 0, 0);
        for (before, found) in files {
            let mut piece = Piece { tally: before, ..Piece::default() };
            let searched = catch_unwind(AssertUnwindSafe(|| self.search_found(search, &found, &mut piece)));
            let stopped = match searched {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error),
                Err(_) => {
                    piece.rows.clear();
                    self.searcher = search.searcher.build();
                    piece.tally.fail(&search.roots[found.root].show(found.below()), &Error::Internal);
                    None
                }
            };
            (matches, rows, bytes) = (matches + piece.matches, rows + piece.rows.len(), bytes + piece.bytes);
            if !piece.rows.is_empty() {
                piece.place = Some((found.root, found.below().to_vec()));
            }
            match pieces.last_mut() {
                Some(last) if last.rows.is_empty() => last.follow(piece),
                _ => pieces.push(piece),
            }
            if let Some(error) = stopped {
                search.merge().interrupt(error);
                return pieces;
            }
            // The answer is full before it gets to the rest.
            if matches >= search.shape.matches || rows >= search.shape.rows || bytes >= search.shape.bytes {
                return pieces;
            }
        }
        pieces.push(Piece { tally: rest, ..Piece::default() });
        pieces
    }

    /// Searches what the walk found; the error ends the whole search.
    fn search_found(&mut self, search: &Search<'_>, found: &Found, piece: &mut Piece) -> Result<(), Error> {
        search.going_on().check()?;
        let skipped = &mut piece.tally.skipped;
        match (found.kind(), found.entry.as_ref().and_then(|entry| entry.link)) {
            (EntryType::Symlink, Some((Some(EntryType::File), true))) | (EntryType::File, _) => {}
            (EntryType::Symlink, Some((Some(EntryType::Directory), followed))) => {
                skipped.linked_directories += u64::from(!followed);
                return Ok(());
            }
            (EntryType::Symlink, Some((Some(_), true))) => {
                skipped.special += 1;
                return Ok(());
            }
            (EntryType::Symlink, _) => {
                skipped.linked_files += 1;
                return Ok(());
            }
            (EntryType::Directory, _) => return Ok(()),
            _ => {
                skipped.special += 1;
                return Ok(());
            }
        }
        let root = &search.roots[found.root];
        let opened = match (&found.opened, &found.entry) {
            (Some(opened), _) => opened.fd.try_clone().map_err(Error::from).map(|fd| Opened {
                fd,
                identity: opened.identity,
                real_path: None,
            }),
            (None, Some(entry)) => root.open(search.files.fences(), entry),
            (None, None) => return Ok(()),
        };
        let told = |error: Error, tally: &mut Tally| match error {
            Error::NotRegularFile { .. } => tally.skipped.special += 1,
            error if went_away(&error) => {}
            // Where it leads is outside: skipped on purpose.
            Error::OutsideRoots | Error::DeniedByPolicy => tally.skipped.linked_files += 1,
            error => tally.unreadable(&root.show(found.below()), &error),
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => {
                told(error, &mut piece.tally);
                return Ok(());
            }
        };
        match self.search_file(search, opened, found, piece) {
            Ok(()) => Ok(()),
            Err(error) => {
                search.going_on().check()?;
                told(error, &mut piece.tally);
                Ok(())
            }
        }
    }

    fn search_file(
        &mut self,
        search: &Search<'_>,
        opened: Opened,
        found: &Found,
        piece: &mut Piece,
    ) -> Result<(), Error> {
        let below = found.below();
        let shown = if below.is_empty() { search.roots[found.root].show(below) } else { below.to_vec() };
        let name = shown.rsplit(|&b| b == b'/').next().unwrap_or_default();
        let buffers = search.files.buffers();
        let mut plain = std::mem::take(&mut self.plain);
        let content = Content::open(opened, name, &mut plain, buffers, search.going_on())?;
        let Some(mut content) = content else {
            piece.tally.skipped.binary += 1;
            self.plain = plain;
            return Ok(());
        };
        piece.tally.files_searched += 1;
        let after = match search.cursor {
            Some(cursor) if cursor.root == found.root && cursor.path == below => cursor.line,
            _ => 0,
        };
        let mut rows = Rows::new(search.shape, after, &self.pattern.matcher);
        let whole = if self.searcher.multi_line() { LONGEST_LINE } else { WHOLE };
        while !content.is_at_end() && plain.len() <= whole {
            if plain.len() > WHOLE {
                content.reserve()?;
            }
            content.next_block(&mut plain)?;
        }
        let mut too_large = None;
        let searched = if content.is_at_end() {
            self.searcher.search_slice(&self.pattern.matcher, &plain, &mut rows)
        } else if self.searcher.multi_line() {
            too_large = Some("with multiline a file of more than 64 MiB of text is not searched");
            Ok(())
        } else {
            if search.context > MUCH_CONTEXT {
                content.reserve()?;
            }
            let reader = std::io::Read::chain(&plain[..], &mut content);
            self.searcher.search_reader(&self.pattern.matcher, reader, &mut rows)
        };
        if too_large.is_none() && content.was_cut() {
            too_large = Some("a line of more than 64 MiB is in it, and was not searched");
        }
        (piece.rows, piece.matches, piece.bytes) = (rows.rows, rows.matches, rows.bytes);
        if plain.capacity() <= 8 * WHOLE {
            self.plain = plain;
        }
        let failed = match (searched, content.failure()) {
            (Err(_), Some(error)) => return Err(error),
            // The searcher's own bound: lines of context, each of them long.
            (Err(_), None) => Some("its lines are too long for so much context; ask for less context"),
            (Ok(()), _) => too_large,
        };
        if let Some(detail) = failed {
            piece.tally.fail_as(&search.roots[found.root].show(below), Code::TooLarge, detail);
        }
        Ok(())
    }
}
