//! The service's limits: every one has a name, a default and a meaning, told once, in the table below.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

macro_rules! limits {
    ($($name:ident = $default:expr, $doc:literal;)*) => {
        /// The limits in force. Set by `--limit NAME=VALUE`, `[limits]` in the configuration, or `FILECTX_LIMIT_NAME`.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        #[serde(default)]
        pub struct Limits {
            $(#[doc = $doc] #[schema(example = json!($default), required = true)] pub $name: u64,)*
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }

        /// The name of every limit, in the order of the documentation.
        pub const LIMIT_NAMES: &[&str] = &[$(stringify!($name)),*];

        impl Limits {
            /// Sets the limit called `name`.
            pub fn set(&mut self, name: &str, value: u64) -> Result<(), LimitError> {
                match name {
                    $(stringify!($name) => self.$name = value,)*
                    _ => return Err(LimitError { name: name.to_owned() }),
                }
                Ok(())
            }
        }
    };
}

limits! {
    max_file_bytes = 1_000_000, "Most bytes returned of one file: of UTF-8 text, or of a raw binary. A request may ask for more, up to `max_json_file_bytes` or `max_multipart_bytes`.";
    max_batch_bytes = 64 << 20, "Most bytes returned for one batch, in request order.";
    max_files = 2_000, "Most files in one batch.";
    max_body_bytes = 8 << 20, "Most bytes of a request's JSON body.";
    max_write_bytes = 64 << 20, "Most bytes of content that write-file takes, whatever its encoding adds.";
    deadline_ms = 120_000, "Longest time for one request, in milliseconds; a request may ask for less.";
    max_concurrent_requests = 64, "Most requests worked on at once.";
    max_queued_requests = 256, "Most requests that wait for their turn; one more is `overloaded`.";
    max_buffered_bytes = 512 << 20, "Most bytes of files held in memory over all requests; more wait.";
    image_max_pixels = 1_150_000, "Most pixels of an image in an answer.";
    image_max_side = 1_568, "Longest side of an image in an answer, in pixels.";
    image_max_bytes = 3_750_000, "Most bytes of an image in an answer.";
    max_image_source_bytes = 64 << 20, "Most bytes of an image file that is decoded.";
    max_image_source_pixels = 100_000_000, "Most pixels of an image file that is decoded.";
    max_find_rows = 5_000, "Most rows in the answer of a search.";
    max_find_bytes = 8 << 20, "Most bytes of row text in the answer of a search.";
    max_list_entries = 1_000, "Most entries in one page of a listing.";
    max_json_file_bytes = 64 << 20, "Most bytes that a request may ask for of one file, or for a batch, in a JSON answer.";
    max_multipart_bytes = 16 << 30, "The same in a multipart answer, where large binaries stream from the disk.";
}

/// No limit has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitError {
    /// The name that was given.
    pub name: String,
}

impl std::fmt::Display for LimitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "there is no limit called `{}`; the limits are {}", self.name, LIMIT_NAMES.join(", "))
    }
}

impl std::error::Error for LimitError {}

/// The name of a limit that cut an answer, as `truncation.limit` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitName {
    /// The bytes of one file were spent.
    MaxFileBytes,
    /// The bytes of the batch were spent.
    MaxBatchBytes,
    /// The request asked for more of a file than a JSON answer gives.
    MaxJsonFileBytes,
    /// The request asked for more than a multipart answer gives.
    MaxMultipartBytes,
    /// The number of matches that the request asked for is reached.
    MaxResults,
    /// The service's limit on rows is reached.
    MaxFindRows,
    /// The service's limit on bytes of rows is reached.
    MaxFindBytes,
    /// The page of the listing is full.
    MaxEntries,
    /// The page of the listing is full, by the service's limit.
    MaxListEntries,
}
