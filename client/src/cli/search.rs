//! What the two searches share: their flags, and what they say on stderr about what was cut, skipped or not reached.

use std::ffi::OsString;

use filectx_client::render::{self, limit_name};
use filectx_openapi::{FindError, FindTruncation, ItemError, ProblemData, Skipped};

use super::Context;
use super::again;
use super::exit::Failure;

/// The flags of a search.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Search {
    /// Globs relative to each path searched (repeatable); one without `/` matches at any depth, `!` excludes
    #[arg(short, long, value_name = "GLOB", allow_hyphen_values = true)]
    pub(crate) glob: Vec<String>,
    /// Hidden files and directories too
    #[arg(long)]
    pub(crate) hidden: bool,
    /// Does not obey ignore files
    #[arg(long)]
    pub(crate) no_ignore: bool,
    /// Goes on where a search was cut
    #[arg(long, value_name = "CURSOR", allow_hyphen_values = true)]
    pub(crate) after: Option<String>,
    /// Most milliseconds for the search
    #[arg(long, value_name = "MS")]
    pub(crate) deadline_ms: Option<u64>,
    /// What relative paths are relative to (without a service: this directory)
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// Prints the contract's response
    #[arg(long)]
    pub(crate) json: bool,
}

/// Paths to search, as the contract takes them: text. None = the directory itself.
pub(crate) fn roots(paths: &[OsString]) -> Result<Option<Vec<String>>, Failure> {
    if paths.is_empty() {
        return Ok(None);
    }
    let text = |path: &OsString| {
        let usage = || Failure::Usage(format!("{}: a path to search must be UTF-8", path.display()));
        path.to_str().map(str::to_owned).ok_or_else(usage)
    };
    paths.iter().map(text).collect::<Result<Vec<_>, _>>().map(Some)
}

/// What is worth knowing about an answer.
pub(crate) struct About<'a> {
    pub(crate) truncation: Option<&'a FindTruncation>,
    pub(crate) deadline_exceeded: bool,
    pub(crate) skipped: &'a Skipped,
    pub(crate) errors: &'a [FindError],
    pub(crate) error_count: u64,
}

/// Says on stderr what was cut, skipped or not reached.
pub(crate) fn report(about: &About<'_>, context: &mut Context) -> Result<(), Failure> {
    for FindError { path, code, message, .. } in about.errors {
        let error = ItemError {
            code: code.clone(),
            message: message.clone(),
            hint: None,
            data: Box::new(ProblemData::default()),
        };
        context.out.refused(path, &error)?;
    }
    let cut = about.truncation.map(|truncation| {
        let command = again::command(&again::of_process(), &truncation.next);
        format!("cut by {}, more was found; go on: {command}", limit_name(truncation.limit))
    });
    let time = about.deadline_exceeded.then(|| "not complete: the time was up (deadline_ms)".to_owned());
    let notes = [
        render::more_errors(about.errors.len(), about.error_count),
        render::skipped(about.skipped),
        time,
        cut,
    ];
    for note in notes.into_iter().flatten() {
        context.out.note(&note)?;
    }
    Ok(())
}
