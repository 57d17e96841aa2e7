//! The agent's side of filectx: the way to a host's files.
//!
//! [`Client`] asks a service on a loopback port or a Unix socket; [`render`] turns what came back into text to read.
//! Without the features `local` and `cli` nothing here reads files or starts processes.

mod client;
mod error;
mod host_error;
#[cfg(feature = "ssh")]
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
pub use error::{ConfigError, Error, Phase};
pub use host_error::{HostError, Step};
pub use local::Local;
pub use payload::Content;
pub use target::Target;
pub use time::TimeLimits;
pub use token::Token;
