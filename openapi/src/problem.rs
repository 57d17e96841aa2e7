//! Failures: the codes that programs branch on, the data that belongs to each, and the two forms in which they
//! travel: a [`Problem`] for a whole request (RFC 9457) and an [`ItemError`] for one item of a batch.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::{EntryType, LineRange};

macro_rules! codes {
    ($($variant:ident $name:literal $status:literal $title:literal;)*) => {
        /// What went wrong; final names. Programs branch on the code, never on a message.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $(#[doc = $title] $variant,)*
            /// A code that this version does not know.
            Other(String),
        }

        impl Code {
            /// Every known code, in the order of the documentation.
            pub const ALL: &[Code] = &[$(Code::$variant),*];

            /// The name on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Code::$variant => $name,)*
                    Code::Other(name) => name,
                }
            }

            /// The HTTP status of a whole request that fails so (an item's code has none of its own).
            pub fn status(&self) -> u16 {
                match self {
                    $(Code::$variant => $status,)*
                    Code::Other(_) => 500,
                }
            }

            /// The short sentence of the kind, the same for every occurrence.
            pub fn title(&self) -> &str {
                match self {
                    $(Code::$variant => $title,)*
                    Code::Other(name) => name,
                }
            }
        }

        impl From<&str> for Code {
            fn from(name: &str) -> Self {
                match name {
                    $($name => Code::$variant,)*
                    _ => Code::Other(name.to_owned()),
                }
            }
        }
    };
}

codes! {
    InvalidRequest "invalid_request" 400 "The request is not well formed";
    UnknownRoute "unknown_route" 404 "There is no such route";
    MethodNotAllowed "method_not_allowed" 405 "The route has no such method";
    Unauthorized "unauthorized" 401 "The token is missing or wrong";
    ForbiddenOrigin "forbidden_origin" 403 "The Host or Origin is foreign";
    RequestTooLarge "request_too_large" 413 "The request body is over the limit";
    UnsupportedMediaType "unsupported_media_type" 415 "The request body is of another type";
    NotAcceptable "not_acceptable" 406 "No answer of the asked type exists";
    Overloaded "overloaded" 503 "The queue is full; nothing was done";
    DeadlineExceeded "deadline_exceeded" 504 "The time was up";
    Internal "internal" 500 "A bug of the service";
    InvalidPath "invalid_path" 422 "The path cannot name a file";
    NotFound "not_found" 404 "There is no such file";
    PermissionDenied "permission_denied" 403 "The system denies it to the service's user";
    OutsideRoots "outside_roots" 403 "The path leads outside the service's roots";
    DeniedByPolicy "denied_by_policy" 403 "The service's policy denies this path";
    ReadOnly "read_only" 403 "The service is read-only";
    IsDirectory "is_directory" 409 "The path names a directory";
    NotADirectory "not_a_directory" 409 "A part of the path is not a directory";
    NotRegularFile "not_regular_file" 409 "The path names no regular file";
    LinkLoop "link_loop" 409 "The links lead in a circle";
    TooLarge "too_large" 413 "The file is over the limit";
    NotText "not_text" 409 "The file is not text";
    InvalidLineRange "invalid_line_range" 422 "The range of lines cannot be";
    BatchBudgetExhausted "batch_budget_exhausted" 413 "The batch's bytes were spent before this file";
    ImageUndecodable "image_undecodable" 422 "The image is damaged";
    ImageUnsupported "image_unsupported" 422 "The image's format is not supported";
    ImageTooLarge "image_too_large" 422 "The image is over the limits";
    IoError "io_error" 500 "The system reported an input/output error";
    NoMatch "no_match" 409 "The text to replace is not in the file";
    AmbiguousMatch "ambiguous_match" 409 "The text to replace is in the file several times";
    NoChange "no_change" 409 "The edit would change nothing";
    UnencodableText "unencodable_text" 422 "The new text has no bytes in the file's encoding";
    RevisionMismatch "revision_mismatch" 412 "The file is not at the expected revision";
    AlreadyExists "already_exists" 412 "The file exists already";
    ChangedConcurrently "changed_concurrently" 409 "Someone else changed the file meanwhile";
    NoSpace "no_space" 507 "The disk or quota is full; the old file is intact";
    InvalidPattern "invalid_pattern" 422 "The pattern cannot be searched for";
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Code::from(String::deserialize(deserializer)?.as_str()))
    }
}

