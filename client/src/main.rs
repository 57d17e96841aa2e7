//! `filectx`, the command line: a skin over the library. What each command does is in `cli/`, one file an operation.

mod cli;

use std::process::ExitCode;

/// Decoding an image and reading a large answer take large pieces of memory again and again: this allocator keeps them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
