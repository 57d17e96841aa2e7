//! The command that goes on where a list was cut: this one, with the cursor of the cut.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use super::quote::quoted;

const FLAG: &[u8] = b"--after";

/// The arguments of this process, without its name.
pub(crate) fn of_process() -> Vec<OsString> {
    std::env::args_os().skip(1).collect()
}

/// The command with these arguments, and the cursor instead of the one that they may hold.
pub(crate) fn command(arguments: &[OsString], next: &str) -> String {
    let mut kept: Vec<&OsStr> = Vec::new();
    let mut rest = arguments.iter();
    let mut behind: Vec<&OsStr> = Vec::new();
    while let Some(argument) = rest.next() {
        match argument.as_bytes() {
            // What follows is no flag.
            b"--" => {
                behind = std::iter::once(argument).chain(rest.by_ref()).map(OsString::as_os_str).collect();
            }
            FLAG => {
                rest.next();
            }
            bytes if bytes.starts_with(b"--after=") => {}
            _ => kept.push(argument),
        }
    }
    let cursor = [OsStr::from_bytes(FLAG), OsStr::new(next)];
    let words = kept.into_iter().chain(cursor).chain(behind);
    words.fold("filectx".to_owned(), |command, word| format!("{command} {}", quoted(word.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_takes_the_place_of_the_last_one() {
        let table = [
            (&["find", "a b", "src"][..], "filectx find 'a b' src --after n+/="),
            (&["find", "--after", "old", "x"], "filectx find x --after n+/="),
            (&["find", "--after=old", "x"], "filectx find x --after n+/="),
            (&["find", "-C", "2", "--", "--after", "x"], "filectx find -C 2 --after n+/= -- --after x"),
        ];
        for (arguments, expected) in table {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            assert_eq!(command(&arguments, "n+/="), expected);
        }
    }
}
