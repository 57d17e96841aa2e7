//! A call goes out, an answer comes in, each phase within its time. Here and in this file's folder alone reqwest is spoken:
//! to connections of our own (`native.rs`), or to those of a browser (`browser.rs`). What is sent again, and what an
//! answer means, is decided in `client.rs`.

#[cfg(target_family = "wasm")]
mod browser;
#[cfg(not(target_family = "wasm"))]
mod native;

use std::error::Error as StdError;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Method, StatusCode};

use crate::error::{ConfigError, Error, Phase};
use crate::pace::Pace;
use crate::payload::Payload;
use crate::proof::ProofError;
use crate::target::Target;
use crate::time::{Instant, TimeLimits, until};
use crate::token::Token;
#[cfg(target_family = "wasm")]
use browser as wire;
#[cfg(not(target_family = "wasm"))]
use native as wire;

/// How much is reserved at most because an answer says that it is long.
const MAX_RESERVED: u64 = 16 << 20;

/// How a service is reached.
#[derive(Clone, Debug)]
pub(crate) struct HttpConfig {
    pub(crate) target: Target,
    pub(crate) token: Option<Token>,
    pub(crate) limits: TimeLimits,
    pub(crate) max_answer_bytes: u64,
    pub(crate) compress: bool,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) route: &'static str,
    /// The forms of answer that are understood.
    pub(crate) accept: &'static str,
    pub(crate) payload: Payload,
    pub(crate) idempotency_key: Option<String>,
    /// Until an answer begins, once the request is sent.
    pub(crate) answer_within: Duration,
    /// Who sees the answer come.
    pub(crate) watch: Option<Watch>,
}

/// Sees an answer come: its content type with each of its pieces.
#[derive(Clone)]
pub(crate) struct Watch(pub(crate) Arc<See>);

type See = dyn Fn(&str, &[u8]) + Send + Sync;

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watch")
    }
}

/// An answer that arrived whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
}

/// A call without an answer.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    /// Whether the service may have seen the request.
    pub(crate) maybe_seen: bool,
}

/// The way to one service, with its pool of proved connections.
#[derive(Debug)]
pub(crate) struct Http {
    config: HttpConfig,
    base: String,
    authorization: Option<HeaderValue>,
    client: Mutex<reqwest::Client>,
}

impl Http {
    pub(crate) fn new(config: HttpConfig) -> Result<Self, ConfigError> {
        let client = wire::connector(&config)?;
        let authorization = config.token.as_ref().map(bearer).transpose()?;
        Ok(Self { base: config.target.base(), authorization, client: Mutex::new(client), config })
    }

    pub(crate) fn limits(&self) -> &TimeLimits {
        &self.config.limits
    }

    /// Leaves every connection behind: the next call makes a fresh one.
    pub(crate) fn renew(&self) {
        if let Ok(fresh) = wire::connector(&self.config) {
            *self.client.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        }
    }

    /// Sends the call, once.
    pub(crate) async fn send(&self, call: &Call) -> Result<Answer, Failure> {
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        wire::prove(&client, &self.config).await?;
        let mut request = client
            .request(call.method.clone(), format!("{}{}", self.base, call.route))
            .header(ACCEPT, call.accept);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if let Some(key) = &call.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        let is_empty = call.payload.length() == 0;
        let pace = Arc::new(Pace::new(is_empty));
        if !is_empty {
            let body = wire::body(&call.payload, &pace).map_err(|error| self.unsent(&error))?;
            request = request.header(CONTENT_TYPE, &call.payload.content_type).body(body);
        }
        let head = self.head(request, &pace, call.answer_within).await?;
        let status = head.status();
        let content_type = head.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_owned();
        let see = |frame: &[u8]| call.watch.iter().for_each(|watch| watch.0(&content_type, frame));
        let body = self.body(head, &see).await.map_err(|error| Failure { error, maybe_seen: true })?;
        Ok(Answer { status, content_type, body })
    }

    /// Waits for the answer to begin.
    async fn head(
        &self,
        request: reqwest::RequestBuilder,
        pace: &Pace,
        answer_within: Duration,
    ) -> Result<reqwest::Response, Failure> {
        let mut sending = pin!(request.send());
        loop {
            let limit = || pace.limit(self.config.limits.silence, answer_within);
            match until(limit().2, &mut sending).await {
                Some(Ok(response)) => return Ok(response),
                Some(Err(error)) => return Err(wire::failure(&error, &self.config)),
                None => {}
            }
            // What was sent meanwhile may have moved the end.
            let (phase, after, end) = limit();
            if end <= Instant::now() {
                return Err(Failure { error: Error::Timeout { phase, after }, maybe_seen: true });
            }
        }
    }

    /// Receives the answer's body, frame by frame.
    async fn body(&self, response: reqwest::Response, see: &(dyn Fn(&[u8]) + Sync)) -> Result<Bytes, Error> {
        let (silence, most) = (self.config.limits.silence, self.config.max_answer_bytes);
        let declared = response.content_length();
        let mut frames = wire::Frames::of(response);
        let mut whole = Vec::new();
        loop {
            let frame = until(Instant::now() + silence, frames.next()).await;
            let frame = frame.ok_or(Error::Timeout { phase: Phase::Receive, after: silence })?;
            let Some(frame) = frame.map_err(|error| wire::failure(&error, &self.config).error)? else {
                return Ok(whole.into());
            };
            see(&frame);
            if whole.len() as u64 + frame.len() as u64 > most {
                return Err(Error::protocol(format!(
                    "it is longer than {most} bytes; ask for less (max_batch_bytes)"
                )));
            }
            if whole.is_empty() && declared == Some(frame.len() as u64) {
                return Ok(frame);
            }
            if whole.is_empty() {
                let reserved = declared.unwrap_or(0).min(MAX_RESERVED).min(most);
                whole.reserve(usize::try_from(reserved).unwrap_or(0).max(frame.len()));
            }
            whole.extend_from_slice(&frame);
        }
    }

    /// What was to be sent cannot be read.
    fn unsent(&self, error: &std::io::Error) -> Failure {
        let (target, reason) = (self.config.target.to_string(), error.to_string());
        Failure { error: Error::Connect { target, reason }, maybe_seen: false }
    }
}

impl ProofError {
    /// The failure of a call to `target` that was not sent for this reason.
    fn into_failure(self, target: &Target) -> Failure {
        let target = target.to_string();
        let error = match self {
            ProofError::Broken(reason) => Error::Connect { target, reason },
            ProofError::Stranger(what) => Error::Unauthorized {
                detail: format!(
                    "whoever answers at {target} does not know the token: {what}; the token was not sent. Another \
                     program may have taken the port, or the token file is of an earlier start"
                ),
            },
        };
        Failure { error, maybe_seen: false }
    }
}

fn bearer(token: &Token) -> Result<HeaderValue, ConfigError> {
    let mut value =
        HeaderValue::from_str(&format!("Bearer {}", token.text())).map_err(|_| ConfigError::Token)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The error and what caused it.
fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

fn chain(error: &(dyn StdError + 'static)) -> String {
    causes(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
