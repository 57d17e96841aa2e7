//! The client: one method an operation, what is sent again and when, and what an answer means.
//!
//! Reads are repeated once, on a fresh connection. Changes carry an `Idempotency-Key` and are repeated only with it and
//! only to the same run of the service, so nothing happens twice.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use filectx_openapi::{
    Code, DeleteFileRequest, DeleteFileResponse, EditFileRequest, EditFileResponse, Feature,
    FindPathsRequest, FindPathsResponse, FindTextRequest, FindTextResponse, InfoResponse,
    ListDirectoryRequest, ListDirectoryResponse, Problem, ReadFileContextRequest, ReadFileContextResponse,
    WriteFileRequest, WriteFileResponse, routes,
};
use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{ConfigError, Error, OpenChange};
use crate::http::{Answer, Call, Failure, Http, HttpConfig, Watch};
use crate::multipart;
use crate::payload::{Content, Payload};
use crate::target::Target;
use crate::time::TimeLimits;
use crate::token::{Token, random_hex};
use crate::watch;

/// The version of the contract that this client speaks.
pub const API: &str = "v1";

const JSON: &str = "application/json";
/// Binaries raw instead of in base64; one document from a service that has nothing else.
const PARTS: &str = "multipart/mixed, application/json;q=0.5";
/// 64 MiB of text may grow sixfold when JSON escapes every character of it.
const MAX_ANSWER_BYTES: u64 = 512 << 20;
/// The contract's default of `deadline_ms`, until the service has said its own.
const DEADLINE: Duration = Duration::from_secs(120);

/// Why another run of the service is not asked.
const ANEW: &str = "the service was started anew meanwhile";

/// A service, as its caller sees it. Clones share the connections.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
    /// The change that this client asks after.
    open: Option<OpenChange>,
}

#[derive(Debug)]
struct Inner {
    http: Http,
    info: Mutex<Option<Arc<InfoResponse>>>,
}

/// Makes a [`Client`].
#[derive(Clone, Debug)]
pub struct ClientBuilder {
    config: HttpConfig,
    info: Option<Arc<InfoResponse>>,
}

impl ClientBuilder {
    /// The token that the service wants, and has to know.
    #[must_use]
    pub fn token(mut self, token: Token) -> Self {
        self.config.token = Some(token);
        self
    }

    /// Other time limits than the contract's.
    #[must_use]
    pub fn time_limits(mut self, limits: TimeLimits) -> Self {
        self.config.limits = limits;
        self
    }

    /// The longest answer that is taken, in bytes.
    #[must_use]
    pub fn max_answer_bytes(mut self, bytes: u64) -> Self {
        self.config.max_answer_bytes = bytes;
        self
    }

    /// Asks for compressed answers: worth it where the port is forwarded over a slow line.
    #[must_use]
    pub fn compress(mut self, compress: bool) -> Self {
        self.config.compress = compress;
        self
    }

    /// What the service said of itself when the token was new: a service that proves to know the token is still that one.
    #[must_use]
    pub fn known_info(mut self, info: Arc<InfoResponse>) -> Self {
        self.info = Some(info);
        self
    }

    /// The client. It connects with its first call.
    pub fn build(self) -> Result<Client, ConfigError> {
        let http = Http::new(self.config)?;
        Ok(Client { inner: Arc::new(Inner { http, info: Mutex::new(self.info) }), open: None })
    }
}

impl Client {
    /// A client of the service at this target.
    pub fn builder(target: Target) -> ClientBuilder {
        ClientBuilder {
            config: HttpConfig {
                target,
                token: None,
                limits: TimeLimits::default(),
                max_answer_bytes: MAX_ANSWER_BYTES,
                compress: false,
            },
            info: None,
        }
    }

    /// A client of the service behind this Unix socket.
    pub fn socket(path: impl Into<PathBuf>) -> ClientBuilder {
        Self::builder(Target::Socket(path.into()))
    }

    /// Reads a batch of files.
    pub async fn read(&self, request: &ReadFileContextRequest) -> Result<ReadFileContextResponse, Error> {
        self.read_and_watch(request, None).await
    }

    /// The same; `watch` is told of how many files an outcome has come.
    pub async fn read_watched(
        &self,
        request: &ReadFileContextRequest,
        watch: impl Fn(u64) + Send + Sync + 'static,
    ) -> Result<ReadFileContextResponse, Error> {
        self.read_and_watch(request, Some(watch::outcomes(watch))).await
    }

