//! Nouns of `POST /v1/read-file-context`: a batch of files in, one outcome a file (or range) out.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Base64, ByteRange, ItemError, LimitName, LineRange};

/// A batch of files to read.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "files": [
        { "path": "/etc/passwd", "line_ranges": [{ "start": 1, "end": 5 }] },
        { "path": "/etc/group", "line_ranges": [{ "start": 2, "end": 3 }] },
        { "path": "/etc/no-such-file" }
    ],
    "max_file_bytes": 100000
}))]
pub struct ReadFileContextRequest {
    /// The files, at least one and at most `max_files`; each gets its outcome.
    #[schema(min_items = 1)]
    pub files: Vec<FileRequest>,
    /// Absolute directory that relative paths are joined to; without it a relative path fails with `invalid_path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^/[^\\x00]*$")]
    pub cwd: Option<String>,
    /// Most bytes returned of one file (default: the service's limit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_file_bytes: Option<u64>,
    /// Most bytes returned of all files, in request order (default: the service's limit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_batch_bytes: Option<u64>,
    /// Time for the request in milliseconds; what is not read by then fails with `deadline_exceeded`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// Limits of images in the answer (default: the service's limits).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageLimits>,
    /// Whether binaries and images come with their bytes.
    #[serde(default)]
    pub binary: BinaryMode,
    /// `true` counts lines to the end of the file, `false` stops where the last range ends or the budget cuts;
    /// absent: counts when the file is at most 64 MiB or a range is open-ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count_lines: Option<bool>,
    /// What ends a line.
    #[serde(default)]
    pub line_breaks: LineBreaks,
}

/// One file of a batch. Either `path` or `path_base64` is there.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FileRequest {
    /// Absolute, or relative to `cwd`; `~` and `~/x` mean the home of the service's user. Nothing else is expanded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The path's exact bytes in base64, for names that are not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Base64>)]
    pub path_base64: Option<String>,
    /// The lines to return; empty = the whole file. Sorted in the answer, overlapping ones merged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub line_ranges: Vec<LineRange>,
    /// The bytes to return, instead of lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte_range: Option<ByteRange>,
    /// A revision; when the file still has it, the answer is `not_modified` without content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_none_match: Option<String>,
    /// How the file is taken.
    #[serde(default, rename = "as")]
    pub as_: As,
}

/// How a file is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum As {
    /// By its content: text, image or binary.
    #[default]
    Auto,
    /// As text, whatever it is: by its BOM, else UTF-8 with U+FFFD (`lossy`).
    Text,
    /// As its stored bytes.
    Binary,
}

/// Whether binaries and images come with their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BinaryMode {
    /// With their bytes.
    #[default]
    Content,
    /// Without: metadata only, whatever their size.
    Summary,
}

/// What ends a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LineBreaks {
    /// LF alone; a CR right before it belongs to the line end.
    #[default]
    Newline,
    /// Also lone CR, VT, FF, U+001C to U+001E, U+0085, U+2028 and U+2029.
    Unicode,
}

/// Limits of images in an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ImageLimits {
    /// Most pixels (width times height).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max_pixels: Option<u64>,
    /// Longest side in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max_side: Option<u64>,
    /// Most bytes of the encoded image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
}

/// The outcomes of a batch. Every file of the request is in exactly one of the two lists.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ReadFileContextResponse {
    /// What was read, in request order; a file with several ranges has several contexts.
    pub file_contexts: Vec<FileContext>,
    /// What could not be read, in request order.
    pub failed_files: Vec<FailedFile>,
}

