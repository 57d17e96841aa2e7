//! `filectx paths`: searches names, and prints one path a line.

use std::ffi::OsString;

use clap::ValueEnum;
use filectx_openapi::{Base64, FindPathsRequest, FoundPath, PathTypeFilter};

use super::Context;
use super::change::finish;
use super::exit::{Exit, Failure};
use super::paths::Cwd;
use super::search::{About, Search, report, roots};

/// Searches names: one path a line
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = "Exit status: 0 found, 1 nothing found, 2 the search failed.")]
pub(crate) struct Args {
    /// With `*`, `?`, `[` or `{` a glob, else a part of the name; with `/` it is about the path [default: all]
    #[arg(value_name = "PATTERN")]
    pub(crate) pattern: Option<String>,
    /// Directories to search [default: the directory itself]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<OsString>,
    #[command(flatten)]
    pub(crate) search: Search,
    /// Most paths
    #[arg(short, long, value_name = "N", default_value_t = 200)]
    pub(crate) max_results: u64,
    /// Only these
    #[arg(short, long = "type", value_name = "KIND", value_enum)]
    pub(crate) type_: Option<TypeFlag>,
    /// Ends each path with NUL instead of a line end
    #[arg(short = '0', long = "null")]
    pub(crate) null: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TypeFlag {
    /// Files
    #[value(alias = "f")]
    File,
    /// Directories
    #[value(alias = "d")]
    Directory,
    /// Everything, links too
    Any,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let search = &args.search;
    let cwd = Cwd::new(search.cwd.as_deref(), &context.backend);
    let request = FindPathsRequest {
        pattern: args.pattern.clone(),
        paths: roots(&args.paths)?,
        cwd: cwd.cwd,
        globs: search.glob.clone(),
        max_results: args.max_results,
        hidden: search.hidden,
        ignore_files: !search.no_ignore,
        type_: match args.type_ {
            Some(TypeFlag::File) => PathTypeFilter::File,
            Some(TypeFlag::Directory) => PathTypeFilter::Directory,
            Some(TypeFlag::Any) | None => PathTypeFilter::Any,
        },
        after: search.after.clone(),
        deadline_ms: search.deadline_ms,
    };
    let mut found = false;
    let result = context.backend.find_paths(&request).inspect(|response| found = !response.paths.is_empty());
    finish(result, search.json, context, |response, context| {
        for path in &response.paths {
            print(path, args.null, context)?;
        }
        let about = About {
            truncation: response.truncation.as_ref(),
            deadline_exceeded: response.deadline_exceeded,
            skipped: &response.skipped,
            errors: &response.errors,
            error_count: response.error_count,
        };
        report(&about, context)
    })
    // 1 means that nothing is there: a search that failed must not look like that.
    .map_err(Failure::of_search)?;
    Ok(if found { Exit::Done } else { Exit::Refused })
}

/// For a program a path is its exact bytes; for a terminal it is what can be read.
fn print(path: &FoundPath, null: bool, context: &mut Context) -> Result<(), Failure> {
    let style = context.out.style();
    let exact = path.path_base64.as_deref().and_then(Base64::decode);
    match exact {
        _ if style.terminal && !null => context.out.print(&style.name(&path.path))?,
        Some(bytes) => context.out.bytes(&bytes)?,
        None => context.out.print(&path.path)?,
    }
    context.out.print(if null { "\0" } else { "\n" })
}
