//! Nouns of `POST /v1/edit-file`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Base64, LineBreaks};

/// Exact edits of one text file, applied in order as one write or not at all. Either `path` or `path_base64` is there.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "path": "/tmp/filectx-example.txt", "dry_run": true,
    "edits": [{ "old_text": "limit = 1", "new_text": "limit = 2" }]
}))]
pub struct EditFileRequest {
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
    /// The edits, at least one.
    #[schema(min_items = 1)]
    pub edits: Vec<Edit>,
    /// The revision that the file must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_revision: Option<String>,
    /// Whether line ends may differ between `old_text` and the file.
    #[serde(default)]
    pub line_endings: LineEndings,
    /// What ends a line, for line numbers.
    #[serde(default)]
    pub line_breaks: LineBreaks,
    /// Answers what would happen, and changes nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// One exact replacement.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The text to replace; exactly one occurrence, unless `line_hint` or `replace_all` chooses. Never empty.
    #[schema(min_length = 1)]
    pub old_text: String,
    /// What stands there afterwards; taken literally.
    pub new_text: String,
    /// A line inside the wanted occurrence, in the numbering of the file as the request found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_hint: Option<u64>,
    /// Replaces every occurrence, left to right without overlap.
    #[serde(default)]
    pub replace_all: bool,
}

/// Whether line ends may differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LineEndings {
    /// If the exact bytes fail, a line end in `old_text` matches CRLF or LF; `new_text` takes the file's style.
    #[default]
    Adapt,
    /// Bytes as sent.
    Exact,
}

/// What an edit did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EditFileResponse {
    /// The joined path.
    pub path: String,
    /// Its exact bytes in base64, where it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_base64: Option<String>,
    /// Where the file really lies, when a link was followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real_path: Option<String>,
    /// The file's revision now; of a dry run, the one that it would have.
    pub revision: String,
    /// The file's revision before.
    pub previous_revision: String,
    /// What each edit replaced.
    pub edits: Vec<AppliedEdit>,
    /// Unified diff on the file's real bytes.
    pub diff: String,
    /// Lines of the file now.
    pub line_count: u64,
    /// False where a rename was impossible and the file was written in place.
    pub atomic: bool,
    /// What could not be kept, and what else is worth knowing.
    pub warnings: Vec<Warning>,
}

/// What one edit replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AppliedEdit {
    /// First line of the replaced text, in the file before this edit; of several, the first.
    pub line_start: u64,
    /// Last line of it.
    pub line_end: u64,
    /// How many occurrences were replaced.
    pub replacements: u64,
    /// True when line ends were adapted to the file.
    pub line_endings_adapted: bool,
}

/// Something worth knowing about a change that succeeded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Warning {
    /// What it is.
    pub code: WarningCode,
    /// A sentence.
    pub message: String,
}

/// The kind of a warning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WarningCode {
    /// The file was one of several hard links; the others keep the old content.
    HardLinkSplit,
    /// The new content has other line ends than the old.
    LineEndingsChanged,
    /// The old content began with a byte order mark, the new does not.
    BomRemoved,
    /// The owner or group could not be kept.
    OwnerNotKept,
    /// Extended attributes or ACL could not be kept.
    XattrNotKept,
    /// The diff is cut.
    DiffCut,
    /// A warning that this version does not know.
    #[serde(untagged)]
    Other(String),
}
