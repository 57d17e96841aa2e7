//! `POST /v1/delete-file`: one regular file or link.

use axum::response::Response;
use filectx_openapi::{DeleteFileRequest, DeleteFileResponse, routes};

use crate::answer::Facts;
use crate::failure::{Failure, OnePath};
use crate::json::{Json, Operation};

impl Operation for DeleteFileRequest {
    const KEYED: Option<&'static str> = Some("delete-file");
}

/// Delete one file or link
///
/// Never a directory; of a link the link itself. An `Idempotency-Key` makes asking again safe.
#[utoipa::path(
    post, path = routes::DELETE_FILE, tag = "files", operation_id = "delete_file",
    params(("Idempotency-Key" = Option<String>, Header, pattern = "^[!-~]{1,255}$", description = "The outcome is kept 10 minutes and replayed for the same body.")),
    responses((status = 200, body = DeleteFileResponse, description = "It is gone."), OnePath)
)]
pub(crate) async fn delete_file(Json(request, turn): Json<DeleteFileRequest>) -> Result<Response, Failure> {
    turn.change(move |files, cancel| {
        let answer = files.delete(&request, cancel)?;
        let facts = Facts::change(&answer.path, None, request.expected_revision.as_deref());
        Ok((answer, facts))
    })
    .await
}
