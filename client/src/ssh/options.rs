//! What a caller may say about the way to a host, and the files on this side that belong to it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// How a host is reached.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// The host, as `ssh` takes it: a name of its configuration, `user@host`, `ssh://user@host:port`.
    pub destination: String,
    /// The `ssh` program.
    pub ssh: OsString,
    /// Where `filectxd` lies on the host; `None`: `~/.local/share/filectx`.
    pub remote_dir: Option<String>,
    /// The `filectxd` to bring to the host; `None`: the one that lies beside this program, by the host's kind.
    pub program: Option<PathBuf>,
    /// The kind of forward.
    pub forward: ForwardChoice,
    /// What the service is confined to.
    pub fences: Fences,
    /// Whether `ssh` may ask the user (for a passphrase, whether a host is known).
    pub may_ask: bool,
    /// How long the service stays without a request.
    pub idle_timeout: Duration,
    /// How often the connection is looked at; three silent looks end it.
    pub keep_alive: Duration,
    /// How long one step may take.
    pub patience: Duration,
}

impl HostOptions {
    /// The defaults for this destination. `$FILECTX_SSH` names another `ssh`.
    pub fn new(destination: impl Into<String>) -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            destination: destination.into(),
            ssh: set("FILECTX_SSH").unwrap_or_else(|| "ssh".into()),
            remote_dir: None,
            program: None,
            forward: ForwardChoice::Auto,
            fences: Fences::default(),
            may_ask: false,
            idle_timeout: Duration::from_secs(3600),
            keep_alive: Duration::from_secs(15),
            patience: Duration::from_secs(30),
        }
    }

    /// Names the connection on this side: ways of different fences share it.
    pub(crate) fn master_key(&self) -> String {
        short_hash(&[&self.destination, &self.ssh.to_string_lossy()])
    }

    /// Names the way on this side: the same options, the same way.
    pub(crate) fn key(&self) -> String {
        let ssh = self.ssh.to_string_lossy();
        let (dir, fences) = (self.remote_dir.as_deref().unwrap_or_default(), self.fences.key());
        short_hash(&[&self.destination, &ssh, dir, self.forward.name(), &fences])
    }
}

/// What the service on the host is confined to. Each set has its own service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fences {
    /// Directories that every operation is confined to; none: all that the user may reach.
    pub roots: Vec<String>,
    /// Patterns that are denied.
    pub deny: Vec<String>,
    /// Whether every change is refused.
    pub read_only: bool,
}

impl Fences {
    /// Names the set, on every machine alike.
    pub(crate) fn key(&self) -> String {
        short_hash(&[&self.roots.join("\0"), &self.deny.join("\0"), if self.read_only { "r" } else { "w" }])
    }

    /// The flags of `filectxd`.
    pub(crate) fn flags(&self) -> Vec<String> {
        let roots = self.roots.iter().flat_map(|root| ["--root", root]);
        let deny = self.deny.iter().flat_map(|deny| ["--deny", deny]);
        let read_only = self.read_only.then_some("--read-only");
        roots.chain(deny).chain(read_only).map(str::to_owned).collect()
    }
}

/// The kind of forward that is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardChoice {
    /// A port, else a socket, else a relay: the first that the host allows.
    #[default]
    Auto,
    /// A loopback port.
    Port,
    /// A Unix socket.
    Socket,
    /// Over standard input and output of `filectxd relay`.
    Relay,
}

impl ForwardChoice {
    pub(crate) fn name(self) -> &'static str {
        match self {
            ForwardChoice::Auto => "auto",
            ForwardChoice::Port => "port",
            ForwardChoice::Socket => "socket",
            ForwardChoice::Relay => "relay",
        }
    }
}

/// 64 bits of a hash of these texts. Short: it is part of a socket's path.
pub(crate) fn short_hash(texts: &[&str]) -> String {
    let digest = Sha256::digest(texts.join("\x01").as_bytes());
    digest[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
