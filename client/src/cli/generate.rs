//! `filectx completions` and `filectx man`: what a shell and `man` want to know of the commands, made of their definition.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Cli;
use super::exit::{Exit, Failure};
use super::output::Output;

/// Prints the completions of a shell, for its own file of them
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Writes the manual pages of all commands to a directory
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The directory, such as ~/.local/share/man/man1
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl Completions {
    pub(crate) fn run(&self, out: &mut Output) -> Result<Exit, Failure> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "filectx", &mut text);
        out.print(&String::from_utf8_lossy(&text)).map(|()| Exit::Done)
    }
}

impl Man {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let failed = |error| Failure::Io(format!("{}: {error}", self.directory.display()));
        clap_mangen::generate_to(Cli::command(), &self.directory).map(|()| Exit::Done).map_err(failed)
    }
}
