//! The extractor of every operation: media type, Accept, size, a turn, JSON - refused in this order, each as a Problem.
//!
//! It must be called `Json`: by that name utoipa finds the request's schema.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use bytes::{Bytes, BytesMut};
use filectx_openapi::{Code, Limits};
use http::{HeaderMap, header};
use http_body::Body as _;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::negotiate::{self, JSON};
use crate::outcomes::Name;
use crate::service::Service;
use crate::strict::{self, Fault};
use crate::turn::Turn;

/// The longest silence of a caller that is sending.
const SILENCE: Duration = Duration::from_secs(30);
/// How much of a refused request is taken in, so that its sender sees the refusal and not a reset connection.
const DRAINED_BYTES: u64 = 64 << 20;
/// And how long.
const DRAINED_FOR: Duration = Duration::from_secs(5);

/// What a request's body may be; an operation that differs from the others says so.
pub(crate) trait Operation: DeserializeOwned + Send {
    /// Whether the answer may also be multipart.
    const MULTIPART: bool = false;

    /// The operation's name, where an `Idempotency-Key` is honoured.
    const KEYED: Option<&'static str> = None;

    /// The most bytes of the JSON body.
    fn max_body_bytes(limits: &Limits) -> u64 {
        limits.max_body_bytes
    }

    /// The limit that a refusal of a longer body tells.
    fn told_limit(limits: &Limits) -> u64 {
        Self::max_body_bytes(limits)
    }
}

/// A request's body, and its turn to be worked on.
pub(crate) struct Json<T>(pub(crate) T, pub(crate) Turn);

impl<T: Operation> FromRequest<Arc<Service>> for Json<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, service: &Arc<Service>) -> Result<Self, Failure> {
        let (head, mut body) = request.into_parts();
        match take::<T>(&head.headers, &mut body, service).await {
            Ok(taken) => Ok(taken),
            Err(failure) => {
                drain(&head.headers, &mut body).await;
                Err(failure)
            }
        }
    }
}

async fn take<T: Operation>(
    headers: &HeaderMap,
    body: &mut Body,
    service: &Arc<Service>,
) -> Result<Json<T>, Failure> {
    if !is_json(headers) {
        return Err(Failure::new(
            Code::UnsupportedMediaType,
            "send the body as `content-type: application/json`",
        ));
    }
    let form = negotiate::form(headers, T::MULTIPART)?;
    let limits = service.files().limits();
    let (limit, told) = (T::max_body_bytes(limits), T::told_limit(limits));
    if body.size_hint().lower() > limit {
        return Err(too_large(told));
    }
    let name = T::KEYED.map(|operation| Name::of(operation, headers)).transpose()?.flatten();
    let permit = service.load().permit().await?;
    let bytes = read(body, limit, told).await?;
    let key = name.map(|name| name.with_body(&bytes));
    let value = strict::from_slice(&bytes).map_err(not_as_asked).map_err(|failure| match &key {
        Some(key) => service.outcomes().refuse(key, failure),
        None => failure,
    })?;
    let coding = negotiate::coding(headers);
    Ok(Json(value, Turn::new(Arc::clone(service), permit, form, coding).keyed(key)))
}

/// The failure of a body that is not what the operation takes.
pub(crate) fn not_as_asked(fault: Fault) -> Failure {
    let place = fault.pointer.as_deref().filter(|pointer| !pointer.is_empty()).unwrap_or("the body");
    let message = format!("{place}: {}", fault.message);
    Failure::invalid_request(fault.pointer, message)
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (types.next(), types.next()) else { return false };
    let essence = value.to_str().unwrap_or("").split(';').next().unwrap_or("");
    essence.trim().eq_ignore_ascii_case(JSON)
}

async fn read(body: &mut Body, limit: u64, told: u64) -> Result<Bytes, Failure> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = next_frame(body).await? {
        let length = (first.len() + rest.len() + frame.len()) as u64;
        if length > limit {
            return Err(too_large(told));
        }
        if first.is_empty() && rest.is_empty() {
            first = frame;
            continue;
        }
        if rest.is_empty() {
            // A second frame: from here on they are joined, with room for what was announced.
            rest.reserve(length.max(length + body.size_hint().lower().min(limit - length)) as usize);
            rest.extend_from_slice(&std::mem::take(&mut first));
        }
        rest.extend_from_slice(&frame);
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

pub(crate) async fn next_frame(body: &mut Body) -> Result<Option<Bytes>, Failure> {
    loop {
        let Ok(frame) = tokio::time::timeout(SILENCE, body.frame()).await else {
            return Err(Failure::new(
                Code::DeadlineExceeded,
                format!("nothing of the body came for {} s", SILENCE.as_secs()),
            ));
        };
        match frame {
            None => return Ok(None),
            Some(Err(_)) => return Err(Failure::invalid_request(None, "the body broke off")),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => return Ok(Some(data)),
                // Trailers say nothing here.
                Err(_) => continue,
            },
        }
    }
}

pub(crate) fn too_large(limit: u64) -> Failure {
    let mut failure =
        Failure::new(Code::RequestTooLarge, format!("the body is over the limit of {limit} bytes"));
    failure.0.data.limit = Some(limit);
    failure
}

/// Takes in what is left of a refused request, within bounds.
pub(crate) async fn drain<B: http_body::Body + Unpin>(headers: &HeaderMap, body: &mut B) {
    // A caller that asked first (`Expect: 100-continue`) has sent nothing and need not.
    if body.is_end_stream()
        || headers.contains_key(header::EXPECT)
        || body.size_hint().lower() > DRAINED_BYTES
    {
        return;
    }
    let all = async {
        let mut taken = 0;
        while let Some(Ok(frame)) = body.frame().await {
            taken += frame.data_ref().map_or(0, |data| bytes::Buf::remaining(data) as u64);
            if taken > DRAINED_BYTES {
                break;
            }
        }
    };
    // Whoever is slower than that sees the connection end.
    let _ = tokio::time::timeout(DRAINED_FOR, all).await;
}
