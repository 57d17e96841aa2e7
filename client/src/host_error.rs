//! Why a host could not be reached: the step that failed, what ssh or the host said, and what to do. Data alone, so that
//! it is there on every platform.

use std::fmt;

/// The steps on the way to a host, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The name is looked up.
    Resolve,
    /// A connection is made.
    Connect,
    /// Both sides say who they are.
    Authenticate,
    /// The host is asked what it is and has.
    Probe,
    /// `filectxd` is brought there.
    Install,
    /// `filectxd` is started.
    Start,
    /// A way to its port or socket is made.
    Forward,
    /// The service proves that it is ours, and says who it is.
    Handshake,
}

impl Step {
    /// Its name, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Step::Resolve => "resolve",
            Step::Connect => "connect",
            Step::Authenticate => "authenticate",
            Step::Probe => "probe",
            Step::Install => "install",
            Step::Start => "start",
            Step::Forward => "forward",
            Step::Handshake => "handshake",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a host could not be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostError {
    /// The host, as the user calls it.
    pub host: String,
    /// The step that failed.
    pub step: Step,
    /// What went wrong.
    pub detail: String,
    /// What ssh and the host said meanwhile; empty where they were silent.
    pub said: String,
    /// What to do.
    pub hint: String,
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.host, self.step, self.detail)?;
        for line in self.said.lines() {
            write!(f, "\n  | {line}")?;
        }
        Ok(())
    }
}

impl std::error::Error for HostError {}
