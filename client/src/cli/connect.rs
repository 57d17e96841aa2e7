//! `filectx connect`, `hosts`, `disconnect`, `install`: the way to hosts itself, instead of what lies there.

use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use filectx_client::hosts::{HostManager, HostState};
use filectx_client::ssh::{self, HostOptions, Known, Place, Way};
use filectx_client::{Error, Target};
use serde_json::json;
use tokio::runtime::Runtime;

use super::connection::{Connection, Environment};
use super::exit::{Exit, Failure};
use super::host;
use super::output::Output;
use super::quote::quoted;

/// Connects to a host and stays: prints its URL, token file, a line for curl and the address of Swagger UI
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Connect {
    #[command(flatten)]
    at: At,
}

/// Says which hosts are known, and whether they are connected
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Hosts {
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// Ends the way to a host. The service there ends itself when nobody asks it
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Disconnect {
    #[command(flatten)]
    at: At,
}

/// Brings filectxd to a host, without starting it
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Install {
    #[command(flatten)]
    at: At,
}

/// The host of such a command.
#[derive(Clone, Debug, clap::Args)]
struct At {
    /// The host, as ssh takes it [default: --host, else $FILECTX_HOST]
    #[arg(value_name = "DEST")]
    destination: Option<String>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// What these commands work with.
pub(crate) struct Ways<'a> {
    connection: &'a Connection,
    environment: &'a Environment,
    out: &'a mut Output,
    place: Place,
    runtime: Runtime,
}

impl<'a> Ways<'a> {
    pub(crate) fn new(
        connection: &'a Connection,
        environment: &'a Environment,
        out: &'a mut Output,
    ) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::Io(error.to_string());
        let place = Place::shared().map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        Ok(Self { connection, environment, out, place, runtime })
    }

    fn options(&self, at: &At) -> Result<HostOptions, Failure> {
        let named = at.destination.clone().or_else(|| self.connection.host(self.environment));
        let missing = || Failure::Usage("name a host: DEST, --host or $FILECTX_HOST".into());
        Ok(self.connection.way.options(&named.ok_or_else(missing)?, self.environment))
    }

    pub(crate) fn install(&mut self, args: &Install) -> Result<Exit, Failure> {
        let options = self.options(&args.at)?;
        let progress = host::progress(&options.destination);
        let installed = self.runtime.block_on(ssh::install(&self.place, &options, &progress));
        host::clear_progress();
        let program = installed.map_err(failure)?;
        if args.at.json {
            self.out.json(&json!({"host": options.destination, "program": program}))?;
        } else {
            let shown = self.out.style().line(&program);
            self.out.print(&format!("{shown}\n"))?;
        }
        Ok(Exit::Done)
    }

    pub(crate) fn disconnect(&mut self, args: &Disconnect) -> Result<Exit, Failure> {
        let options = self.options(&args.at)?;
        let ended = self.runtime.block_on(ssh::disconnect(&self.place, &options));
        let ended = ended.map_err(|error| Failure::Io(error.to_string()))?;
        if args.at.json {
            self.out.json(&json!({"host": options.destination, "was_connected": ended}))?;
        } else if !ended {
            self.out.note(&format!("{} was not connected", options.destination))?;
        }
        Ok(Exit::Done)
    }

    pub(crate) fn hosts(&mut self, args: &Hosts) -> Result<Exit, Failure> {
        let known = self.runtime.block_on(ssh::known(&self.place));
        if args.json {
            let hosts: Vec<_> = known.iter().map(as_json).collect();
            self.out.json(&json!({"hosts": hosts}))?;
            return Ok(Exit::Done);
        }
        let width = known.iter().map(|host| host.destination.chars().count()).max().unwrap_or(0);
        for Known { destination, forward, connected, info } in &known {
            let state = if *connected { "connected" } else { "lost" };
            let row = format!(
                "{destination:width$}  {state:9}  {forward:6}  {} {}, {}@{}",
                info.service, info.version, info.user, info.host_name
            );
            let row = self.out.style().line(&row).into_owned();
            self.out.print(&format!("{row}\n"))?;
        }
        if known.is_empty() {
            self.out.note("no hosts are known; `filectx --host DEST read ...` connects to one")?;
        }
        Ok(Exit::Done)
    }

    pub(crate) fn connect(&mut self, args: &Connect) -> Result<Exit, Failure> {
        let options = self.options(&args.at)?;
        let (place, destination) = (self.place.clone(), options.destination.clone());
        let token_file = place.directory().join(format!("{}.token", filectx_name(&destination)));
        // A runtime of its own, as `self` says what happens meanwhile.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::Io(error.to_string()))?;
        let result = runtime.block_on(async {
            let told_to_stop = stop_signal().map_err(|error| Failure::Io(error.to_string()))?;
            let before = ssh::known(&place).await.iter().any(|known| known.destination == destination);
            let hosts = HostManager::new(place.clone());
            let stay = self.stay(&hosts, options.clone(), &token_file, args.at.json);
            let result = tokio::select! {
                result = stay => result,
                () = told_to_stop => Ok(Exit::Done),
            };
            hosts.shutdown().await;
            // What was there before is others' too.
            if !before {
                let _ = ssh::disconnect(&place, &options).await;
            }
            result
        });
        let _ = std::fs::remove_file(&token_file);
        result
    }

    /// Stays connected, and says so whenever the way has changed.
    async fn stay(
        &mut self,
        hosts: &HostManager,
        options: HostOptions,
        token_file: &PathBuf,
        json: bool,
    ) -> Result<Exit, Failure> {
        let destination = options.destination.clone();
        hosts.connect(options).await.map_err(failure)?;
        let Some(mut state) = hosts.watch(&destination) else { return Ok(Exit::Done) };
        let mut lost = false;
        loop {
            let now = state.borrow_and_update().clone();
            match now {
                HostState::Connected(way) => {
                    write_token(token_file, way.token()).map_err(|error| Failure::Io(error.to_string()))?;
                    self.say_connected(&destination, &way, token_file, json)?;
                    lost = false;
                }
                HostState::Ended(error) => {
                    return match error {
                        Some(error) => Err(failure(Arc::unwrap_or_clone(error))),
                        None => Ok(Exit::Done),
                    };
                }
                HostState::Connecting(_) if !lost => {
                    lost = true;
                    self.out.note(&format!("{destination}: the connection is lost; connecting again"))?;
                }
                HostState::Waiting(error, _) => self.out.note(&error.to_string())?,
                HostState::Connecting(_) => {}
            }
            if state.changed().await.is_err() {
                return Ok(Exit::Done);
            }
        }
    }

    fn say_connected(
        &mut self,
        destination: &str,
        way: &Way,
        token_file: &std::path::Path,
        json: bool,
    ) -> Result<(), Failure> {
        let file = quoted(token_file.as_os_str().as_encoded_bytes());
        let bearer = format!("-H \"authorization: Bearer $(cat {file})\"");
        let (url, socket) = match way.target() {
            Target::Socket(path) => (None, Some(path.display().to_string())),
            port => (Some(port.to_string()), None),
        };
        let curl = match (&url, &socket) {
            (Some(url), _) => format!("curl -s {url}/v1/info {bearer}"),
            (None, socket) => {
                let socket = quoted(socket.as_deref().unwrap_or_default().as_bytes());
                format!("curl -s --unix-socket {socket} http://127.0.0.1/v1/info {bearer}")
            }
        };
        let docs = url.as_ref().map(|url| format!("{url}/docs/"));
        if json {
            self.out.json(&json!({
                "host": destination, "forward": way.kind(), "url": url, "socket": socket,
                "token_file": token_file, "curl": curl, "docs": docs, "info": way.info(),
            }))?;
            return self.out.flush();
        }
        let info = way.info();
        let who = format!("{} {}, {}@{}", info.service, info.version, info.user, info.host_name);
        let mut rows = vec![("connected", format!("{destination} ({who}), by {}", way.kind()))];
        rows.extend(url.map(|url| ("url", url)));
        rows.extend(socket.map(|socket| ("socket", socket)));
        rows.push(("token file", token_file.display().to_string()));
        rows.push(("curl", curl));
        rows.extend(docs.map(|docs| ("swagger ui", docs)));
        for (name, value) in rows {
            let value = self.out.style().line(&value).into_owned();
            self.out.print(&format!("{name:10}  {value}\n"))?;
        }
        self.out.flush()
    }
}

fn as_json(known: &Known) -> serde_json::Value {
    let Known { destination, forward, connected, info } = known;
    json!({"host": destination, "connected": connected, "forward": forward, "info": info})
}

/// A file's name for a destination.
fn filectx_name(destination: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || ".-_@".contains(c) { c } else { '_' };
    destination.chars().map(plain).collect()
}

/// Writes the token for the user's own programs, 0600, in a directory of the user alone.
fn write_token(path: &PathBuf, token: &str) -> io::Result<()> {
    let _ = std::fs::remove_file(path);
    let mut file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(path)?;
    io::Write::write_all(&mut file, format!("{token}\n").as_bytes())
}

fn failure(error: filectx_client::HostError) -> Failure {
    Failure::Request(Error::Host(Box::new(error)))
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
