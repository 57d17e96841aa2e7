//! The windows that a request may ask of a file: lines or bytes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A range of lines. Lines count from 1 and both ends are included; a line ends at LF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LineRange {
    /// The first line, from 1.
    #[schema(example = 1)]
    pub start: u64,
    /// The last line, included; absent = to the end of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 40)]
    pub end: Option<u64>,
}

/// A range of the file's bytes. In text both ends move down to the start of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ByteRange {
    /// The first byte, from 0.
    #[schema(example = 0)]
    pub offset: u64,
    /// How many bytes; absent = to the end of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 4096)]
    pub length: Option<u64>,
}