/// What was read of one file. Fields that do not apply, and flags that are false, are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct FileContext {
    /// Which file of the request, from 0.
    #[schema(required = true)]
    pub request_index: u64,
    /// The joined path.
    #[schema(required = true)]
    pub file_name: String,
    /// Its exact bytes in base64, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_name_base64: Option<String>,
    /// Which of the file's `line_ranges` this context answers, from 0; absent when none were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range_indexes: Option<Vec<u64>>,
    /// The text: the decoded slice of the file, line ends as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_content: Option<String>,
    /// The bytes of a binary, or of an image made fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binary_content: Option<Base64>,
    /// In a multipart answer, instead of `binary_content`: the Content-ID of the raw part that follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binary_part: Option<String>,
    /// True when the request asked for a summary of binaries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binary_omitted: Option<bool>,
    /// True when the file still has the revision in `if_none_match`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_modified: Option<bool>,
    /// First line returned, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_range_start: Option<u64>,
    /// Last line returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_range_end: Option<u64>,
    /// First byte of the file that is returned, for a byte range and for a line cut inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte_range_start: Option<u64>,
    /// The byte after the last one returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte_range_end: Option<u64>,
    /// Lines of the whole file; absent when the scan did not reach its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_count: Option<u64>,
    /// Whether the file's last line ends with a line end; absent when the scan did not reach the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends_with_newline: Option<bool>,
    /// True when the range lies beyond the end of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub past_end: Option<bool>,
    /// Last change, in milliseconds since 1970.
    #[schema(required = true)]
    pub last_modified_epoch_millis: i64,
    /// Size in bytes, when the file was opened.
    #[schema(required = true)]
    pub file_size_bytes: u64,
    /// The file's revision: opaque, for `if_none_match` and `expected_revision`.
    #[schema(required = true)]
    pub revision: String,
    /// What the content is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The text's encoding: WHATWG name in lower case, or `utf-32le`, `utf-32be`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// True when the file begins with a byte order mark, which is not content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bom: Option<bool>,
    /// True when undecodable bytes became U+FFFD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lossy: Option<bool>,
    /// The line ends that were scanned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_ending: Option<LineEnding>,
    /// True when a CR that belongs to no line end was scanned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lone_cr: Option<bool>,
    /// True when the file's size or time moved while it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_during_read: Option<bool>,
    /// Where the file really lies, when a link was followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub real_path: Option<String>,
    /// Its exact bytes in base64, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub real_path_base64: Option<String>,
    /// What cut the content, and where to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncation: Option<Truncation>,
    /// What the image is and what was done to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageInfo>,
}

/// The line ends of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LineEnding {
    /// LF alone.
    Lf,
    /// CR LF alone.
    Crlf,
    /// Both.
    Mixed,
    /// No line end.
    None,
}

/// What cut a text, and where to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Truncation {
    /// The limit that cut.
    pub limit: LimitName,
    /// The line to go on with; for a line cut inside, that line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_line: Option<u64>,
    /// The byte of the file to go on with, by `byte_range`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_byte: Option<u64>,
}

/// The format of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageFormat {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
    /// GIF.
    Gif,
    /// WebP.
    Webp,
    /// BMP, only as a source.
    Bmp,
    /// TIFF, only as a source.
    Tiff,
    /// ICO, only as a source.
    Ico,
    /// TGA, only as a source.
    Tga,
    /// PNM (PBM, PGM, PPM, PAM), only as a source.
    Pnm,
    /// QOI, only as a source.
    Qoi,
    /// A format that this version does not know.
    #[serde(untagged)]
    Other(String),
}

/// What an image is and what was done to it. In a summary only the source's data are there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ImageInfo {
    /// Format of the bytes in the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<ImageFormat>,
    /// Width of the image in the answer, in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u64>,
    /// Height of the image in the answer, in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u64>,
    /// Format of the file.
    pub source_format: ImageFormat,
    /// Width of the file's image, upright.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_width: Option<u64>,
    /// Height of the file's image, upright.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_height: Option<u64>,
    /// Size of the file in bytes.
    pub source_bytes: u64,
    /// True when the image was scaled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resized: Option<bool>,
    /// True when the bytes are not the file's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub re_encoded: Option<bool>,
    /// How many frames the file holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<u64>,
    /// Width in the answer divided by the upright source width.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
}

/// What could not be read, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FailedFile {
    /// Which file of the request, from 0.
    pub request_index: u64,
    /// The joined path, or the path as it was sent where it could not be joined.
    pub path: String,
    /// Its exact bytes in base64, where it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_base64: Option<String>,
    /// Why.
    pub error: ItemError,
}

/// One record of a multipart answer: the body of a part of type `application/json`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Record {
    /// A context; with `binary_part` its raw bytes follow as a part of their own.
    FileContext(Box<FileContext>),
    /// A failure.
    FailedFile(Box<FailedFile>),
    /// The file whose raw part came just before moved while it was streamed.
    FileChanged {
        /// Which file of the request, from 0.
        request_index: u64,
    },
    /// The last record; an answer without it was cut off.
    Done {
        /// How many contexts the answer holds.
        file_contexts: u64,
        /// How many failures the answer holds.
        failed_files: u64,
    },
}
