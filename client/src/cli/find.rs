//! `filectx find`: searches contents, and prints as grep does.

use std::ffi::OsString;

use filectx_client::render;
use filectx_openapi::FindTextRequest;

use super::Context;
use super::change::finish;
use super::exit::{Exit, Failure};
use super::paths::Cwd;
use super::search::{About, Search, report, roots};

/// Searches contents: `path:line: text`, and `path-line- text` for lines around a match
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = "Exit status: 0 found, 1 nothing found, 2 the search failed.")]
pub(crate) struct Args {
    /// A Rust regular expression; case counts if it holds a capital
    #[arg(value_name = "PATTERN", required_unless_present = "regexp")]
    pub(crate) pattern: Option<OsString>,
    /// Files and directories to search [default: the directory itself]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<OsString>,
    /// The pattern, also one that begins with a dash; every other argument is a path then
    #[arg(short = 'e', long, value_name = "PATTERN", allow_hyphen_values = true)]
    pub(crate) regexp: Option<String>,
    #[command(flatten)]
    pub(crate) search: Search,
    /// Lines of context before and after each match
    #[arg(short = 'C', long, value_name = "LINES", default_value_t = 0)]
    pub(crate) context: u64,
    /// Most matching lines
    #[arg(short, long, value_name = "N", default_value_t = 50)]
    pub(crate) max_results: u64,
    /// Takes the pattern as text
    #[arg(short = 'F', long)]
    pub(crate) literal: bool,
    /// Case does not count
    #[arg(short, long, conflicts_with = "case_sensitive")]
    pub(crate) ignore_case: bool,
    /// Case counts
    #[arg(short = 's', long)]
    pub(crate) case_sensitive: bool,
    /// Lets a match span lines
    #[arg(short = 'U', long)]
    pub(crate) multiline: bool,
    /// Follows links
    #[arg(short = 'L', long)]
    pub(crate) follow_links: bool,
    /// Most bytes of a line; longer ones become a window around the match
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub(crate) max_line_bytes: u64,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let search = &args.search;
    let cwd = Cwd::new(search.cwd.as_deref(), &context.backend);
    let (pattern, paths) = what(args)?;
    let request = FindTextRequest {
        pattern,
        paths: roots(&paths)?,
        cwd: cwd.cwd,
        globs: search.glob.clone(),
        context: args.context,
        max_results: args.max_results,
        literal: args.literal,
        case_sensitive: match (args.case_sensitive, args.ignore_case) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        },
        hidden: search.hidden,
        ignore_files: !search.no_ignore,
        after: search.after.clone(),
        multiline: args.multiline,
        follow_links: args.follow_links,
        max_line_bytes: args.max_line_bytes,
        deadline_ms: search.deadline_ms,
    };
    let mut found = false;
    let result = context.backend.find_text(&request).inspect(|response| found = !response.rows.is_empty());
    finish(result, search.json, context, |response, context| {
        let text = render::find_text(response, args.context > 0, context.out.style());
        context.out.print(&text)?;
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

/// The pattern and the paths.
fn what(args: &Args) -> Result<(String, Vec<OsString>), Failure> {
    let first = args.pattern.iter().cloned();
    if let Some(pattern) = &args.regexp {
        return Ok((pattern.clone(), first.chain(args.paths.iter().cloned()).collect()));
    }
    let pattern = args.pattern.clone().unwrap_or_default().into_string();
    let pattern = pattern.map_err(|_| Failure::Usage("a pattern must be UTF-8".into()))?;
    Ok((pattern, args.paths.clone()))
}
