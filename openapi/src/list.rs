//! Nouns of `POST /v1/list-directory`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Base64, LimitName};

fn yes() -> bool {
    true
}

/// One directory to list. Either `path` or `path_base64` is there.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "path": "/etc", "max_entries": 50 }))]
pub struct ListDirectoryRequest {
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
    /// Whether names that begin with a dot are listed.
    #[serde(default = "yes")]
    pub hidden: bool,
    /// Most entries in this page, from 1 (default and most: the service's `max_list_entries`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max_entries: Option<u64>,
    /// `truncation.next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// One page of a directory, in byte order of the names.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ListDirectoryResponse {
    /// The joined path.
    pub path: String,
    /// Its exact bytes in base64, where it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_base64: Option<String>,
    /// The entries of this page.
    pub entries: Vec<ListEntry>,
    /// How many entries this request could list, over all pages.
    pub total: u64,
    /// Where to go on, when entries follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncation: Option<ListTruncation>,
}

/// One entry of a directory, by `lstat`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ListEntry {
    /// Its name.
    pub name: String,
    /// The name's exact bytes in base64, where it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_base64: Option<String>,
    /// What it is; links are not followed.
    #[serde(rename = "type")]
    pub type_: EntryType,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Last change, in milliseconds since 1970.
    pub last_modified_epoch_millis: i64,
    /// The permission bits as an octal string, e.g. `"0755"`.
    #[schema(example = "0644")]
    pub mode: String,
    /// Links: the text of the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_target: Option<String>,
    /// Its exact bytes in base64, where it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_target_base64: Option<String>,
    /// Links: what they lead to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<LinkTarget>,
}

/// What a name in a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryType {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A Unix socket.
    Socket,
    /// A block device.
    BlockDevice,
    /// A character device.
    CharDevice,
}

/// What a link leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkTarget {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A named pipe.
    Fifo,
    /// A Unix socket.
    Socket,
    /// A block device.
    BlockDevice,
    /// A character device.
    CharDevice,
    /// Nothing: it dangles.
    Missing,
    /// Itself, or a circle of links.
    Loop,
    /// A place outside the service's roots, or one that its policy denies.
    Outside,
    /// A place that the service's user may not look at.
    Unreadable,
}

/// Where a listing goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListTruncation {
    /// The limit that cut: `max_entries`.
    pub limit: LimitName,
    /// Opaque; send it as `after`.
    pub next: String,
}
