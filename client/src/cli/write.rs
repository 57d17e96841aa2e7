//! `filectx write`: one whole file from stdin, byte for byte.

use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;

use filectx_client::render;
use filectx_openapi::WriteFileRequest;

use super::Context;
use super::change::{finish, warn};
use super::exit::{Exit, Failure};
use super::paths::Cwd;

/// Writes stdin to one file, wholly or not at all
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// The file
    #[arg(value_name = "FILE")]
    pub(crate) file: OsString,
    /// Refuses to replace a file
    #[arg(long, conflicts_with = "expected_revision")]
    pub(crate) create_only: bool,
    /// The revision that the file must have
    #[arg(long, value_name = "REVISION")]
    pub(crate) expected_revision: Option<String>,
    /// Does not make missing directories
    #[arg(long)]
    pub(crate) no_create_parents: bool,
    /// Permissions of a new file, four octal digits [default: 0666 & ~umask]
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<String>,
    /// What a relative path is relative to (without a service: this directory)
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// Prints the contract's response
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let cwd = Cwd::new(args.cwd.as_deref(), &context.backend);
    let path = cwd.wire(args.file.as_bytes());
    let request = WriteFileRequest {
        path: path.path,
        path_base64: path.path_base64,
        cwd: cwd.cwd,
        text_content: None,
        binary_content: None,
        expected_revision: args.expected_revision.clone(),
        create_only: args.create_only,
        create_parents: !args.no_create_parents,
        mode: args.mode.clone(),
    };
    let result = context.backend.write(request, std::io::stdin().as_fd());
    finish(result?, args.json, context, |response, context| {
        let text = render::write(response, context.out.style());
        context.out.print(&text)?;
        warn(&response.warnings, response.atomic, context)
    })
}
