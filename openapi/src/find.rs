//! Nouns of `POST /v1/find-text` and `POST /v1/find-paths`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Code, LimitName};

fn yes() -> bool {
    true
}

fn default_results() -> u64 {
    50
}

fn default_paths() -> u64 {
    200
}

fn default_line_bytes() -> u64 {
    500
}

/// A search of contents.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "pattern": "root", "paths": ["/etc/passwd", "/etc/group"], "context": 1 }))]
pub struct FindTextRequest {
    /// A Rust regular expression (no look-around), or the text itself with `literal`.
    pub pattern: String,
    /// Files and directories to search, in this order; absent = `cwd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 1)]
    pub paths: Option<Vec<String>>,
    /// Absolute directory that relative paths are joined to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^/[^\\x00]*$")]
    pub cwd: Option<String>,
    /// Globs relative to each search root; one without `/` matches at any depth, `!` excludes.
    #[serde(default)]
    pub globs: Vec<String>,
    /// Lines of context before and after each match.
    #[serde(default)]
    pub context: u64,
    /// Most matching lines, from 1; context lines do not count.
    #[serde(default = "default_results")]
    #[schema(minimum = 1)]
    pub max_results: u64,
    /// Takes the pattern as text.
    #[serde(default)]
    pub literal: bool,
    /// Absent = smart: case counts when the pattern holds a capital.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_sensitive: Option<bool>,
    /// Searches hidden files and directories too.
    #[serde(default)]
    pub hidden: bool,
    /// Obeys `.gitignore`, `.ignore` and `.git/info/exclude`.
    #[serde(default = "yes")]
    pub ignore_files: bool,
    /// `truncation.next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Lets a match span lines; each line touched is a row.
    #[serde(default)]
    pub multiline: bool,
    /// Follows links met on the way, each directory once.
    #[serde(default)]
    pub follow_links: bool,
    /// Most bytes of a row's text; longer lines become a window around the match.
    #[serde(default = "default_line_bytes")]
    #[schema(minimum = 1)]
    pub max_line_bytes: u64,
    /// Time for the search in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
}

/// The rows of a search, in the order of path and line.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FindTextResponse {
    /// Matching lines and their context.
    pub rows: Vec<Row>,
    /// What cut the rows, and where to go on; there only if a further match exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncation: Option<FindTruncation>,
    /// False after a deadline and whenever something could not be searched.
    pub complete: bool,
    /// True when the time was up.
    pub deadline_exceeded: bool,
    /// How case was applied.
    pub case_sensitive: bool,
    /// How many files were searched.
    pub files_searched: u64,
    /// What was passed over on purpose.
    pub skipped: Skipped,
    /// What could not be searched, the first 20.
    pub errors: Vec<FindError>,
    /// How many things could not be searched.
    pub error_count: u64,
}

/// One line of a search's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Row {
    /// The path, beginning with the root as given.
    pub path: String,
    /// Its exact bytes in base64, where it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_base64: Option<String>,
    /// The line, from 1.
    pub line: u64,
    /// The line without its line end, or a window of it.
    pub text: String,
    /// True for a line around a match.
    pub is_context: bool,
    /// Character of the first match in its whole line, from 1; 0 for context.
    pub column: u64,
    /// The matches in `text`.
    pub submatches: Vec<Submatch>,
    /// True when `text` is a window of a longer line.
    pub clipped: bool,
}

/// A match in a row's text, in bytes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Submatch {
    /// First byte, from 0.
    pub start: u64,
    /// The byte after the last one.
    pub end: u64,
}

/// What cut a search, and where to go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FindTruncation {
    /// The limit that cut.
    pub limit: LimitName,
    /// Opaque; send it as `after`.
    pub next: String,
}

/// Entries that were not entered or read, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Skipped {
    /// Hidden names.
    pub hidden: u64,
    /// Ignored names.
    pub ignored: u64,
    /// Binary files.
    pub binary: u64,
    /// Files and directories that could not be opened.
    pub unreadable: u64,
    /// Pipes, sockets and devices.
    pub special: u64,
    /// Links to files.
    pub linked_files: u64,
    /// Links to directories.
    pub linked_directories: u64,
}

/// Something that could not be searched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FindError {
    /// The path, beginning with the root as given.
    pub path: String,
    /// Its exact bytes in base64, where it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_base64: Option<String>,
    /// What went wrong.
    pub code: Code,
    /// A sentence that names the thing and the way out.
    pub message: String,
}

/// A search of names.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "pattern": "*.conf", "paths": ["/etc"], "type": "file" }))]
pub struct FindPathsRequest {
    /// With `*`, `?`, `[` or `{` a glob, else a substring (smart case); on the name, or on the path from the root when it
    /// holds a `/`. Absent = everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Directories to search, in this order; absent = `cwd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 1)]
    pub paths: Option<Vec<String>>,
    /// Absolute directory that relative paths are joined to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^/[^\\x00]*$")]
    pub cwd: Option<String>,
    /// Globs relative to each search root; `!` excludes.
    #[serde(default)]
    pub globs: Vec<String>,
    /// Most paths, from 1.
    #[serde(default = "default_paths")]
    #[schema(minimum = 1)]
    pub max_results: u64,
    /// Hidden names too.
    #[serde(default)]
    pub hidden: bool,
    /// Obeys ignore files.
    #[serde(default = "yes")]
    pub ignore_files: bool,
    /// Files or directories only; links are listed with `any` only.
    #[serde(default, rename = "type")]
    pub type_: PathTypeFilter,
    /// `truncation.next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Time for the search in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
}

/// Which kinds of names a search lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathTypeFilter {
    /// Files.
    File,
    /// Directories.
    Directory,
    /// Everything.
    #[default]
    Any,
}

/// The paths that a search of names found.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FindPathsResponse {
    /// The paths, in order.
    pub paths: Vec<FoundPath>,
    /// What cut them, and where to go on; there only if a further path exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncation: Option<FindTruncation>,
    /// False after a deadline and whenever something could not be searched.
    pub complete: bool,
    /// True when the time was up.
    pub deadline_exceeded: bool,
    /// What was passed over on purpose.
    pub skipped: Skipped,
    /// What could not be searched, the first 20.
    pub errors: Vec<FindError>,
    /// How many things could not be searched.
    pub error_count: u64,
}

/// A path that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FoundPath {
    /// The path, beginning with the root as given.
    pub path: String,
    /// Its exact bytes in base64, where it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_base64: Option<String>,
    /// What it is; links are not followed.
    #[serde(rename = "type")]
    pub type_: PathType,
}

/// What a found path is.
pub type PathType = crate::EntryType;
