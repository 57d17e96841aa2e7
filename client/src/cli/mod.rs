//! The command line: which commands there are, what they share, and how they end.
//!
//! A command parses its arguments into the contract's request, asks the backend (a service, or the engine in process),
//! and prints what came back. Exit status: 0 all done, 1 some items refused (a search: nothing found), 2 the request failed.

mod again;
mod backend;
mod batch;
mod change;
mod connect;
mod connection;
mod delete;
mod edit;
mod exit;
mod find;
mod find_paths;
mod generate;
mod host;
mod info;
mod input;
mod list;
mod output;
mod paths;
mod picture;
mod progress;
mod quote;
mod raw;
mod read;
mod save;
mod search;
mod sixel;
mod suffix;
mod terminal;
mod write;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use backend::Backend;
use connect::Ways;
use connection::{Connection, Environment};
use exit::{Exit, Failure};
use output::Output;

/// Reads, lists, searches and changes files for coding agents: on this machine in process, or on a host through its
/// `filectxd`.
#[derive(Debug, Parser)]
#[command(name = "filectx", version, max_term_width = 100)]
#[command(
    after_help = "Exit status: 0 all done, 1 some items refused (a search: nothing found), 2 the request failed."
)]
struct Cli {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Read(read::Args),
    Ls(list::Args),
    Find(find::Args),
    Paths(find_paths::Args),
    Edit(edit::Args),
    Write(write::Args),
    Rm(delete::Args),
    Info(info::Args),
    Connect(connect::Connect),
    Hosts(connect::Hosts),
    Disconnect(connect::Disconnect),
    Install(connect::Install),
    Completions(generate::Completions),
    Man(generate::Man),
}

impl Command {
    /// Whether it may change files.
    fn changes(&self) -> bool {
        matches!(self, Command::Edit(_) | Command::Write(_) | Command::Rm(_))
    }
}

/// What every command works with.
pub(crate) struct Context {
    pub(crate) connection: Connection,
    pub(crate) backend: Backend,
    pub(crate) out: Output,
}

/// Runs the command that the arguments name.
pub(crate) fn main() -> ExitCode {
    let exit = execute(Cli::parse(), &Environment::of_process(), Output::of_process());
    ExitCode::from(exit.status())
}

fn execute(cli: Cli, environment: &Environment, mut out: Output) -> Exit {
    let aside = match &cli.command {
        Command::Completions(args) => Some(args.run(&mut out)),
        Command::Man(args) => Some(args.run()),
        _ => of_ways(&cli, environment, &mut out),
    };
    if let Some(result) = aside {
        return out.end(result);
    }
    let backend = match Backend::new(&cli.connection, environment, cli.command.changes()) {
        Ok(backend) => backend,
        Err(failure) => return out.end(Err(failure)),
    };
    let mut context = Context { connection: cli.connection, backend, out };
    let result = run(&cli.command, &mut context);
    context.out.end(result)
}

/// What a command about the way to hosts comes to; `None`: it is about files.
fn of_ways(cli: &Cli, environment: &Environment, out: &mut Output) -> Option<Result<Exit, Failure>> {
    let run: &dyn Fn(&mut Ways<'_>) -> Result<Exit, Failure> = match &cli.command {
        Command::Connect(args) => &|ways| ways.connect(args),
        Command::Hosts(args) => &|ways| ways.hosts(args),
        Command::Disconnect(args) => &|ways| ways.disconnect(args),
        Command::Install(args) => &|ways| ways.install(args),
        _ => return None,
    };
    Some(Ways::new(&cli.connection, environment, out).and_then(|mut ways| run(&mut ways)))
}

fn run(command: &Command, context: &mut Context) -> Result<Exit, Failure> {
    match command {
        Command::Read(args) => read::run(args, context),
        Command::Ls(args) => list::run(args, context),
        Command::Find(args) => find::run(args, context),
        Command::Paths(args) => find_paths::run(args, context),
        Command::Edit(args) => edit::run(args, context),
        Command::Write(args) => write::run(args, context),
        Command::Rm(args) => delete::run(args, context),
        Command::Info(args) => info::run(args, context),
        Command::Connect(_)
        | Command::Hosts(_)
        | Command::Disconnect(_)
        | Command::Install(_)
        | Command::Completions(_)
        | Command::Man(_) => Ok(Exit::Done),
    }
}

#[cfg(test)]
mod tests;
