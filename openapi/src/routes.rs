//! The routes, each named once; router, document, client and tests take them from here.

/// Reads a batch of files.
pub const READ_FILE_CONTEXT: &str = "/v1/read-file-context";
/// Lists one directory.
pub const LIST_DIRECTORY: &str = "/v1/list-directory";
/// Searches contents.
pub const FIND_TEXT: &str = "/v1/find-text";
/// Searches names.
pub const FIND_PATHS: &str = "/v1/find-paths";
/// Edits one file exactly.
pub const EDIT_FILE: &str = "/v1/edit-file";
/// Writes one whole file.
pub const WRITE_FILE: &str = "/v1/write-file";
/// Deletes one file or link.
pub const DELETE_FILE: &str = "/v1/delete-file";
/// Says who and what the service is.
pub const INFO: &str = "/v1/info";
/// Says that the service is alive, without a token.
pub const HEALTHZ: &str = "/healthz";
/// The OpenAPI document, without a token.
pub const OPENAPI_JSON: &str = "/openapi.json";
/// Swagger UI, without a token.
pub const DOCS: &str = "/docs/";
