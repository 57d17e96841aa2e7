//! `filectx ls`: one directory in aligned columns.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

use filectx_client::render::{self, grouped, limit_name};
use filectx_openapi::ListDirectoryRequest;

use super::Context;
use super::again;
use super::change::finish;
use super::exit::{Exit, Failure};
use super::paths::Cwd;

/// Lists one directory: type and mode, size, time (UTC), name
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// The directory
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) path: OsString,
    /// Leaves out names that begin with a dot
    #[arg(long)]
    pub(crate) no_hidden: bool,
    /// Most entries [default: the service's limit, 1000]
    #[arg(long, value_name = "N")]
    pub(crate) max_entries: Option<u64>,
    /// Goes on where a list was cut
    #[arg(long, value_name = "CURSOR", allow_hyphen_values = true)]
    pub(crate) after: Option<String>,
    /// What a relative path is relative to (without a service: this directory)
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// Prints the contract's response
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let cwd = Cwd::new(args.cwd.as_deref(), &context.backend);
    let path = cwd.wire(args.path.as_bytes());
    let request = ListDirectoryRequest {
        path: path.path,
        path_base64: path.path_base64,
        cwd: cwd.cwd,
        hidden: !args.no_hidden,
        max_entries: args.max_entries,
        after: args.after.clone(),
    };
    let result = context.backend.list(&request);
    finish(result, args.json, context, |response, context| {
        let text = render::list(response, context.out.style());
        context.out.print(&text)?;
        let Some(truncation) = &response.truncation else { return Ok(()) };
        context.out.note(&format!(
            "cut by {} at {} of {} entries; go on: {}",
            limit_name(truncation.limit),
            grouped(response.entries.len() as u64),
            grouped(response.total),
            again::command(&again::of_process(), &truncation.next)
        ))
    })
}
