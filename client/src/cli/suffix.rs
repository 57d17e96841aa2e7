//! What `PATH:LINES` may mean: the path with its colons, or a shorter path and lines, as compilers and rg print them.

use filectx_openapi::LineRange;

/// One reading of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The path's bytes.
    pub(crate) path: Vec<u8>,
    /// The lines; none = the whole file.
    pub(crate) ranges: Vec<LineRange>,
}

/// Every reading of an argument, the preferred one first: a path that exists with its colons wins.
///
/// `PATH:START-END[,START-END]` (`END` may be missing: to the end), `PATH:LINE`, `PATH:LINE:COL`; the last two also with
/// the colon behind that tools print before their message.
pub(crate) fn readings(argument: &[u8]) -> Vec<Reading> {
    let mut readings = vec![Reading { path: argument.to_vec(), ranges: Vec::new() }];
    let bare = argument.strip_suffix(b":").unwrap_or(argument);
    let Some((path, last)) = split(bare) else { return readings };
    let Some(ranges) = ranges(last) else { return readings };
    let single = line(last).is_some();
    if bare.len() < argument.len() && !single {
        return readings;
    }
    readings.push(Reading { path: path.to_vec(), ranges });
    if let Some((path, number)) = split(path).filter(|_| single)
        && let Some(line) = line(number)
    {
        readings.push(Reading { path: path.to_vec(), ranges: vec![one(line)] });
    }
    readings
}

fn split(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = text.iter().rposition(|byte| *byte == b':')?;
    (colon > 0).then(|| (&text[..colon], &text[colon + 1..]))
}

fn one(line: u64) -> LineRange {
    LineRange { start: line, end: Some(line) }
}

fn line(text: &[u8]) -> Option<u64> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    digits.then(|| std::str::from_utf8(text).ok()?.parse().ok()).flatten()
}

fn ranges(text: &[u8]) -> Option<Vec<LineRange>> {
    text.split(|byte| *byte == b',').map(range).collect()
}

fn range(text: &[u8]) -> Option<LineRange> {
    let Some(dash) = text.iter().position(|byte| *byte == b'-') else { return line(text).map(one) };
    let (start, end) = (line(&text[..dash])?, &text[dash + 1..]);
    let end = if end.is_empty() { None } else { Some(line(end)?) };
    Some(LineRange { start, end })
}

/// The ranges as an argument writes them.
pub(crate) fn written(ranges: &[LineRange]) -> String {
    let one = |range: &LineRange| match range.end {
        Some(end) if end == range.start => end.to_string(),
        Some(end) => format!("{}-{end}", range.start),
        None => format!("{}-", range.start),
    };
    ranges.iter().map(one).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings as `path@ranges`.
    fn check(argument: &str, expected: &[&str]) {
        let got: Vec<_> = readings(argument.as_bytes())
            .iter()
            .map(|reading| format!("{}@{}", String::from_utf8_lossy(&reading.path), written(&reading.ranges)))
            .collect();
        assert_eq!(got, expected, "{argument}");
    }

    #[test]
    fn every_reading_the_literal_one_first() {
        check("a.rs", &["a.rs@"]);
        check("a.rs:1-5", &["a.rs:1-5@", "a.rs@1-5"]);
        check("a.rs:1-5,10,20-", &["a.rs:1-5,10,20-@", "a.rs@1-5,10,20-"]);
        check("a.rs:12", &["a.rs:12@", "a.rs@12"]);
        check("a.rs:12:", &["a.rs:12:@", "a.rs@12"]);
        check("a.rs:12:7", &["a.rs:12:7@", "a.rs:12@7", "a.rs@12"]);
        check("a.rs:12:7:", &["a.rs:12:7:@", "a.rs:12@7", "a.rs@12"]);
        check("C:/x:3", &["C:/x:3@", "C:/x@3"]);
        // What the service refuses is for the service to refuse.
        check("a.rs:0", &["a.rs:0@", "a.rs@0"]);
        check("a.rs:5-3", &["a.rs:5-3@", "a.rs@5-3"]);
    }

    #[test]
    fn what_is_no_suffix_stays_in_the_path() {
        let plain = [
            "a:b",
            "a:",
            ":5",
            "a:1-2:",
            "a:-5",
            "a:1-2-3",
            "a:1,",
            "a:,1",
            "a:+1",
            "a: 1",
            "a:1x",
            "12",
            "a:99999999999999999999",
            "a::",
            "",
        ];
        for argument in plain {
            check(argument, &[&format!("{argument}@")]);
        }
    }
}
