//! The agent's side of filectx: the way to a host's files.
//!
//! [`Client`] asks a service on a loopback port or a Unix socket; [`render`] turns what came back into text to read.
//! Without the features `local`, `ssh` and `cli` nothing here reads files or starts processes, and the library works in a
//! browser and on Windows, too: there no host is connected ([`hosts::HostManager`] says so), and a service is asked by its
//! forwarded port.

#[cfg(all(not(unix), any(feature = "local", feature = "ssh")))]
compile_error!(
    "the features `local`, `ssh` and `cli` (the default) are for Unix; elsewhere: default-features = false"
);

mod client;
mod error;
mod host_error;
#[cfg(feature = "ssh")]
pub mod hosts;
#[cfg(not(feature = "ssh"))]
#[path = "hosts_without_ssh.rs"]
pub mod hosts;
mod http;
mod local;
pub mod multipart;
mod pace;
mod payload;
mod proof;
pub mod render;
#[cfg(any(feature = "cli", feature = "ssh"))]
pub mod runtime;
pub mod session;
#[cfg(feature = "ssh")]
pub mod ssh;
#[cfg(test)]
mod stub;
mod target;
mod time;
mod token;
mod watch;

pub use client::{API, Client, ClientBuilder};
pub use error::{ConfigError, Error, OpenChange, Phase};
pub use host_error::{HostError, Step};
pub use local::Local;
pub use payload::Content;
pub use target::Target;
pub use time::TimeLimits;
pub use token::Token;
