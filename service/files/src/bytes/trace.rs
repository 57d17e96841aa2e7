//! What a row of splices did to a body: which parts of the new one stand for which parts of the old. For line hints in
//! the old numbering, and for the diff.

use std::ops::Range;

/// The most parts that are told apart; above it neighbours are told as one.
const MOST: usize = 100_000;

/// A part of the old body and what stands there now. What lies between two changes is the same in both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// In the old body.
    pub old: Range<usize>,
    /// In the new one.
    pub new: Range<usize>,
}

/// The changes so far, in order, none touching another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    changes: Vec<Change>,
}

/// Replacements in one body, from left to right.
#[derive(Debug, Default)]
pub struct Splices {
    /// What is replaced, and how many bytes stand there then.
    parts: Vec<(Range<usize>, usize)>,
    gap: usize,
}

impl Splices {
    /// `range`, which lies behind all before, is replaced by `length` bytes.
    pub fn push(&mut self, range: Range<usize>, length: usize) {
        if let Some((last, new)) = self.parts.last_mut()
            && range.start - last.end <= self.gap
            && self.gap > 0
        {
            *new += range.start - last.end + length;
            last.end = range.end;
            return;
        }
        self.parts.push((range, length));
        while self.parts.len() > MOST {
            self.gap = (self.gap * 2).max(8);
            let gap = self.gap;
            let mut joined: Vec<(Range<usize>, usize)> = Vec::with_capacity(MOST / 2);
            for (range, length) in self.parts.drain(..) {
                match joined.last_mut() {
                    Some((last, new)) if range.start - last.end <= gap => {
                        *new += range.start - last.end + length;
                        last.end = range.end;
                    }
                    _ => joined.push((range, length)),
                }
            }
            self.parts = joined;
        }
    }
}

impl Trace {
    /// The changes, in order.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Takes in the replacements `splices` of the present body.
    pub fn apply(&mut self, splices: &Splices) {
        let mut known = self.changes.drain(..).peekable();
        let mut added = splices.parts.iter().peekable();
        let mut changes: Vec<Change> = Vec::new();
        // How much longer the body is, up to here: the present one than the old, the coming one than the present.
        let (mut before, mut delta) = (0_isize, 0_isize);
        loop {
            let first_known = known.peek().map(|change| change.new.start);
            let first_added = added.peek().map(|(range, _)| range.start);
            let Some(start) = first_known.into_iter().chain(first_added).min() else { break };
            // A group: all that overlap or touch, in the present body.
            let (mut end, old_start, new_start) = (start, shift(start, -before), shift(start, delta));
            loop {
                if let Some(change) = known.next_if(|change| change.new.start <= end) {
                    end = end.max(change.new.end);
                    before += growth(&change.old, change.new.len());
                } else if let Some((range, length)) = added.next_if(|(range, _)| range.start <= end) {
                    end = end.max(range.end);
                    delta += growth(range, *length);
                } else {
                    break;
                }
            }
            let old = old_start..shift(end, -before);
            changes.push(Change { old, new: new_start..shift(end, delta) });
        }
        drop(known);
        self.changes = changes;
    }

    /// What stands now for the part `old` of the old body: all of a change that it overlaps.
    pub fn now(&self, old: &Range<usize>) -> Range<usize> {
        let mut grown = 0_isize;
        let (mut start, mut end) = (None, None);
        for change in &self.changes {
            if change.old.end > old.start && start.is_none() {
                let inside = change.old.start < old.start;
                start = Some(if inside { change.new.start } else { shift(old.start, grown) });
            }
            if change.old.start >= old.end {
                end = end.or(Some(shift(old.end, grown)));
                break;
            }
            grown = change.new.end as isize - change.old.end as isize;
            if change.old.end >= old.end {
                end = Some(change.new.end);
                break;
            }
        }
        let start = start.unwrap_or(shift(old.start, grown));
        start..end.unwrap_or(shift(old.end, grown)).max(start)
    }
}

fn growth(range: &Range<usize>, length: usize) -> isize {
    length as isize - range.len() as isize
}

fn shift(at: usize, by: isize) -> usize {
    at.saturating_add_signed(by)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn splices(parts: &[(Range<usize>, usize)]) -> Splices {
        let mut splices = Splices::default();
        parts.iter().for_each(|(range, length)| splices.push(range.clone(), *length));
        splices
    }

    #[test]
    fn a_part_is_found_again() {
        let mut trace = Trace::default();
        trace.apply(&splices(&[(0..2, 9), (10..12, 0)]));
        assert_eq!(trace.now(&(0..2)), 0..9);
        assert_eq!(trace.now(&(1..2)), 0..9);
        assert_eq!(trace.now(&(4..8)), 11..15);
        assert_eq!(trace.now(&(10..12)), 17..17);
        assert_eq!(trace.now(&(8..11)), 15..17);
        assert_eq!(trace.now(&(20..22)), 25..27);
    }

    #[test]
    fn many_parts_are_told_as_fewer() {
        let mut all = Splices::default();
        for i in 0..10 * MOST {
            all.push(i * 3..i * 3 + 1, 2);
        }
        assert!(all.parts.len() <= MOST);
        let mut trace = Trace::default();
        trace.apply(&all);
        let last = trace.changes().last().unwrap();
        assert_eq!(last.old.end, 30 * MOST - 2);
        assert_eq!(last.new.end, 40 * MOST - 2);
    }

    proptest! {
        /// Splicing at random, twice: what the trace calls unchanged is unchanged, in order and completely.
        #[test]
        fn what_lies_between_changes_is_equal(
            old in proptest::collection::vec(any::<u8>(), 0..60),
            rounds in proptest::collection::vec(
                proptest::collection::vec((0usize..12, 0usize..5, 0usize..5), 0..6), 0..4),
        ) {
            let mut body = old.clone();
            let mut trace = Trace::default();
            let mut fresh = 0_u8;
            for round in rounds {
                let (mut next, mut at, mut added) = (Vec::new(), 0, Splices::default());
                for (skip, take, put) in round {
                    let start = (at + skip).min(body.len());
                    let end = (start + take).min(body.len());
                    next.extend_from_slice(&body[at..start]);
                    added.push(start..end, put);
                    for _ in 0..put {
                        fresh = fresh.wrapping_add(1);
                        next.push(fresh);
                    }
                    at = end;
                }
                next.extend_from_slice(&body[at..]);
                trace.apply(&added);
                body = next;
            }
            let (mut old_at, mut new_at) = (0, 0);
            for change in trace.changes() {
                prop_assert_eq!(&old[old_at..change.old.start], &body[new_at..change.new.start]);
                (old_at, new_at) = (change.old.end, change.new.end);
            }
            prop_assert_eq!(&old[old_at..], &body[new_at..]);
        }
    }
}