    async fn read_and_watch(
        &self,
        request: &ReadFileContextRequest,
        watch: Option<Watch>,
    ) -> Result<ReadFileContextResponse, Error> {
        let call = self.call(routes::READ_FILE_CONTEXT, Payload::json(json(request)?), request.deadline_ms);
        let answer = self.send_read(&Call { accept: PARTS, watch, ..call }).await?;
        match multipart::decode(&answer.content_type, &answer.body).filter(|_| answer.status.is_success()) {
            Some(decoded) => decoded.map_err(|error| Error::protocol(error.to_string())),
            None => decode(&answer),
        }
    }

    /// Lists one directory.
    pub async fn list(&self, request: &ListDirectoryRequest) -> Result<ListDirectoryResponse, Error> {
        self.ask(routes::LIST_DIRECTORY, request, None).await
    }

    /// Searches contents.
    pub async fn find_text(&self, request: &FindTextRequest) -> Result<FindTextResponse, Error> {
        self.ask(routes::FIND_TEXT, request, request.deadline_ms).await
    }

    /// Searches names.
    pub async fn find_paths(&self, request: &FindPathsRequest) -> Result<FindPathsResponse, Error> {
        self.ask(routes::FIND_PATHS, request, request.deadline_ms).await
    }

    /// Edits one file exactly.
    pub async fn edit(&self, request: &EditFileRequest) -> Result<EditFileResponse, Error> {
        self.change(routes::EDIT_FILE, Payload::json(json(request)?)).await
    }

    /// Writes one whole file.
    pub async fn write(&self, request: &WriteFileRequest) -> Result<WriteFileResponse, Error> {
        self.change(routes::WRITE_FILE, Payload::json(json(request)?)).await
    }

    /// Writes one whole file whose content is sent as it is, piece by piece. `request` carries none.
    pub async fn write_from(
        &self,
        request: &WriteFileRequest,
        content: Content,
    ) -> Result<WriteFileResponse, Error> {
        let form = Payload::form(&json(request)?, content);
        self.change(routes::WRITE_FILE, form.map_err(|error| Error::protocol(error.to_string()))?).await
    }

    /// Deletes one file or link.
    pub async fn delete(&self, request: &DeleteFileRequest) -> Result<DeleteFileResponse, Error> {
        self.change(routes::DELETE_FILE, Payload::json(json(request)?)).await
    }

