//! `filectx`, the command line: a skin over the library. What each command does is in `cli/`, one file an operation.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
