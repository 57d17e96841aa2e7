//! `GET /v1/info`: who and what the service is. It never waits for a turn.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use filectx_openapi::{InfoResponse, routes};
use http::header;

use crate::failure::Guarded;
use crate::negotiate::JSON;
use crate::service::Service;

/// Who and what this service is
///
/// Its version, host and user, the fences and limits in force, and what it can do (`features`).
#[utoipa::path(
    get, path = routes::INFO, tag = "service", operation_id = "info",
    responses((status = 200, body = InfoResponse, description = "Who and what the service is."), Guarded)
)]
pub(crate) async fn info(State(service): State<Arc<Service>>) -> Response {
    ([(header::CONTENT_TYPE, JSON)], service.info()).into_response()
}
