//! `POST /v1/find-paths`: a search of names.

use axum::response::Response;
use filectx_openapi::{FindPathsRequest, FindPathsResponse, routes};

use crate::answer::Facts;
use crate::failure::{Failure, OnePath};
use crate::json::{Json, Operation};

impl Operation for FindPathsRequest {}

/// Search names
///
/// Paths below the roots whose name (or path, where the pattern holds a slash) matches, component by component in byte
/// order. NFC and NFD names match either form; links are listed, never followed.
#[utoipa::path(
    post, path = routes::FIND_PATHS, tag = "files", operation_id = "find_paths",
    responses((status = 200, body = FindPathsResponse, description = "The paths that match."), OnePath)
)]
pub(crate) async fn find_paths(Json(request, turn): Json<FindPathsRequest>) -> Result<Response, Failure> {
    turn.look(request.deadline_ms, move |files, cancel| {
        let found = files.find_paths(&request, cancel)?;
        let facts = Facts { failed: Some(found.error_count), ..Facts::items(found.paths.len()) };
        Ok((found, facts))
    })
    .await
}
