//! Which lines a reader wants of a file: what to ask for, and what is left when only a part was shown.

use filectx_openapi::LineRange;

/// The lines that a reader wants of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// As they were given; empty = the whole file.
    given: Vec<LineRange>,
    limit: Option<u64>,
}

impl Wanted {
    /// These ranges (none = the whole file), and at most `limit` lines of them.
    pub fn new(ranges: &[LineRange], limit: Option<u64>) -> Self {
        Self { given: ranges.to_vec(), limit }
    }

    /// The most lines that are wanted.
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// What to ask the service for: the ranges, narrowed to the limit. Ranges that the service will refuse are passed
    /// on as they are: it says best what is wrong with them.
    pub fn asked(&self) -> Vec<LineRange> {
        let refused = |range: &LineRange| range.start == 0 || range.end.is_some_and(|end| end < range.start);
        let Some(mut left) = self.limit.filter(|_| !self.given.iter().any(refused)) else {
            return self.given.clone();
        };
        let mut asked = Vec::new();
        for range in self.merged() {
            if left == 0 {
                break;
            }
            let most = range.start.saturating_add(left - 1);
            let end = range.end.map_or(most, |end| end.min(most));
            left -= end - range.start + 1;
            asked.push(LineRange { start: range.start, end: Some(end) });
        }
        asked
    }

    /// What is left of it behind the line `done` (0 = all), in a file of `count` lines.
    pub(super) fn rest(&self, done: u64, count: Option<u64>) -> Vec<LineRange> {
        let behind = self.merged().into_iter().filter(|range| range.end.is_none_or(|end| end > done));
        let moved = behind.map(|range| LineRange { start: range.start.max(done + 1), end: range.end });
        moved.filter(|range| count.is_none_or(|count| range.start <= count)).collect()
    }

    /// Sorted and without overlaps, as the service answers them.
    fn merged(&self) -> Vec<LineRange> {
        if self.given.is_empty() {
            return vec![LineRange { start: 1, end: None }];
        }
        let mut sorted = self.given.clone();
        sorted.sort_by_key(|range| range.start);
        let mut merged: Vec<LineRange> = Vec::with_capacity(sorted.len());
        for range in sorted {
            match merged.last_mut() {
                Some(last) if last.end.is_none_or(|end| range.start <= end) => {
                    last.end = last.end.zip(range.end).map(|(a, b)| a.max(b));
                }
                _ => merged.push(range),
            }
        }
        merged
    }
}

/// How many lines of a file of `count` lines are in these ranges.
pub(super) fn lines_in(ranges: &[LineRange], count: u64) -> u64 {
    ranges.iter().map(|range| (range.end.unwrap_or(count).min(count) + 1).saturating_sub(range.start)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range((start, end): (u64, u64)) -> LineRange {
        LineRange { start, end: (end != u64::MAX).then_some(end) }
    }

    fn ranges(pairs: &[(u64, u64)]) -> Vec<LineRange> {
        pairs.iter().copied().map(range).collect()
    }

    const OPEN: u64 = u64::MAX;

    #[test]
    fn the_limit_narrows_what_is_asked() {
        type Pairs<'a> = &'a [(u64, u64)];
        let table: &[(Pairs<'_>, Option<u64>, Pairs<'_>)] = &[
            (&[], None, &[]),
            (&[], Some(10), &[(1, 10)]),
            (&[(5, OPEN)], Some(10), &[(5, 14)]),
            (&[(5, 8)], Some(10), &[(5, 8)]),
            (&[(20, 30), (1, 4)], Some(6), &[(1, 4), (20, 21)]),
            (&[(1, 4), (20, 30)], Some(4), &[(1, 4)]),
            (&[(1, 4), (3, 9)], Some(100), &[(1, 9)]),
            (&[(0, 4)], Some(1), &[(0, 4)]),
            (&[(9, 4)], Some(1), &[(9, 4)]),
            (&[(OPEN - 1, OPEN)], Some(9), &[(OPEN - 1, OPEN)]),
        ];
        for (given, limit, asked) in table {
            let got = Wanted::new(&ranges(given), *limit).asked();
            let expected: Vec<_> =
                asked.iter().map(|&(start, end)| LineRange { start, end: Some(end) }).collect();
            assert_eq!(got, expected, "{given:?} {limit:?}");
        }
    }

    #[test]
    fn the_rest_is_what_was_not_shown() {
        let all = Wanted::default();
        assert_eq!(all.rest(0, None), ranges(&[(1, OPEN)]));
        assert_eq!(all.rest(7, Some(9)), ranges(&[(8, OPEN)]));
        assert_eq!(all.rest(9, Some(9)), []);
        let some = Wanted::new(&ranges(&[(50, 60), (1, 10), (100, OPEN)]), None);
        assert_eq!(some.rest(5, None), ranges(&[(6, 10), (50, 60), (100, OPEN)]));
        assert_eq!(some.rest(10, Some(55)), ranges(&[(50, 60)]));
        assert_eq!(some.rest(60, Some(99)), []);
        assert_eq!(lines_in(&some.rest(5, Some(55)), 55), 5 + 6);
    }
}
