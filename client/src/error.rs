//! The client's errors: one variant for each thing that a caller would do differently. Failures of single files are
//! values in a response, never one of these.

use std::fmt;
use std::time::Duration;

use filectx_openapi::{Code, Problem};

use crate::host_error::HostError;

/// Why a call failed as a whole.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// No connection could be made, or it broke before the answer was complete.
    #[error("no connection to {target}: {reason}")]
    Connect {
        /// Where to.
        target: String,
        /// What went wrong.
        reason: String,
    },
    /// A time limit was hit.
    #[error("{phase}: nothing came within {} s", .after.as_secs_f64())]
    Timeout {
        /// What took too long.
        phase: Phase,
        /// The limit.
        after: Duration,
    },
    /// The service does not take the token, or whoever answers does not know it.
    #[error("{detail}")]
    Unauthorized {
        /// Who did not know what, and the way out.
        detail: String,
    },
    /// The service speaks another version of the contract.
    #[error("the service speaks {found}, this client {needed}; install versions that fit")]
    Version {
        /// The service's name and version of the contract.
        found: String,
        /// The client's.
        needed: String,
    },
    /// The service refused the request.
    #[error("{}", .0.detail)]
    Refused(Box<Problem>),
    /// The answer is not what the contract promises.
    #[error("not an answer of the contract: {detail}")]
    Protocol {
        /// What was wrong with it.
        detail: String,
    },
    /// The host could not be reached: the step that failed, what was said, and what to do.
    #[error(transparent)]
    Host(Box<HostError>),
    /// The call was given up by the caller.
    #[error("the call was cancelled")]
    Cancelled,
    /// The host that the call is meant for has no connected client.
    #[error("not connected to {host}; nothing was done")]
    NotConnected {
        /// The host.
        host: String,
    },
    /// A change was sent, and whether it happened cannot be found out.
    #[error(
        "whether the change happened is unknown: {reason}; read the file before trying again (key {key})"
    )]
    OutcomeUnknown {
        /// The `Idempotency-Key` of the change.
        key: String,
        /// Why it stays unknown.
        reason: String,
        /// Where only the way was lost, what another way can ask after: see [`Client::after`](crate::Client::after).
        open: Option<OpenChange>,
    },
}

/// A change that was sent, and the run of the service that may know what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenChange {
    pub(crate) key: String,
    pub(crate) instance_id: String,
}

impl OpenChange {
    /// It stays open, for now (`lost`: until there is another way) or for good.
    pub(crate) fn unknown(&self, reason: &str, lost: bool) -> Error {
        let open = lost.then(|| self.clone());
        Error::OutcomeUnknown { key: self.key.clone(), reason: reason.to_owned(), open }
    }
}

/// The phase of a call that a time limit belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Until a connection is there.
    Connect,
    /// While the request is sent.
    Send,
    /// Until an answer begins.
    Answer,
    /// While the answer is received.
    Receive,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Connect => "timeout while connecting",
            Phase::Send => "timeout while sending the request",
            Phase::Answer => "timeout while waiting for an answer",
            Phase::Receive => "timeout while receiving the answer",
        })
    }
}

impl Error {
    /// The error's name, for programs: `connect`, `timeout`, ... and of a refusal its code.
    pub fn kind(&self) -> &str {
        match self {
            Error::Connect { .. } => "connect",
            Error::Timeout { .. } => "timeout",
            Error::Unauthorized { .. } => "unauthorized",
            Error::Version { .. } => "version",
            Error::Refused(problem) => problem.code.as_str(),
            Error::Protocol { .. } => "protocol",
            Error::Host(error) => error.step.name(),
            Error::Cancelled => "cancelled",
            Error::NotConnected { .. } => "not_connected",
            Error::OutcomeUnknown { .. } => "outcome_unknown",
        }
    }

    /// The code of a refusal.
    pub fn code(&self) -> Option<&Code> {
        match self {
            Error::Refused(problem) => Some(&problem.code),
            _ => None,
        }
    }

    /// Whether the way to the service is lost, and nothing was changed by the call: a new way may help. A change that
    /// may have happened is never one of these, nor is a service that took its time.
    pub fn is_lost(&self) -> bool {
        matches!(
            self,
            Error::Connect { .. } | Error::Timeout { phase: Phase::Connect, .. } | Error::Unauthorized { .. }
        )
    }

    /// Whether the same call may succeed over another way: where this one was lost ([`is_lost`](Self::is_lost)), or with it
    /// the answer to a change, which then has to be asked for by [`Client::after`](crate::Client::after).
    pub fn wants_another_way(&self) -> bool {
        self.is_lost() || self.open_change().is_some()
    }

    pub(crate) fn open_change(&self) -> Option<&OpenChange> {
        match self {
            Error::OutcomeUnknown { open, .. } => open.as_ref(),
            _ => None,
        }
    }

    /// What may help, where the service said so.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Error::Refused(problem) => problem.hint.as_deref(),
            Error::Host(error) => Some(error.hint.as_str()).filter(|hint| !hint.is_empty()),
            _ => None,
        }
    }

    pub(crate) fn protocol(detail: impl Into<String>) -> Self {
        Error::Protocol { detail: detail.into() }
    }
}

/// Why a client cannot be made from what was given.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The URL is not one of a loopback port.
    #[error(
        "{url}: {reason}; give a loopback URL such as http://127.0.0.1:4711 (ssh -L brings a host's port there)"
    )]
    Url {
        /// As it was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The token cannot be read.
    #[error("token file {path}: {reason}")]
    TokenFile {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The token holds what no token holds.
    #[error("the token is empty, too long or holds characters other than visible ASCII")]
    Token,
    /// There are no Unix sockets on this platform.
    #[error("Unix sockets cannot be asked from here; bring the port here (ssh -L) and give its URL")]
    NoSockets,
    /// The HTTP client could not be set up.
    #[error("cannot set up the HTTP client: {0}")]
    Http(String),
}
