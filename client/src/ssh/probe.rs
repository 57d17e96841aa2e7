//! The probe: what a host is, what of ours it has, and what of that runs. One round to the host.

use super::command::Master;
use super::options::HostOptions;
use super::script::{Script, ScriptFailure};
use super::start::Service;
use crate::host_error::{HostError, Step};

/// What was found.
#[derive(Debug)]
pub(crate) struct Found {
    /// As Rust names it.
    pub(crate) os: String,
    pub(crate) arch: String,
    /// The programs of this version.
    pub(crate) installed: Vec<Installed>,
}

/// A program on the host.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    /// Its service behind the fences that were asked for, if that runs.
    pub(crate) service: Option<Service>,
}

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

impl HostOptions {
    /// A script with what every script needs.
    pub(crate) fn script(&self, body: &'static str) -> Script {
        Script::new(body)
            .with("dir", self.remote_dir.as_deref().unwrap_or_default())
            .with("version", VERSION)
            .with("fences", &self.fences.key())
    }

    pub(crate) async fn probe(&self, master: &Master) -> Result<Found, ScriptFailure> {
        let answer = self.run(master, &self.script(include_str!("probe.sh")), None, self.patience).await?;
        let mut installed: Vec<Installed> = Vec::new();
        let mut ready = None;
        for (key, value) in answer.lines() {
            match (key, installed.last_mut()) {
                ("installed", _) => {
                    let (bytes, path) = value.split_once(' ').unwrap_or_default();
                    let bytes = bytes.parse().unwrap_or_default();
                    installed.push(Installed { path: path.to_owned(), bytes, service: None });
                }
                ("ready", _) => ready = Some(value),
                ("token", Some(last)) => {
                    last.service = ready.take().and_then(|ready| Service::parse(ready, value));
                }
                _ => {}
            }
        }
        let os = answer.get("os").unwrap_or_default().to_lowercase();
        let arch = match answer.get("arch").unwrap_or_default() {
            "amd64" => "x86_64",
            "arm64" => "aarch64",
            arch => arch,
        };
        Ok(Found { os, arch: arch.to_owned(), installed })
    }

    /// What it means that the probe got no answer.
    pub(crate) fn not_probed(&self, failure: &ScriptFailure) -> HostError {
        let hint = match failure.detail.contains("login shell") {
            true => format!(
                "a start-up file of the shell (such as ~/.bashrc) ends, hangs or reads input without a terminal: see \
                 what `ssh {} true` does",
                self.destination
            ),
            false => format!("see what `ssh {} sh` does; it needs a POSIX `sh`", self.destination),
        };
        self.failed(Step::Probe, &failure.detail, &failure.said, &hint)
    }
}
