//! `filectxd`: reads its settings, writes the token, listens, says that it is ready, and serves until it is told to stop.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, Parser, Subcommand};
use filectx_files::{Files, Swept};
use filectx_service::config::{Config, Settings};
use filectx_service::guard::token::{Token, runtime_directory};
use filectx_service::host::Host;
use filectx_service::serve::{Listener, idle, serve};
use filectx_service::{Door, Service, document, healthcheck, init_log, relay, systemd};

/// Small requests make many small allocations, large answers few large ones; this allocator is quick at both.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// File context for coding agents: serves a host's files to callers with the token, on loopback only
///
/// Each flag can also be set by FILECTX_NAME in the environment (lists separated by `:`), and each limit by
/// FILECTX_LIMIT_NAME.
#[derive(Debug, Parser)]
#[command(name = "filectxd", version)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    settings: Settings,
    /// Read settings from this TOML file; keys are the flags' names, limits a table `[limits]`
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum Command {
    /// Print the OpenAPI document
    Openapi,
    /// Ask the service that these settings start whether it is alive (flags stand before the command)
    Healthcheck,
    /// Carry stdin and stdout to the service that these settings name, for a caller that reaches this host by SSH alone
    Relay,
    /// Print the completions of a shell, for its own file of them
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

type Failed = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command {
        Some(Command::Openapi) => print_document(),
        Some(Command::Healthcheck) => load(arguments).and_then(|config| Ok(healthcheck::check(&config)?)),
        Some(Command::Relay) => load(arguments).and_then(|config| Ok(relay::carry(&config.listen)?)),
        Some(Command::Completions { shell }) => print_completions(shell),
        Some(Command::Man) => print_manual(),
        None => load(arguments).and_then(run),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "filectxd: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print_document() -> Result<(), Failed> {
    let text = document().to_pretty_json()?;
    Ok(writeln!(io::stdout(), "{text}")?)
}

fn print_completions(shell: clap_complete::Shell) -> Result<(), Failed> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "filectxd", &mut text);
    Ok(io::stdout().write_all(&text)?)
}

fn print_manual() -> Result<(), Failed> {
    let mut text = Vec::new();
    clap_mangen::Man::new(Arguments::command()).render(&mut text)?;
    Ok(io::stdout().write_all(&text)?)
}

fn load(arguments: Arguments) -> Result<Config, Failed> {
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Ok(Config::load(arguments.settings, arguments.config, environment)?)
}

fn run(config: Config) -> Result<(), Failed> {
    let _flushed_at_the_end = init_log(config.log_format);
    allow_descriptors();
    // As many threads may be blocked by short work as there are cores; two more keep everything else going.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(cores + 2).enable_all().build()?;
    let done = runtime.block_on(start(config, cores));
    // A system call that hangs must not hold up the end.
    runtime.shutdown_background();
    done
}

async fn start(config: Config, cores: usize) -> Result<(), Failed> {
    let files = with_journal(Files::new(&config.fences, config.limits.clone())?);
    let host = Host::here()?;
    let told_to_stop = stop_signal()?;
    let mut listeners = Vec::new();
    match systemd::handed_over()? {
        Some(socket) => listeners.push(Listener::adopt(socket)?),
        None => {
            for listen in &config.listen {
                listeners.push(Listener::bind(listen).await?);
            }
        }
    }
    let (url, socket) =
        (listeners.iter().find_map(Listener::url), listeners.iter().find_map(Listener::socket));
    let socket = socket.map(Path::to_owned);
    let token_file = match config.token_file {
        Some(path) => std::path::absolute(path)?,
        // The port's name where there is one: the first.
        None => runtime_directory()?.join(listeners[0].token_name()),
    };
    let token = Token::generate()?;
    token.write(&token_file)?;
    let service = Arc::new(Service::new(files, token, &host).with_blocking_workers(cores));
    if config.fences.roots.is_empty() {
        tracing::warn!(
            user = host.user,
            "no --root: callers with the token reach every file that this user may reach"
        );
    }
    tracing::info!(url, ?socket, ?token_file, "listening");
    if config.ready_json {
        say_ready(url.as_deref(), socket.as_deref(), &token_file, &host)?;
    }
    systemd::tell("READY=1");
    let stop = async {
        match config.idle_timeout {
            None => told_to_stop.await,
            Some(patience) => tokio::select! {
                () = told_to_stop => {}
                () = idle(&service, patience) => tracing::info!("nothing was asked for --idle-timeout"),
            },
        }
        systemd::tell("STOPPING=1");
    };
    serve(&Door::new(Arc::clone(&service)), listeners, stop).await;
    service.token().remove(&token_file);
    tracing::info!("stopped");
    Ok(())
}

/// Settles what a killed service left behind, and keeps a journal for who comes after this one.
fn with_journal(files: Files) -> Files {
    if files.fences().read_only() {
        return files;
    }
    let directory = runtime_directory().map_err(io::Error::other);
    match directory.and_then(|directory| files.keep_journal(&directory)) {
        Ok(swept) if swept == Swept::default() => {}
        Ok(swept) => tracing::warn!(
            ?swept,
            "a service before this one was killed in the middle of changes; they are settled"
        ),
        // Changes are as safe without; only what a kill leaves behind stays.
        Err(error) => tracing::warn!(%error, "no journal of changes can be kept"),
    }
    files
}

/// Raises the soft limit of open files to the hard one: connections and reads need them, and nothing here uses `select`.
fn allow_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where it may not, the service runs with what there is.
    let _ = setrlimit(Resource::Nofile, limit);
}

fn say_ready(url: Option<&str>, socket: Option<&Path>, token_file: &Path, host: &Host) -> io::Result<()> {
    let line = serde_json::json!({
        "url": url,
        "token_file": token_file.to_string_lossy(),
        "socket": socket.map(Path::to_string_lossy),
        "pid": std::process::id(),
        "version": env!("CARGO_PKG_VERSION"),
        "instance_id": host.instance_id,
    });
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

/// Ready when the process is told to end.
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
