//! The door to the engine: HTTP over loopback or a Unix socket, a token, bounded work, and every refusal a Problem.
//!
//! [`Service`] is what all requests share, [`Door`] answers one request, [`serve`] accepts connections. What an
//! operation does is told in `filectx-files`; here is only how it is asked for and answered.

mod again;
mod answer;
pub mod config;
mod connection;
mod document;
mod door;
mod escape;
mod failure;
mod form;
pub mod guard;
pub mod healthcheck;
mod hop;
pub mod host;
mod json;
mod log;
mod negotiate;
mod outcomes;
mod parts;
pub mod relay;
mod router;
mod routes;
pub mod serve;
mod service;
mod spare;
mod strict;
#[cfg(target_os = "linux")]
pub mod systemd;
#[cfg(test)]
mod tests;
mod turn;
mod upload;

pub use document::document;
pub use door::Door;
pub use log::{Sink, init as init_log};
pub use service::Service;
