//! The one layer around the routes. It gives every request an id, refuses who may not come in, contains panics, turns
//! every refusal into a Problem with the request's id, and has one line written to the log.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderName, HeaderValue, Request, header};
use http_body::{Frame, SizeHint};
use tower::ServiceExt;

use crate::answer::Facts;
use crate::failure::Failure;
use crate::json::drain;
use crate::log::Record;
use crate::service::Service;
use crate::{guard, router};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");

/// Answers requests. Clones are cheap and answer alike.
#[derive(Clone, Debug)]
pub struct Door {
    service: Arc<Service>,
    router: axum::Router,
}

impl Door {
    /// The door to `service`.
    pub fn new(service: Arc<Service>) -> Self {
        let router = router::router(Arc::clone(&service));
        Self::with_router(service, router)
    }

    /// The door to `service`, with routes of one's own behind it.
    pub(crate) fn with_router(service: Arc<Service>, router: axum::Router) -> Self {
        Self { service, router }
    }

    /// The service behind the door.
    pub fn service(&self) -> &Arc<Service> {
        &self.service
    }

    /// Answers one request; dropping the future ends its work.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Answer>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let service = &self.service;
        let id = service.ids().id_of(request.headers().get(REQUEST_ID));
        let mut record = Record::begin(service.activity(), id, request.method(), request.uri().path());
        let admitted = guard::check(service.token(), request.uri(), request.headers());
        let mut response = match admitted {
            Ok(()) => contained(self.router.clone().oneshot(request.map(Body::new))).await,
            Err(failure) => {
                let (head, mut body) = request.into_parts();
                drain(&head.headers, &mut body).await;
                failure.into_response()
            }
        };
        let failure = response.extensions_mut().remove::<Failure>().or_else(|| {
            // An answer that axum gave by itself.
            let status = response.status();
            (status.is_client_error() || status.is_server_error()).then(|| Failure::of_status(status))
        });
        if let Some(failure) = failure {
            record.code = Some(failure.0.code.clone());
            let body = failure.problem(record.id.to_str().unwrap_or_default());
            let headers = response.headers_mut();
            headers.remove(header::CONTENT_LENGTH);
            headers.insert(header::CONTENT_TYPE, PROBLEM);
            *response.body_mut() = Body::from(body);
        }
        if let Some(facts) = response.extensions_mut().remove::<Facts>() {
            record.facts = facts;
        }
        record.status = Some(response.status());
        response.headers_mut().insert(REQUEST_ID, record.id.clone());
        response.map(|body| Answer { body, record })
    }
}

/// A panic costs its request, not the service.
async fn contained(routed: impl Future<Output = Result<Response, Infallible>>) -> Response {
    match AssertUnwindSafe(routed).catch_unwind().await {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(_) => Failure::internal().into_response(),
    }
}

/// The body of an answer; the request's line is written when it ends.
#[derive(Debug)]
pub struct Answer {
    body: Body,
    record: Record,
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            self.record.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
        self.record.complete |= frame.is_none() || self.body.is_end_stream();
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
