//! Which way of showing pictures a terminal knows: by what its environment says, else by asking it for sixel.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// A way of showing pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Kitty,
    Iterm,
    Sixel,
}

/// How long an answer is waited for. Terminals that know the question answer at once, nearly all the others as well.
const ANSWERS_WITHIN: Duration = Duration::from_millis(300);

/// What the terminal of this process can show.
pub(crate) fn protocol() -> Option<Protocol> {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    match by_environment(&variable) {
        Known::Shows(protocol) => Some(protocol),
        Known::Nothing => None,
        Known::Ask => knows_sixel().filter(|knows| *knows).map(|_| Protocol::Sixel),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Shows(Protocol),
    Nothing,
    Ask,
}

fn by_environment(variable: &dyn Fn(&str) -> String) -> Known {
    let (term, program) = (variable("TERM"), variable("TERM_PROGRAM"));
    if term.is_empty() || term == "dumb" || term == "linux" {
        return Known::Nothing;
    }
    // A multiplexer inherits the environment of a terminal that it does not pass everything on to. It can be asked.
    if !variable("TMUX").is_empty() || !variable("STY").is_empty() {
        return Known::Ask;
    }
    let kitty =
        !variable("KITTY_WINDOW_ID").is_empty() || ["xterm-kitty", "xterm-ghostty"].contains(&term.as_str());
    if kitty || program == "ghostty" {
        return Known::Shows(Protocol::Kitty);
    }
    if ["iTerm.app", "WezTerm", "mintty"].contains(&program.as_str()) || variable("LC_TERMINAL") == "iTerm2" {
        return Known::Shows(Protocol::Iterm);
    }
    Known::Ask
}

/// Asks the terminal what it is (DA1); a 4 among its attributes stands for sixel.
fn knows_sixel() -> Option<bool> {
    let mut tty = OpenOptions::new().read(true).write(true).open("/dev/tty").ok()?;
    let before = tcgetattr(&tty).ok()?;
    let mut raw = before.clone();
    raw.make_raw();
    tcsetattr(&tty, OptionalActions::Now, &raw).ok()?;
    let answer = ask(&mut tty);
    restore(&tty, &before);
    Some(has_sixel(&answer?))
}

fn restore(tty: &File, before: &Termios) {
    // Nothing else can be done for a terminal that is gone.
    let _ = tcsetattr(tty, OptionalActions::Now, before);
}

fn ask(tty: &mut File) -> Option<Vec<u8>> {
    tty.write_all(b"\x1b[c").ok()?;
    let end = Instant::now() + ANSWERS_WITHIN;
    let mut answer = Vec::new();
    while answer.last() != Some(&b'c') && answer.len() < 256 {
        let left = Timespec::try_from(end.saturating_duration_since(Instant::now())).ok()?;
        if poll(&mut [PollFd::new(tty, PollFlags::IN)], Some(&left)).ok()? == 0 {
            return None;
        }
        let mut byte = [0];
        answer.extend(tty.read(&mut byte).ok().filter(|count| *count > 0).map(|_| byte[0]));
    }
    Some(answer)
}

/// Whether `ESC [ ? ... c` holds a 4.
fn has_sixel(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let attributes = text.rsplit_once("\x1b[?").and_then(|(_, rest)| rest.strip_suffix('c'));
    attributes.is_some_and(|attributes| attributes.split(';').skip(1).any(|attribute| attribute == "4"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_environment_says() {
        let known = |set: &[(&str, &str)]| {
            by_environment(&|name| {
                set.iter()
                    .find(|(other, _)| *other == name)
                    .map_or(String::new(), |(_, value)| (*value).to_owned())
            })
        };
        let table: [(&[(&str, &str)], Known); 8] = [
            (&[], Known::Nothing),
            (&[("TERM", "dumb"), ("KITTY_WINDOW_ID", "1")], Known::Nothing),
            (&[("TERM", "xterm-kitty")], Known::Shows(Protocol::Kitty)),
            (&[("TERM", "xterm"), ("TERM_PROGRAM", "ghostty")], Known::Shows(Protocol::Kitty)),
            (&[("TERM", "xterm"), ("TERM_PROGRAM", "WezTerm")], Known::Shows(Protocol::Iterm)),
            (&[("TERM", "xterm"), ("LC_TERMINAL", "iTerm2")], Known::Shows(Protocol::Iterm)),
            (&[("TERM", "screen"), ("TMUX", "/tmp/x"), ("KITTY_WINDOW_ID", "1")], Known::Ask),
            (&[("TERM", "xterm-256color")], Known::Ask),
        ];
        for (set, expect) in table {
            assert_eq!(known(set), expect, "{set:?}");
        }
    }

    #[test]
    fn attributes_of_a_terminal() {
        for (answer, expect) in [
            (&b"\x1b[?62;4;6c"[..], true),
            (b"typed\x1b[?62;9;4c", true),
            (b"\x1b[?4c", false),
            (b"\x1b[?62;44c", false),
            (b"", false),
        ] {
            assert_eq!(has_sixel(answer), expect, "{}", answer.escape_ascii());
        }
    }
}
