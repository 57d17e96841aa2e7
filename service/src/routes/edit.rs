//! `POST /v1/edit-file`: exact edits of one file.

use axum::response::Response;
use filectx_openapi::{EditFileRequest, EditFileResponse, routes};

use crate::answer::Facts;
use crate::failure::{Failure, OnePath};
use crate::json::{Json, Operation};

impl Operation for EditFileRequest {
    const KEYED: Option<&'static str> = Some("edit-file");
}

/// Edit one file exactly
///
/// Each `old_text` must be there exactly once (or `replace_all`, or a `line_hint` chooses); all edits become one write,
/// or none. Bytes that no edit names stay as they are: line ends, encoding, byte order mark. `no_match` tells what is most
/// like the text that is not there. An `Idempotency-Key` makes asking again safe.
#[utoipa::path(
    post, path = routes::EDIT_FILE, tag = "files", operation_id = "edit_file",
    params(("Idempotency-Key" = Option<String>, Header, pattern = "^[!-~]{1,255}$", description = "The outcome is kept 10 minutes and replayed for the same body.")),
    responses((status = 200, body = EditFileResponse, description = "What was replaced, and the diff."), OnePath)
)]
pub(crate) async fn edit_file(Json(request, turn): Json<EditFileRequest>) -> Result<Response, Failure> {
    turn.change(move |files, cancel| {
        let answer = files.edit(&request, cancel)?;
        let facts = Facts::change(&answer.path, Some(&answer.revision), Some(&answer.previous_revision));
        Ok((answer, facts))
    })
    .await
}
