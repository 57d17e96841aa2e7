//! The user's own `ssh`: one multiplexed connection a host, and the commands over it. A connection of the user's that is
//! alive is used; else there is one of ours, with a control socket of its own, that ends itself when nobody uses it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::process::Command;
use tokio::time::timeout;

use super::options::HostOptions;
use crate::host_error::{HostError, Step};

/// How long a connection of ours stays without use, in seconds.
const PERSIST: u64 = 600;
/// How long a command to the connection's own process on this machine may take.
const CONTROL: Duration = Duration::from_secs(10);

/// A connection to a host that commands and forwards go over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Master {
    /// Ours, behind this control socket.
    Ours(PathBuf),
    /// The user's, found through the user's configuration.
    Users,
}

impl HostOptions {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.ssh);
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// `ssh` over this connection, and never over another.
    pub(crate) fn over(&self, master: &Master) -> Command {
        let mut command = self.command();
        if let Master::Ours(path) = master {
            // All was said when the connection was made; of the configuration only surprises are left.
            command.args(["-F", "none"]).arg("-o").arg(control_path(path));
        }
        command.args(["-o", "ControlMaster=no", "-o", "BatchMode=yes", "-o", "ProxyCommand=false"]);
        command
    }

    /// What the connection's own process says to `request` (`check`, `forward`, `cancel`, `exit`), if anything.
    pub(crate) async fn control(&self, master: &Master, request: &[&str]) -> Result<(), String> {
        let mut command = self.over(master);
        command.arg("-O").args(request).arg("--").arg(&self.destination);
        let output = match timeout(CONTROL, command.output()).await {
            Ok(Ok(output)) => output,
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return Err(format!("ssh -O {}: no answer", request[0])),
        };
        if output.status.success() { Ok(()) } else { Err(said(&output.stderr)) }
    }

    /// The connection that is there, if one is alive: ours before the user's.
    pub(crate) async fn live_master(&self, ours: &Path) -> Option<Master> {
        let own = Master::Ours(ours.to_owned());
        if ours.exists() && self.control(&own, &["check"]).await.is_ok() {
            return Some(own);
        }
        self.control(&Master::Users, &["check"]).await.is_ok().then_some(Master::Users)
    }

    /// Makes a connection of our own behind the control socket `path`.
    pub(crate) async fn start_master(&self, path: &Path) -> Result<Master, HostError> {
        // What an earlier one left behind would be in the way.
        let _ = std::fs::remove_file(path);
        // To a file: whoever goes on in the background would hold a pipe open.
        let log = path.with_extension("err");
        let failed = |error: std::io::Error| {
            self.failed(Step::Connect, format!("ssh cannot be run: {error}"), "", "install OpenSSH's client")
        };
        let stderr = std::fs::File::create(&log).map_err(failed)?;
        let keep_alive = format!("ServerAliveInterval={}", self.keep_alive.as_secs().max(1));
        let mut command = self.command();
        if !self.may_ask {
            command.args(["-o", "BatchMode=yes"]);
        }
        command.args(["-N", "-T", "-o", "ControlMaster=yes", "-o"]).arg(control_path(path));
        command.args(["-o", &format!("ControlPersist={PERSIST}"), "-o", &keep_alive]);
        for option in [
            "ServerAliveCountMax=3",
            "ClearAllForwardings=yes",
            "ForwardX11=no",
            "ForwardAgent=no",
            "PermitLocalCommand=no",
            "RemoteCommand=none",
            "StreamLocalBindMask=0177",
            "StreamLocalBindUnlink=yes",
        ] {
            command.args(["-o", option]);
        }
        command.arg("--").arg(&self.destination).stdout(Stdio::null()).stderr(stderr);
        let mut child = command.spawn().map_err(failed)?;
        // A person may need long to answer; ssh has limits of its own for that.
        let patience = if self.may_ask { self.patience * 10 } else { self.patience };
        let ended = timeout(patience, child.wait()).await;
        let said = said(&std::fs::read(&log).unwrap_or_default());
        let _ = std::fs::remove_file(&log);
        match ended {
            Ok(Ok(status)) if status.success() && path.exists() => Ok(Master::Ours(path.to_owned())),
            Ok(Ok(_)) => Err(self.refused(&said)),
            Ok(Err(error)) => Err(failed(error)),
            Err(_) => {
                let detail = format!("no connection within {} s", patience.as_secs());
                let hint = format!("see whether `ssh {}` gets there", self.destination);
                Err(self.failed(Step::Connect, detail, &said, &hint))
            }
        }
    }

    /// Ends a connection of ours. The user's stays.
    pub(crate) async fn end_master(&self, master: &Master) {
        if let Master::Ours(path) = master {
            let _ = self.control(master, &["exit"]).await;
            let _ = std::fs::remove_file(path);
        }
    }

    /// What it means that ssh made no connection and said this.
    fn refused(&self, said: &str) -> HostError {
        let destination = &self.destination;
        let has = |text: &str| said.contains(text);
        let login = format!("`ssh {destination}`");
        let (step, detail, hint) = if has("Could not resolve") || has("Name or service not known") {
            (
                Step::Resolve,
                "nobody knows this name",
                format!("see `ssh -G {destination}` for the name that is looked up"),
            )
        } else if has("IDENTIFICATION HAS CHANGED") {
            (
                Step::Authenticate,
                "the host's key is another than it was",
                "if that is right, remove the old key with `ssh-keygen -R`".to_owned(),
            )
        } else if has("Host key verification failed") {
            (
                Step::Authenticate,
                "the host's key is not known yet",
                format!("run {login} once in a terminal and compare the key"),
            )
        } else if has("Permission denied") || has("Too many authentication failures") {
            (
                Step::Authenticate,
                "the host did not let us in",
                format!("load a key (`ssh-add`), or run {login} once in a terminal, where ssh may ask"),
            )
        } else {
            (Step::Connect, "no connection could be made", format!("see whether {login} gets there"))
        };
        self.failed(step, detail, said, &hint)
    }

    pub(crate) fn failed(&self, step: Step, detail: impl Into<String>, said: &str, hint: &str) -> HostError {
        HostError {
            host: self.destination.clone(),
            step,
            detail: detail.into(),
            said: said.to_owned(),
            hint: hint.to_owned(),
        }
    }
}

/// Whether `ssh` takes this destination as one, and not as an option.
pub(crate) fn is_destination(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('-') && !text.contains(char::is_control)
}

fn control_path(path: &Path) -> String {
    // ssh expands what follows a percent sign.
    format!("ControlPath={}", path.display().to_string().replace('%', "%%"))
}

/// The end of what was said, as text that fits into a message.
pub(crate) fn said(bytes: &[u8]) -> String {
    const MOST: usize = 2000;
    let text = String::from_utf8_lossy(bytes).replace('\r', "");
    let text: String = text.chars().filter(|c| !c.is_control() || *c == '\n' || *c == '\t').collect();
    let text = text.trim();
    let cut = text.len().saturating_sub(MOST);
    let start = (cut..).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text[start..].to_owned()
}
