//! `POST /v1/list-directory`: one page of a directory.

use axum::response::Response;
use filectx_openapi::{ListDirectoryRequest, ListDirectoryResponse, routes};

use crate::answer::Facts;
use crate::failure::{Failure, OnePath};
use crate::json::{Json, Operation};

impl Operation for ListDirectoryRequest {}

/// List one directory
///
/// A page of entries in byte order of their names, by `lstat`, each with what it is; links with their text and what they
/// lead to. `truncation.next` goes on where the page ends. Of an entry that cannot be looked at (a dead mount) only
/// name and type are known: its size, time and mode are 0.
#[utoipa::path(
    post, path = routes::LIST_DIRECTORY, tag = "files", operation_id = "list_directory",
    responses((status = 200, body = ListDirectoryResponse, description = "A page of the directory."), OnePath)
)]
pub(crate) async fn list_directory(
    Json(request, turn): Json<ListDirectoryRequest>,
) -> Result<Response, Failure> {
    turn.look(None, move |files, cancel| {
        let page = files.list(&request, cancel)?;
        let facts = Facts::items(page.entries.len());
        Ok((page, facts))
    })
    .await
}
