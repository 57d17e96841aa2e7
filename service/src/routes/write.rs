//! `POST /v1/write-file`: the whole content of one file, in JSON or as a form whose content is streamed to the disk.

use axum::response::Response;
use filectx_openapi::{Limits, WriteFileRequest, WriteFileResponse, routes};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa::openapi::Ref;

use crate::answer::Facts;
use crate::failure::{Failure, OnePath};
use crate::json::Operation;
use crate::upload::Written;

/// What JSON may add to a byte of content: `\u0000`.
const ESCAPED: u64 = 6;
/// Room for all fields but the content.
const FIELDS: u64 = 64 << 10;

impl Operation for WriteFileRequest {
    const KEYED: Option<&'static str> = Some("write-file");

    fn max_body_bytes(limits: &Limits) -> u64 {
        limits.max_write_bytes.saturating_mul(ESCAPED).saturating_add(FIELDS)
    }

    fn told_limit(limits: &Limits) -> u64 {
        limits.max_write_bytes
    }
}

/// A content that is streamed: first the part `request`, then the part `content`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "it only describes the form for the document")]
pub(crate) struct WriteFileForm {
    /// The request without content, as JSON.
    #[schema(schema_with = head)]
    request: WriteFileRequest,
    /// The content's raw bytes.
    #[schema(value_type = String, format = Binary)]
    content: Vec<u8>,
}

/// The schema that `document/schemas.rs` makes of the request's.
fn head() -> Ref {
    Ref::from_schema_name("WriteFileHead")
}

/// Write one whole file
///
/// The stored bytes are the sent bytes; through a link its target is written. The file is wholly old or wholly new, and keeps
/// mode, owner and attributes, or the answer says what it could not keep. Large contents come as `multipart/form-data`: the
/// part `request` (JSON) first, then the part `content` (raw bytes). An `Idempotency-Key` makes asking again safe.
#[utoipa::path(
    post, path = routes::WRITE_FILE, tag = "files", operation_id = "write_file",
    params(("Idempotency-Key" = Option<String>, Header, pattern = "^[!-~]{1,255}$", description = "The outcome is kept 10 minutes and replayed for the same body (of a form: the same bytes of both parts).")),
    request_body(content((WriteFileRequest = "application/json"), (WriteFileForm = "multipart/form-data"))),
    responses((status = 200, body = WriteFileResponse, description = "What was written."), OnePath)
)]
pub(crate) async fn write_file(written: Written) -> Result<Response, Failure> {
    match written {
        Written::Whole(request, turn) => {
            turn.change(move |files, cancel| {
                let answer = files.write(&request, cancel)?;
                let facts = facts(&answer);
                Ok((answer, facts))
            })
            .await
        }
        Written::Form(upload) => upload.write(facts).await,
    }
}

fn facts(answer: &WriteFileResponse) -> Facts {
    Facts::change(&answer.path, Some(&answer.revision), answer.previous_revision.as_deref())
}
