//! Where a command prints: results on stdout, everything else on stderr, each with colours only on a terminal.

use std::io::{self, ErrorKind, IsTerminal as _, Write};

use filectx_client::Error;
use filectx_client::render::{Paint, Style, places};
use filectx_openapi::ItemError;
use serde::Serialize;

use super::exit::{Exit, Failure};

/// The two streams of a command.
pub(crate) struct Output {
    out: Box<dyn Write>,
    err: Box<dyn Write>,
    style: Style,
    err_style: Style,
}

impl Output {
    /// The streams of this process. `NO_COLOR` and a dumb terminal are obeyed.
    pub(crate) fn of_process() -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let plain = set("NO_COLOR") || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let style = |terminal: bool| Style { terminal, color: terminal && !plain };
        let (out, err) = (io::stdout(), io::stderr());
        let (style, err_style) = (style(out.is_terminal()), style(err.is_terminal()));
        Self { out: Box::new(io::BufWriter::new(out)), err: Box::new(err), style, err_style }
    }

    /// Streams of a test.
    #[cfg(test)]
    pub(crate) fn to(out: Box<dyn Write>, err: Box<dyn Write>, style: Style) -> Self {
        Self { out, err, style, err_style: style }
    }

    /// Whether stderr is a terminal that a line may be rewritten on.
    pub(crate) fn draws_on_stderr(&self) -> bool {
        self.err_style.terminal && self.err_style.color
    }

    /// How text for stdout is set.
    pub(crate) fn style(&self) -> Style {
        self.style
    }

    /// Prints text on stdout.
    pub(crate) fn print(&mut self, text: &str) -> Result<(), Failure> {
        self.bytes(text.as_bytes())
    }

    /// Prints bytes on stdout.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.out.write_all(bytes).map_err(|error| failure(&error))
    }

    /// Sends out what was printed so far.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(|error| failure(&error))
    }

    /// Prints a response as the contract writes it, as one line.
    pub(crate) fn json(&mut self, response: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(response).map_err(|error| Failure::Io(error.to_string()))?;
        self.print(&text)?;
        self.print("\n")
    }

    /// Says something on stderr that is worth knowing. What was printed so far comes first.
    pub(crate) fn note(&mut self, text: &str) -> Result<(), Failure> {
        self.out.flush().map_err(|error| failure(&error))?;
        // Where nobody reads stderr, there is nobody to tell it.
        let _ = writeln!(self.err, "{}", self.err_style.line(text));
        Ok(())
    }

    /// Says on stderr that an item was refused: `path: message (code)`.
    pub(crate) fn refused(&mut self, path: &str, error: &ItemError) -> Result<(), Failure> {
        self.note_error(&sentence(path, &error.message), error.code.as_str(), error.hint.as_deref())
    }

    fn note_error(&mut self, message: &str, code: &str, hint: Option<&str>) -> Result<(), Failure> {
        self.out.flush().map_err(|error| failure(&error))?;
        let style = self.err_style;
        let code = style.paint(Paint::Error, &format!("({code})"));
        let message = message.lines().map(|line| style.line(line)).collect::<Vec<_>>().join("\n");
        let _ = writeln!(self.err, "{message} {code}");
        if let Some(hint) = hint {
            let _ = writeln!(self.err, "  hint: {}", style.line(hint));
        }
        Ok(())
    }

    /// Ends the command: says what failed, and gives the exit status.
    pub(crate) fn end(&mut self, result: Result<Exit, Failure>) -> Exit {
        let flushed = self.out.flush().map_err(|error| failure(&error));
        match result.and_then(|exit| flushed.map(|()| exit)) {
            Ok(exit) => exit,
            Err(failure) => {
                self.say(&failure);
                failure.exit()
            }
        }
    }

    /// Says on stderr what failed.
    pub(crate) fn say(&mut self, failure: &Failure) {
        let _ = match failure {
            Failure::Request(error) | Failure::Search(error) => {
                self.note_error(&error.to_string(), error.kind(), error.hint())
            }
            Failure::Config(error) => self.note_error(&error.to_string(), "usage", None),
            Failure::Usage(text) => self.note_error(text, "usage", None),
            Failure::Io(text) => self.note_error(text, "io_error", None),
            Failure::BrokenPipe => Ok(()),
        };
        if let Failure::Request(Error::Refused(problem)) = failure {
            let _ = self.err.write_all(places(&problem.data, self.err_style).as_bytes());
        }
    }
}

/// The message with the path before it, where it does not begin with that anyway.
fn sentence(path: &str, message: &str) -> String {
    if message.strip_prefix(path).is_some_and(|rest| rest.starts_with(": ")) || path.is_empty() {
        return message.to_owned();
    }
    format!("{path}: {message}")
}

fn failure(error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::BrokenPipe => Failure::BrokenPipe,
        _ => Failure::Io(format!("cannot write the output: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_named_once() {
        assert_eq!(sentence("/a", "/a: there is no such file"), "/a: there is no such file");
        assert_eq!(sentence("/a", "there is no such file"), "/a: there is no such file");
        assert_eq!(sentence("/a", "/ab: there is no such file"), "/a: /ab: there is no such file");
        assert_eq!(sentence("", "nothing"), "nothing");
    }
}
