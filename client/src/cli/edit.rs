//! `filectx edit`: exact replacements in one file, all of them or none, and the diff of what they did.

use std::ffi::OsString;
use std::io::{IsTerminal as _, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use filectx_client::render;
use filectx_openapi::{Edit, EditFileRequest, LineBreaks, LineEndings};
use serde::Deserialize;

use super::Context;
use super::change::{finish, warn};
use super::exit::{Exit, Failure};
use super::paths::Cwd;
use super::read::LineBreaksFlag;

/// Replaces exact text in one file and prints the diff
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = "Without --old and --old-file, edits are read from stdin as JSON: \
    [{\"old_text\": ..., \"new_text\": ..., \"line_hint\"?: ..., \"replace_all\"?: ...}, ...]")]
pub(crate) struct Args {
    /// The file
    #[arg(value_name = "FILE")]
    pub(crate) file: OsString,
    /// The text to replace, exactly as it is in the file (repeatable, each with its --new)
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) old: Vec<String>,
    /// What stands there afterwards
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) new: Vec<String>,
    /// The file that holds the text to replace
    #[arg(long, value_name = "PATH", conflicts_with = "old")]
    pub(crate) old_file: Option<PathBuf>,
    /// The file that holds what stands there afterwards
    #[arg(long, value_name = "PATH", conflicts_with = "new")]
    pub(crate) new_file: Option<PathBuf>,
    /// A line inside the wanted occurrence, where there are several
    #[arg(long, value_name = "LINE")]
    pub(crate) line_hint: Option<u64>,
    /// Replaces every occurrence
    #[arg(long)]
    pub(crate) replace_all: bool,
    /// Prints the diff and changes nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The revision that the file must have
    #[arg(long, value_name = "REVISION")]
    pub(crate) expected_revision: Option<String>,
    /// Whether line ends may differ between the text to replace and the file [default: adapt]
    #[arg(long, value_name = "HOW", value_enum)]
    pub(crate) line_endings: Option<LineEndingsFlag>,
    /// What ends a line, for line numbers
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(crate) line_breaks: Option<LineBreaksFlag>,
    /// What a relative path is relative to (without a service: this directory)
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// Prints the contract's response
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LineEndingsFlag {
    /// LF matches CRLF, and new text takes the file's line ends
    Adapt,
    /// Bytes as sent
    Exact,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let cwd = Cwd::new(args.cwd.as_deref(), &context.backend);
    let path = cwd.wire(args.file.as_bytes());
    let request = EditFileRequest {
        path: path.path,
        path_base64: path.path_base64,
        cwd: cwd.cwd,
        edits: edits(args)?,
        expected_revision: args.expected_revision.clone(),
        line_endings: match args.line_endings {
            Some(LineEndingsFlag::Exact) => LineEndings::Exact,
            Some(LineEndingsFlag::Adapt) | None => LineEndings::Adapt,
        },
        line_breaks: args.line_breaks.map_or(LineBreaks::Newline, LineBreaksFlag::breaks),
        dry_run: args.dry_run,
    };
    let result = context.backend.edit(&request);
    finish(result, args.json, context, |response, context| {
        let diff = render::diff(&response.diff, context.out.style());
        context.out.print(&diff)?;
        warn(&response.warnings, response.atomic, context)?;
        if response.edits.iter().any(|edit| edit.line_endings_adapted) {
            context.out.note("line ends were adapted to the file's")?;
        }
        if args.dry_run {
            context.out.note("a dry run: nothing was changed")?;
        }
        Ok(())
    })
}

