//! `filectx rm`: files and links, one after the other; never a directory.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

use filectx_openapi::DeleteFileRequest;

use super::Context;
use super::change::finish;
use super::exit::{Exit, Failure};
use super::paths::Cwd;

/// Deletes files or links, never directories
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<OsString>,
    /// The revision that the one FILE must have
    #[arg(long, value_name = "REVISION")]
    pub(crate) expected_revision: Option<String>,
    /// What relative paths are relative to (without a service: this directory)
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// Prints the contract's response, one a line
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    if args.files.len() > 1 && args.expected_revision.is_some() {
        return Err(Failure::Usage("--expected-revision is for one FILE".into()));
    }
    let cwd = Cwd::new(args.cwd.as_deref(), &context.backend);
    let mut exit = Exit::Done;
    for file in &args.files {
        let path = cwd.wire(file.as_bytes());
        let request = DeleteFileRequest {
            path: path.path,
            path_base64: path.path_base64,
            cwd: cwd.cwd.clone(),
            expected_revision: args.expected_revision.clone(),
        };
        let result = context.backend.delete(&request);
        match finish(result, args.json, context, |_, _| Ok(())) {
            Ok(_) => {}
            // One file that is refused costs no other.
            Err(failure) if failure.exit() == Exit::Refused => {
                context.out.say(&failure);
                exit = Exit::Refused;
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(exit)
}
