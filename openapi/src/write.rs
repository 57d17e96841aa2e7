//! Nouns of `POST /v1/write-file`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Base64, Warning};

fn yes() -> bool {
    true
}

/// The whole content of one file. Either `path` or `path_base64` is there, and either `text_content` or
/// `binary_content` (unless the content is a part of its own, in `multipart/form-data`).
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "path": "/tmp/filectx-example.txt", "text_content": "limit = 1\n" }))]
pub struct WriteFileRequest {
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
    /// The content as text; stored as UTF-8, byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_content: Option<String>,
    /// The content as bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary_content: Option<Base64>,
    /// The revision that the existing file must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_revision: Option<String>,
    /// Fails with `already_exists` when the file is there.
    #[serde(default)]
    pub create_only: bool,
    /// Makes missing parent directories.
    #[serde(default = "yes")]
    pub create_parents: bool,
    /// Permission bits of a new file, four octal digits, not masked (default: 0666 & ~umask).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "0644", pattern = "^[0-7]{4}$")]
    pub mode: Option<String>,
}

/// What a write did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WriteFileResponse {
    /// The joined path.
    pub path: String,
    /// Its exact bytes in base64, where it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_base64: Option<String>,
    /// Where the file really lies, when a link was followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real_path: Option<String>,
    /// The file's revision now.
    pub revision: String,
    /// Its revision before, when it was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_revision: Option<String>,
    /// True when the file was not there before.
    pub created: bool,
    /// How many bytes the file holds now.
    pub bytes_written: u64,
    /// Directories that were made on the way, outermost first.
    pub created_directories: Vec<String>,
    /// False where a rename was impossible and the file was written in place.
    pub atomic: bool,
    /// What could not be kept, and what else is worth knowing.
    pub warnings: Vec<Warning>,
}