/// The edits that the flags make, else those on stdin.
fn edits(args: &Args) -> Result<Vec<Edit>, Failure> {
    let usage = |text: &str| Err(Failure::Usage(text.into()));
    let old = match &args.old_file {
        Some(file) => vec![text(file)?],
        None => args.old.clone(),
    };
    let new = match &args.new_file {
        Some(file) => vec![text(file)?],
        None => args.new.clone(),
    };
    if old.len() != new.len() {
        return usage(
            "each text to replace (--old, --old-file) needs one that replaces it (--new, --new-file)",
        );
    }
    if old.len() > 1 && args.line_hint.is_some() {
        return usage("--line-hint is for one edit; send several as JSON on stdin, each with its own");
    }
    if !old.is_empty() {
        let edit = |(old_text, new_text)| Edit {
            old_text,
            new_text,
            line_hint: args.line_hint,
            replace_all: args.replace_all,
        };
        return Ok(old.into_iter().zip(new).map(edit).collect());
    }
    if args.line_hint.is_some() || args.replace_all {
        return usage("--line-hint and --replace-all belong to --old; edits on stdin carry their own");
    }
    if std::io::stdin().is_terminal() {
        return usage("give --old and --new, --old-file and --new-file, or edits as JSON on stdin");
    }
    let mut json = Vec::new();
    std::io::stdin().read_to_end(&mut json).map_err(|error| Failure::Io(format!("stdin: {error}")))?;
    parse(&json)
}

/// A list of edits, or an object that holds it, as the request does.
#[derive(Deserialize)]
#[serde(untagged)]
enum Input {
    List(Vec<Edit>),
    Object { edits: Vec<Edit> },
}

fn parse(json: &[u8]) -> Result<Vec<Edit>, Failure> {
    match serde_json::from_slice(json) {
        Ok(Input::List(edits) | Input::Object { edits }) => Ok(edits),
        Err(_) => {
            // The error of an untagged enum says nothing: a list says what is wrong with it.
            let why = match serde_json::from_slice::<Vec<Edit>>(json) {
                Err(error) => error.to_string(),
                Ok(_) => String::new(),
            };
            Err(Failure::Usage(format!(
                "stdin holds no edits ([{{\"old_text\": ..., \"new_text\": ...}}]): {why}"
            )))
        }
    }
}

fn text(path: &Path) -> Result<String, Failure> {
    let failed = |why: String| Failure::Io(format!("{}: {why}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    String::from_utf8(bytes).map_err(|_| failed("this is not UTF-8 text".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(old: &[&str], new: &[&str]) -> Args {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Args { old: owned(old), new: owned(new), ..Args::default() }
    }

    #[test]
    fn flags_make_edits() {
        let one = Args { line_hint: Some(3), replace_all: true, ..args(&["a"], &["b"]) };
        let made = edits(&one).unwrap();
        assert_eq!((made[0].old_text.as_str(), made[0].new_text.as_str()), ("a", "b"));
        assert_eq!((made[0].line_hint, made[0].replace_all), (Some(3), true));
        assert_eq!(edits(&args(&["a", "c"], &["b", ""])).unwrap().len(), 2);
        for wrong in [
            args(&["a"], &[]),
            args(&[], &["b"]),
            Args { line_hint: Some(1), ..args(&["a", "b"], &["c", "d"]) },
            Args { replace_all: true, ..args(&[], &[]) },
        ] {
            assert!(matches!(edits(&wrong), Err(Failure::Usage(_))), "{wrong:?}");
        }
    }

    #[test]
    fn texts_come_from_files_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        std::fs::write(&old, "a\r\n").unwrap();
        std::fs::write(&new, "$1 \\n\n").unwrap();
        let files = Args { old_file: Some(old.clone()), new_file: Some(new), ..Args::default() };
        let made = edits(&files).unwrap();
        assert_eq!((made[0].old_text.as_str(), made[0].new_text.as_str()), ("a\r\n", "$1 \\n\n"));
        std::fs::write(&old, b"\xff").unwrap();
        assert!(matches!(edits(&files), Err(Failure::Io(_))));
    }

    #[test]
    fn json_holds_a_list_or_the_request_s_object() {
        let list = r#"[{"old_text":"a","new_text":"b","line_hint":2}]"#;
        for json in [list.to_owned(), format!(r#"{{"edits":{list}}}"#)] {
            let made = parse(json.as_bytes()).unwrap();
            assert_eq!((made.len(), made[0].line_hint), (1, Some(2)));
        }
        for wrong in ["", "[", "{}", r#"[{"old_text":"a"}]"#, r#"[{"old_text":"a","new_text":"b","hint":1}]"#]
        {
            assert!(matches!(parse(wrong.as_bytes()), Err(Failure::Usage(_))), "{wrong}");
        }
    }
}
