//! The alternatives of a glob: `{a,b}` stands for two globs. Nothing is matched here.

use super::GlobError;

/// The most alternatives that the braces of one glob may stand for.
const ALTERNATIVES: usize = 1_000;

/// The globs that the braces of `glob` stand for.
pub(super) fn alternatives(glob: &str) -> Result<Vec<String>, GlobError> {
    let mut done = Vec::new();
    let mut open = vec![glob.to_owned()];
    while let Some(text) = open.pop() {
        match braces(&text)? {
            None => done.push(text),
            Some((_, _, commas)) if done.len() + open.len() + commas.len() >= ALTERNATIVES => {
                return Err(GlobError {
                    offset: 0,
                    detail: "the braces stand for more than 1,000 alternatives",
                });
            }
            Some((start, end, commas)) => {
                let edges = std::iter::once(start).chain(commas).chain([end]).collect::<Vec<_>>();
                let inner = edges.windows(2).rev().map(|pair| &text[pair[0] + 1..pair[1]]);
                open.extend(inner.map(|inner| format!("{}{inner}{}", &text[..start], &text[end + 1..])));
            }
        }
    }
    Ok(done)
}

/// The first `{`, its `}`, and the commas between them.
fn braces(text: &str) -> Result<Option<(usize, usize, Vec<usize>)>, GlobError> {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut start, mut commas) = (0, 0, 0, Vec::new());
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'[' => at = class_end(text, at)?,
            b'{' => {
                if depth == 0 {
                    start = at;
                }
                depth += 1;
            }
            b',' if depth == 1 => commas.push(at),
            b'}' if depth == 0 => {
                return Err(GlobError {
                    offset: at,
                    detail: "this } has no {; \\} means the character itself",
                });
            }
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some((start, at, commas)));
                }
            }
            _ => {}
        }
        at += 1;
    }
    match depth {
        0 => Ok(None),
        _ => Err(GlobError { offset: start, detail: "this { has no }; \\{ means the character itself" }),
    }
}

/// The offset of the `]` that ends the class which begins at `start`.
pub(super) fn class_end(glob: &str, start: usize) -> Result<usize, GlobError> {
    let bytes = glob.as_bytes();
    let mut at = start + 1;
    if matches!(bytes.get(at), Some(b'!' | b'^')) {
        at += 1;
    }
    let first = at;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b']' if at > first => return Ok(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    Err(GlobError { offset: start, detail: "this [ has no ]; \\[ means the character itself" })
}
