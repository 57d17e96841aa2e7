//! The contract of filectx, as Rust types: what goes over the wire, with its OpenAPI schemas.
//!
//! The nouns live here, one file an operation; the rules that they obey are told in their docs. No I/O, no async,
//! no behaviour: the engine (`filectx-files`) has the verbs, the service their door, the client the way to it.

mod base64;
mod delete;
mod edit;
mod find;
mod info;
mod limits;
mod list;
mod path;
mod problem;
mod read;
pub mod routes;
mod window;
mod write;

pub use base64::Base64;
pub use delete::{DeleteFileRequest, DeleteFileResponse};
pub use edit::{AppliedEdit, Edit, EditFileRequest, EditFileResponse, LineEndings, Warning, WarningCode};
pub use find::{
    FindError, FindPathsRequest, FindPathsResponse, FindTextRequest, FindTextResponse, FindTruncation,
    FoundPath, PathType, PathTypeFilter, Row, Skipped, Submatch,
};
pub use info::{Feature, Health, InfoResponse};
pub use limits::{LIMIT_NAMES, LimitError, LimitName, Limits};
pub use list::{
    EntryType, LinkTarget, ListDirectoryRequest, ListDirectoryResponse, ListEntry, ListTruncation,
};
pub use path::{lossy, lossy_base64};
pub use problem::{Candidate, Code, Difference, ItemError, Occurrence, Problem, ProblemData};
pub use read::{
    As, BinaryMode, FailedFile, FileContext, FileRequest, ImageFormat, ImageInfo, ImageLimits, LineBreaks,
    LineEnding, ReadFileContextRequest, ReadFileContextResponse, Record, Truncation,
};
pub use window::{ByteRange, LineRange};
pub use write::{WriteFileRequest, WriteFileResponse};
