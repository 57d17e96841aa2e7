//! Connections of a browser, or of another host of JavaScript: `fetch` makes and keeps them, and shows nothing of them.
//! So the proof is asked for before each call that carries the token, a request is sent whole, and the time until its
//! answer begins counts from the start.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};

use super::{Failure, HttpConfig, chain};
use crate::error::{ConfigError, Error, Phase};
use crate::pace::Pace;
use crate::payload::Payload;
use crate::proof::{ProofError, Question};
use crate::target::Target;
use crate::time::{Instant, until};

/// How much of a source is taken at once.
const PIECE_BYTES: usize = 1 << 20;

/// `fetch` decides by itself about proxies, compression and reuse; loopback is never proxied by a browser.
pub(super) fn connector(config: &HttpConfig) -> Result<reqwest::Client, ConfigError> {
    match config.target {
        Target::Port { .. } => {
            reqwest::Client::builder().build().map_err(|error| ConfigError::Http(chain(&error)))
        }
        Target::Socket(_) => Err(ConfigError::NoSockets),
    }
}

/// Has the service prove that it knows the token, where there is one. Between this and the call another program could
/// still take the port: a browser says nothing of the connection that it uses.
pub(super) async fn prove(client: &reqwest::Client, config: &HttpConfig) -> Result<(), Failure> {
    let Some(token) = &config.token else { return Ok(()) };
    let question = Question::new().map_err(|error| error.into_failure(&config.target))?;
    let asking = async {
        let broken = |error: reqwest::Error| ProofError::Broken(reason(&error));
        let url = format!("{}{}", config.target.base(), question.path());
        let answer = client.get(url).send().await.map_err(broken)?;
        let status = answer.status();
        question.judge(status, &answer.bytes().await.map_err(broken)?, token)
    };
    match until(Instant::now() + config.limits.connect, asking).await {
        Some(proved) => proved.map_err(|error| error.into_failure(&config.target)),
        None => {
            let error = Error::Timeout { phase: Phase::Connect, after: config.limits.connect };
            Err(Failure { error, maybe_seen: false })
        }
    }
}

/// The request's body, whole.
pub(super) fn body(payload: &Payload, pace: &Arc<Pace>) -> io::Result<reqwest::Body> {
    let mut whole = Vec::with_capacity(usize::try_from(payload.length()).unwrap_or(0));
    for mut source in payload.sources.iter().cloned() {
        while source.length() > 0 {
            whole.extend_from_slice(&source.take(PIECE_BYTES)?);
        }
    }
    pace.step(true);
    Ok(whole.into())
}

/// The pieces of an answer. Dropped, it ends the request.
pub(super) struct Frames(Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>>>>);

impl Frames {
    pub(super) fn of(response: reqwest::Response) -> Self {
        Self(Box::pin(response.bytes_stream()))
    }

    pub(super) async fn next(&mut self) -> reqwest::Result<Option<Bytes>> {
        self.0.next().await.transpose()
    }
}

/// What an error means for the call: `fetch` tells no reasons apart, so the service may always have seen the request.
pub(super) fn failure(error: &reqwest::Error, config: &HttpConfig) -> Failure {
    let error = Error::Connect { target: config.target.to_string(), reason: reason(error) };
    Failure { error, maybe_seen: true }
}

/// What JavaScript says, without its trace.
fn reason(error: &reqwest::Error) -> String {
    chain(error).lines().next().unwrap_or_default().to_owned()
}