impl PartialSchema for Code {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        let object = ObjectBuilder::new()
            .schema_type(SchemaType::Type(Type::String))
            .description(Some("What went wrong. Programs branch on it, never on a message."))
            .enum_values(Some(Code::ALL.iter().map(|code| code.as_str().to_owned())))
            .build();
        utoipa::openapi::schema::Schema::Object(object).into()
    }
}

impl ToSchema for Code {}

/// The data that belongs to a code; fields that do not apply are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ProblemData {
    /// `invalid_request`, `invalid_line_range`: JSON pointer (RFC 6901) to the field of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The limit that was hit, in its own unit (bytes, files).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// `not_regular_file`: what the path names instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<EntryType>,
    /// `not_a_directory`: the part of the path that is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// `too_large`: the file's size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// `not_text`: what the file is instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// `invalid_line_range`: the range as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<LineRange>,
    /// `image_*`: the image's format, as its content says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// `image_*`: the declared width in pixels, where the header could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u64>,
    /// `image_*`: the declared height in pixels, where the header could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<u64>,
    /// `io_error`: the system's error number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
    /// Which edit of the request failed, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edit_index: Option<u64>,
    /// `no_match`: the places most like the text that was not found, best first, at most 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidates: Option<Vec<Candidate>>,
    /// `no_match`: true when the new text is there already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub already_applied: Option<bool>,
    /// `ambiguous_match`: every place where the text is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub occurrences: Option<Vec<Occurrence>>,
    /// `unencodable_text`: the file's encoding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// `unencodable_text`: the first character that has no bytes in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub character: Option<String>,
    /// `revision_mismatch`, `already_exists`: the revision that the file has now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// `invalid_pattern`: where in the pattern, in bytes from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}

/// The failure of one item. Code and data as in a Problem; no status.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ItemError {
    /// What went wrong.
    pub code: Code,
    /// A sentence that names the thing, the limit and the way out.
    pub message: String,
    /// What may help, e.g. a sibling's name that looks alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The data that belongs to the code.
    #[serde(flatten)]
    pub data: Box<ProblemData>,
}

impl ItemError {
    /// A failure without data.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, data: Box::default() }
    }
}

/// The failure of a whole request: `application/problem+json` (RFC 9457).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "type": "urn:filectx:problem:not_found", "title": "There is no such file", "status": 404,
    "detail": "/srv/app/mian.rs: there is no such file", "code": "not_found",
    "request_id": "0190b0c2-7d3e-7cc1-a1f0-3d5f6a7b8c9d"
}))]
pub struct Problem {
    /// `urn:filectx:problem:CODE`.
    #[serde(rename = "type")]
    pub type_: String,
    /// The sentence of the code.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// A sentence that names the thing, the limit and the way out (an item calls it `message`).
    pub detail: String,
    /// What went wrong.
    pub code: Code,
    /// What may help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The id of the request, as in the `x-request-id` header.
    #[serde(default)]
    #[schema(required = true)]
    pub request_id: String,
    /// The data that belongs to the code.
    #[serde(flatten)]
    pub data: Box<ProblemData>,
}

impl Problem {
    /// The Problem that says what `error` says.
    pub fn new(error: ItemError, request_id: &str) -> Self {
        Self {
            type_: format!("urn:filectx:problem:{}", error.code.as_str()),
            title: error.code.title().to_owned(),
            status: error.code.status(),
            detail: error.message,
            code: error.code,
            hint: error.hint,
            request_id: request_id.to_owned(),
            data: error.data,
        }
    }
}

/// A place that is most like a text that was not found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Candidate {
    /// Its first line, from 1.
    pub line_start: u64,
    /// Its last line.
    pub line_end: u64,
    /// Its exact text: sent as `old_text` it matches.
    pub text: String,
    /// How alike, from 0 to 1.
    pub similarity: f64,
    /// The most specific kind of difference that explains all of it.
    pub difference: Difference,
    /// The difference in words: line, column, code points.
    pub detail: String,
    /// The place with line numbers, for reading.
    pub excerpt: String,
}

/// The kind of a difference, from the most specific on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// Only line ends differ.
    LineEndings,
    /// Only the white space at the start of lines differs.
    Indentation,
    /// Only the white space at the end of lines differs.
    TrailingSpace,
    /// Only white space differs.
    Whitespace,
    /// Equal after NFKC, blank folding, and without quotes, dashes and invisible characters of another kind.
    Unicode,
    /// The text itself differs.
    Content,
}

/// One of several places where a text is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Occurrence {
    /// Its first line, from 1.
    pub line_start: u64,
    /// Its last line.
    pub line_end: u64,
    /// The place with line numbers, for reading.
    pub excerpt: String,
}
