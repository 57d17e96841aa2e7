//! Nouns of `POST /v1/delete-file`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Base64;

/// One regular file or link to delete; never a directory. Either `path` or `path_base64` is there.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "path": "/tmp/filectx-example.txt" }))]
pub struct DeleteFileRequest {
    /// Absolute, or relative to `cwd`; `~` and `~/x` mean the home of the service's user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The path's exact bytes in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Base64>)]
    pub path_base64: Option<String>,
    /// Absolute directory that a relative path is joined to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^/[^\\x00]*$")]
    pub cwd: Option<String>,
    /// The revision that the file must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_revision: Option<String>,
}

/// That the file is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeleteFileResponse {
    /// The joined path.
    pub path: String,
    /// Its exact bytes in base64, where it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_base64: Option<String>,
    /// Always true.
    pub deleted: bool,
}
