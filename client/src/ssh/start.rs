//! The service on the host: the one that runs for this user, program and fences, or a new one, detached from the session
//! that starts it. Nobody ends another's: one that is not used ends itself.

use serde::{Deserialize, Serialize};

use super::command::Master;
use super::options::HostOptions;
use super::script::ScriptFailure;
use crate::host_error::{HostError, Step};
use crate::token::random_hex;

/// A service that runs on the host. Debug output shows no token.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Service {
    pub(crate) port: u16,
    pub(crate) socket: String,
    pub(crate) token_file: String,
    pub(crate) token: String,
    pub(crate) instance_id: String,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("port", &self.port).field("instance_id", &self.instance_id).finish()
    }
}

/// What `filectxd --ready-json` says.
#[derive(Deserialize)]
struct Ready {
    url: String,
    socket: String,
    token_file: String,
    instance_id: String,
}

impl Service {
    /// The service of this ready line and token.
    pub(crate) fn parse(ready: &str, token: &str) -> Option<Self> {
        let Ready { url, socket, token_file, instance_id } = serde_json::from_str(ready).ok()?;
        let port = url.rsplit_once(':')?.1.parse().ok()?;
        (!token.is_empty()).then(|| Self { port, socket, token_file, token: token.to_owned(), instance_id })
    }
}

impl HostOptions {
    /// Starts the service of this program, or finds that another session was quicker.
    pub(crate) async fn start(&self, master: &Master, program: &str) -> Result<Service, HostError> {
        let id = random_hex(6).map_err(|error| self.failed(Step::Start, error.to_string(), "", ""))?;
        let script = self
            .script(include_str!("start.sh"))
            .with("program", program)
            .with("id", &id)
            .with("idle", &self.idle_timeout.as_secs().max(1).to_string())
            .arguments(&self.fences.flags());
        let answer = self.run(master, &script, None, self.patience).await;
        let answer = answer.map_err(|failure| self.not_started(failure))?;
        let (ready, token) =
            (answer.get("ready").unwrap_or_default(), answer.get("token").unwrap_or_default());
        Service::parse(ready, token).ok_or_else(|| {
            self.failed(
                Step::Start,
                "filectxd did not say where it listens",
                ready,
                "name another filectxd: --filectxd PATH",
            )
        })
    }

    fn not_started(&self, failure: ScriptFailure) -> HostError {
        let ScriptFailure { reason, detail, said } = failure;
        let (detail, hint) = match reason.as_deref() {
            Some("runtime") => (
                format!("filectxd has no place for its token: {detail}"),
                "it needs $XDG_RUNTIME_DIR, or a directory /tmp/filectx-UID of this user alone",
            ),
            Some("ended") => {
                (format!("filectxd ended: {detail}"), "what it says names the setting that is wrong")
            }
            Some("lock") => (format!("another session has been starting it for long: {detail}"), "try again"),
            _ => (detail, "try again"),
        };
        self.failed(Step::Start, detail, &said, hint)
    }
}