    /// Asks who and what the service is.
    pub async fn info(&self) -> Result<Arc<InfoResponse>, Error> {
        let call = Call {
            method: Method::GET,
            route: routes::INFO,
            accept: JSON,
            payload: Payload::none(),
            idempotency_key: None,
            answer_within: self.answer_within(None),
            watch: None,
        };
        let info: InfoResponse = decode(&self.send_read(&call).await?)?;
        if info.api != API {
            let found = format!("{} {} ({})", info.service, info.version, info.api);
            return Err(Error::Version { found, needed: API.into() });
        }
        let info = Arc::new(info);
        *self.inner.info.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&info));
        Ok(info)
    }

    /// What the service said of itself; asked for if it is not known yet.
    pub(crate) async fn who(&self) -> Result<Arc<InfoResponse>, Error> {
        match self.known_info() {
            Some(info) => Ok(info),
            None => self.info().await,
        }
    }

    fn known_info(&self) -> Option<Arc<InfoResponse>> {
        self.inner.info.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn answer_within(&self, deadline_ms: Option<u64>) -> Duration {
        let known = self.known_info().map(|info| info.limits.deadline_ms);
        let deadline = deadline_ms.or(known).map_or(DEADLINE, Duration::from_millis);
        // A day: `Instant` cannot hold what a caller may wish for.
        deadline.min(Duration::from_secs(86_400)) + self.inner.http.limits().answer_grace
    }

    fn call(&self, route: &'static str, payload: Payload, deadline_ms: Option<u64>) -> Call {
        let answer_within = self.answer_within(deadline_ms);
        Call {
            method: Method::POST,
            route,
            accept: JSON,
            payload,
            idempotency_key: None,
            answer_within,
            watch: None,
        }
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        route: &'static str,
        request: &impl Serialize,
        deadline_ms: Option<u64>,
    ) -> Result<T, Error> {
        let call = self.call(route, Payload::json(json(request)?), deadline_ms);
        decode(&self.send_read(&call).await?)
    }

    /// Sends what changes nothing: once more on a fresh connection, if the first one broke or fell silent.
    async fn send_read(&self, call: &Call) -> Result<Answer, Error> {
        match self.inner.http.send(call).await {
            Ok(answer) => Ok(answer),
            Err(failure) if may_be_mended(&failure) => {
                self.inner.http.renew();
                self.inner.http.send(call).await.map_err(|failure| failure.error)
            }
            Err(failure) => Err(failure.error),
        }
    }

    /// This client, over another way than the one on which `error` came, for the same call once more: a change that may
    /// have happened is asked for with its own key, and only from the run of the service that may have done it.
    #[must_use]
    pub fn after(&self, error: &Error) -> Self {
        Self { open: error.open_change().cloned(), ..self.clone() }
    }

    /// Sends a change: once more with the same key, if nothing came back and the service is still the same.
    async fn change<T: DeserializeOwned>(&self, route: &'static str, payload: Payload) -> Result<T, Error> {
        let open = self.open.as_ref();
        let before = match (self.who().await, open) {
            (Err(error), Some(open)) => return Err(open.unknown(&error.to_string(), error.is_lost())),
            (before, _) => before?,
        };
        let key = match open {
            Some(open) if open.instance_id != before.instance_id => return Err(open.unknown(ANEW, false)),
            Some(open) => open.key.clone(),
            None => random_hex(16).map_err(|error| Error::protocol(error.to_string()))?,
        };
        let here = OpenChange { key: key.clone(), instance_id: before.instance_id.clone() };
        let call = Call { idempotency_key: Some(key.clone()), ..self.call(route, payload, None) };
        let first = match self.inner.http.send(&call).await {
            Ok(answer) => return known(decode(&answer), &key),
            Err(failure) => failure,
        };
        self.inner.http.renew();
        let unknown = |failure: Failure, why: &str, lost: bool| match failure.maybe_seen || open.is_some() {
            true => here.unknown(&format!("{}; {why}", failure.error), lost),
            false => failure.error,
        };
        if !may_be_mended(&first) {
            return Err(unknown(first, "the service cannot be asked again", false));
        }
        if !before.features.contains(&Feature::Idempotency) {
            return Err(unknown(first, "the service keeps no outcomes to ask for", false));
        }
        let again = |error: &Error| format!("asking again failed: {error}");
        match self.info().await {
            Ok(now) if now.instance_id == before.instance_id => {}
            Ok(_) => return Err(unknown(first, ANEW, false)),
            Err(error) => return Err(unknown(first, &again(&error), error.is_lost())),
        }
        match self.inner.http.send(&call).await {
            Ok(answer) => known(decode(&answer), &key),
            Err(second) => {
                let maybe_seen = first.maybe_seen || second.maybe_seen;
                let (why, lost) = (again(&second.error), second.error.is_lost());
                Err(unknown(Failure { maybe_seen, ..first }, &why, lost))
            }
        }
    }
}

fn json(request: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(request).map_err(|error| Error::protocol(error.to_string()))
}

/// Whether a fresh connection may help.
fn may_be_mended(failure: &Failure) -> bool {
    match &failure.error {
        Error::Connect { .. } => true,
        // Another wait of the same length for a connection would not.
        Error::Timeout { phase, .. } => *phase != crate::Phase::Connect,
        _ => false,
    }
}

/// What an answer means: the response, or why there is none.
fn decode<T: DeserializeOwned>(answer: &Answer) -> Result<T, Error> {
    if answer.status.is_success() {
        return serde_json::from_slice(&answer.body).map_err(|error| Error::protocol(error.to_string()));
    }
    let status = answer.status.as_u16();
    if !answer.content_type.starts_with("application/problem+json") {
        return Err(Error::protocol(format!(
            "status {status} with a body of type `{}`",
            answer.content_type
        )));
    }
    let problem: Problem = serde_json::from_slice(&answer.body)
        .map_err(|error| Error::protocol(format!("status {status} with a damaged Problem: {error}")))?;
    if problem.code == Code::Unauthorized {
        return Err(Error::Unauthorized { detail: problem.detail });
    }
    Err(Error::Refused(Box::new(problem)))
}

/// Of a change, an answer that cannot be understood leaves the outcome unknown.
fn known<T>(decoded: Result<T, Error>, key: &str) -> Result<T, Error> {
    decoded.map_err(|error| match error {
        Error::Protocol { .. } => {
            Error::OutcomeUnknown { key: key.to_owned(), reason: error.to_string(), open: None }
        }
        error => error,
    })
}

#[cfg(test)]
mod change_tests;
#[cfg(test)]
mod multipart_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trust_tests;
