//! The reading views: pure functions from the contract's nouns to text, for every skin alike (command line, MCP).
//! Nothing here asks, reads or prints.

mod edit;
mod find;
mod lines;
mod list;
mod read;
#[cfg(test)]
mod read_tests;
mod read_text;
mod wanted;

use filectx_openapi::LimitName;

pub use edit::{diff, places, write};
pub use find::{find_text, more_errors, skipped};
use lines::lines;
pub use list::list;
pub use read::{Block, Budget, FileView, Place, Position, ReadView, Stop, StopLimit};
pub use read_text::{GoOn, read_text, read_texts};
pub use wanted::Wanted;

/// How text is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// For a terminal: what could steer it is escaped, in names and in lines.
    pub terminal: bool,
    /// With colours.
    pub color: bool,
}

/// A colour, or another way to set text apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// What is beside the point: line numbers, notes.
    Dim,
    /// A heading.
    Bold,
    /// A path.
    Path,
    /// A line number beside a path.
    Number,
    /// A match.
    Match,
    /// What came.
    Added,
    /// What went.
    Removed,
    /// What is wrong.
    Error,
}

impl Style {
    /// The text in this colour, if there are colours.
    pub fn paint(self, paint: Paint, text: &str) -> String {
        if !self.color {
            return text.to_owned();
        }
        let code = match paint {
            Paint::Dim => "2",
            Paint::Bold => "1",
            Paint::Path => "35",
            Paint::Number => "32",
            Paint::Match => "1;31",
            Paint::Added => "32",
            Paint::Removed => "31",
            Paint::Error => "1;31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// A name: on a terminal, what could steer it or deceive its reader is escaped.
    pub fn name(self, name: &str) -> String {
        if !self.terminal {
            return name.to_owned();
        }
        escape(name, |c| c.is_control() || deceives(c))
    }

    /// A line of a file: on a terminal, what could steer it is escaped.
    pub fn line(self, line: &str) -> std::borrow::Cow<'_, str> {
        let steers = |c: char| c.is_control() && c != '\t';
        if !self.terminal || !line.contains(steers) {
            return line.into();
        }
        escape(line, steers).into()
    }
}

fn deceives(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn escape(text: &str, wants: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if wants(c) {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

/// A number with its thousands set apart.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number with its noun.
pub fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}

/// The name of a limit, as the contract writes it.
pub fn limit_name(name: LimitName) -> String {
    match serde_json::to_value(name) {
        Ok(serde_json::Value::String(name)) => name,
        _ => format!("{name:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_terminal_names_and_lines_cannot_steer_it() {
        let terminal = Style { terminal: true, color: false };
        for (name, shown) in [
            ("a b.txt", "a b.txt"),
            ("a\x1b[31m", "a\\u001b[31m"),
            ("two\nlines", "two\\u000alines"),
            ("gr\u{fc}n", "gr\u{fc}n"),
            ("exe\u{202e}txt", "exe\\u202etxt"),
        ] {
            assert_eq!(terminal.name(name), shown);
            assert_eq!(Style::default().name(name), name);
        }
        assert_eq!(terminal.line("a\tb\x1b]0;x\x07"), "a\tb\\u001b]0;x\\u0007");
        assert_eq!(Style::default().line("a\x1b"), "a\x1b");
    }

    #[test]
    fn numbers_are_grouped() {
        let table = [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")];
        for (number, text) in table {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(counted(1, "line"), "1 line");
        assert_eq!(counted(2000, "line"), "2,000 lines");
    }
}
