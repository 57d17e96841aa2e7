//! The flags that say how a host is reached over SSH, and how far that is, told on a terminal.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use clap::{Args, ValueEnum};
use filectx_client::ssh::{Fences, ForwardChoice, HostOptions, Progress};

use super::connection::Environment;

/// How a host is reached.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Host")]
pub(crate) struct HostFlags {
    /// The filectxd to bring to the host [default: the one beside this program, by the host's kind]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) filectxd: Option<PathBuf>,
    /// Where filectxd lies on the host [default: ~/.local/share/filectx]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) remote_dir: Option<String>,
    /// How the service there is reached [default: auto]
    #[arg(long, global = true, value_name = "KIND", value_enum)]
    pub(crate) forward: Option<ForwardFlag>,
    /// Confines the service to this directory of the host (repeatable)
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) root: Vec<String>,
    /// Denies what this pattern matches on the host (repeatable)
    #[arg(long, global = true, value_name = "GLOB")]
    pub(crate) deny: Vec<String>,
    /// Refuses every change on the host
    #[arg(long, global = true)]
    pub(crate) read_only: bool,
    /// How long a service that is started on the host stays without a request [default: 3600]
    #[arg(long, global = true, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) idle_timeout: Option<u64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ForwardFlag {
    /// The first that the host allows
    Auto,
    /// A loopback port
    Port,
    /// A Unix socket
    Socket,
    /// Standard input and output of a command
    Relay,
}

impl ForwardFlag {
    fn choice(self) -> ForwardChoice {
        match self {
            ForwardFlag::Auto => ForwardChoice::Auto,
            ForwardFlag::Port => ForwardChoice::Port,
            ForwardFlag::Socket => ForwardChoice::Socket,
            ForwardFlag::Relay => ForwardChoice::Relay,
        }
    }
}

impl HostFlags {
    /// The options for this destination.
    pub(crate) fn options(&self, destination: &str, environment: &Environment) -> HostOptions {
        let mut options = HostOptions::new(destination);
        options.remote_dir.clone_from(&self.remote_dir);
        options.program.clone_from(&self.filectxd);
        options.forward = self.forward.unwrap_or(ForwardFlag::Auto).choice();
        options.fences =
            Fences { roots: self.root.clone(), deny: self.deny.clone(), read_only: self.read_only };
        options.may_ask = environment.may_ask;
        options.idle_timeout = self.idle_timeout.map_or(options.idle_timeout, Duration::from_secs);
        options
    }

    /// The flags that name the host's service, for a command that is printed.
    pub(crate) fn flags(&self) -> Vec<(&'static str, String)> {
        let dir = self.remote_dir.iter().map(|dir| ("--remote-dir", dir.clone()));
        let program = self.filectxd.iter().map(|path| ("--filectxd", path.to_string_lossy().into_owned()));
        let forward = self.forward.and_then(|forward| forward.to_possible_value());
        let forward = forward.map(|forward| ("--forward", forward.get_name().to_owned()));
        let roots = self.root.iter().map(|root| ("--root", root.clone()));
        let deny = self.deny.iter().map(|deny| ("--deny", deny.clone()));
        program.chain(dir).chain(forward).chain(roots).chain(deny).collect()
    }
}

/// Whether ssh may ask the user: on a terminal, or by a program of the user's choice.
pub(crate) fn may_ask() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let terminal = io::stdin().is_terminal() || io::stderr().is_terminal();
    terminal || set("SSH_ASKPASS") && (set("DISPLAY") || set("SSH_ASKPASS_REQUIRE"))
}

/// Tells on a terminal how far the way to a host is, on one line that goes away.
pub(crate) fn progress(destination: &str) -> impl Fn(Progress) + Send + Sync + 'static {
    const WIDTH: u64 = 30;
    let shown = io::stderr().is_terminal();
    let destination = destination.to_owned();
    let last = Mutex::new(u64::MAX);
    move |progress| {
        if !shown {
            return;
        }
        let text = match progress {
            Progress::Step(step) => format!("{destination}: {step} ..."),
            Progress::Upload { done, total } => {
                let part = done * WIDTH / total.max(1);
                let mut last = last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                if std::mem::replace(&mut *last, part) == part {
                    return;
                }
                let bar = "#".repeat(part as usize) + &"-".repeat((WIDTH - part) as usize);
                format!("{destination}: install [{bar}] {} of {} kB", done / 1000, total / 1000)
            }
        };
        let _ = write!(io::stderr(), "\r\x1b[K{text}");
        if matches!(progress, Progress::Step(filectx_client::Step::Forward)) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// Ends the line that tells how far it is.
pub(crate) fn clear_progress() {
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
}
