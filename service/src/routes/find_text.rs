//! `POST /v1/find-text`: a search of contents.

use axum::response::Response;
use filectx_openapi::{FindTextRequest, FindTextResponse, routes};

use crate::answer::Facts;
use crate::failure::{Failure, OnePath};
use crate::json::{Json, Operation};

impl Operation for FindTextRequest {}

/// Search contents
///
/// Rows in the order of path and line: the same request gives the same rows, and `truncation.next` goes on without loss
/// or repeat. What was passed over is counted in `skipped`, what could not be searched is told in `errors`.
#[utoipa::path(
    post, path = routes::FIND_TEXT, tag = "files", operation_id = "find_text",
    responses((status = 200, body = FindTextResponse, description = "Matching lines and their context."), OnePath)
)]
pub(crate) async fn find_text(Json(request, turn): Json<FindTextRequest>) -> Result<Response, Failure> {
    turn.look(request.deadline_ms, move |files, cancel| {
        let found = files.find_text(&request, cancel)?;
        let facts = Facts { failed: Some(found.error_count), ..Facts::items(found.rows.len()) };
        Ok((found, facts))
    })
    .await
}
