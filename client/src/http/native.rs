//! Connections of our own: none is proxied or redirected, each proves itself before it is used, and what it takes of a
//! request shows how far that is.

mod body;

use std::io;
use std::sync::Arc;

use bytes::Bytes;

use super::{Failure, HttpConfig, causes, chain};
use crate::error::{ConfigError, Error, Phase};
use crate::pace::Pace;
use crate::payload::Payload;
use crate::proof::{ProofError, ProofLayer};
use crate::target::Target;

pub(super) fn connector(config: &HttpConfig) -> Result<reqwest::Client, ConfigError> {
    let builder = reqwest::Client::builder()
        .user_agent(concat!("filectx/", env!("CARGO_PKG_VERSION")))
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .http1_only()
        .tcp_nodelay(true)
        .connect_timeout(config.limits.connect)
        .zstd(config.compress);
    let mut builder = to_target(builder, &config.target)?;
    if let Some(token) = &config.token {
        builder =
            builder.connector_layer(ProofLayer { token: token.clone(), host: config.target.host_header() });
    }
    builder.build().map_err(|error| ConfigError::Http(chain(&error)))
}

#[cfg(unix)]
fn to_target(
    builder: reqwest::ClientBuilder,
    target: &Target,
) -> Result<reqwest::ClientBuilder, ConfigError> {
    Ok(match target {
        Target::Port { .. } => builder,
        Target::Socket(path) => builder.unix_socket(path.as_path()),
    })
}

#[cfg(not(unix))]
fn to_target(
    builder: reqwest::ClientBuilder,
    target: &Target,
) -> Result<reqwest::ClientBuilder, ConfigError> {
    match target {
        Target::Port { .. } => Ok(builder),
        Target::Socket(_) => Err(ConfigError::NoSockets),
    }
}

/// Each connection proves itself (`ProofLayer`).
pub(super) async fn prove(_client: &reqwest::Client, _config: &HttpConfig) -> Result<(), Failure> {
    Ok(())
}

/// The request's body, that tells `pace` how far it is.
pub(super) fn body(payload: &Payload, pace: &Arc<Pace>) -> io::Result<reqwest::Body> {
    Ok(reqwest::Body::wrap(body::PacedBody::new(payload, Arc::clone(pace))))
}

/// The pieces of an answer.
pub(super) struct Frames(reqwest::Response);

impl Frames {
    pub(super) fn of(response: reqwest::Response) -> Self {
        Self(response)
    }

    pub(super) async fn next(&mut self) -> reqwest::Result<Option<Bytes>> {
        self.0.chunk().await
    }
}

/// What an error means for the call.
pub(super) fn failure(error: &reqwest::Error, config: &HttpConfig) -> Failure {
    if let Some(proof) = causes(error).find_map(|cause| cause.downcast_ref::<ProofError>()) {
        return proof.clone().into_failure(&config.target);
    }
    if error.is_connect() && error.is_timeout() {
        let error = Error::Timeout { phase: Phase::Connect, after: config.limits.connect };
        return Failure { error, maybe_seen: false };
    }
    let maybe_seen = !error.is_connect();
    let by_hyper = causes(error).find_map(|cause| cause.downcast_ref::<hyper::Error>());
    if by_hyper.map_or(error.is_decode(), hyper::Error::is_parse) {
        return Failure { error: Error::protocol(chain(error)), maybe_seen };
    }
    let reason = causes(error).last().map(ToString::to_string).unwrap_or_default();
    let reason =
        if maybe_seen { format!("it broke before the answer was complete ({reason})") } else { reason };
    Failure { error: Error::Connect { target: config.target.to_string(), reason }, maybe_seen }
}
