//! The engine's one error: a variant for each thing that a caller would do differently, with the data that the
//! contract promises. [`Error::item`] is the one table that turns it into the contract's words.

use std::path::Path;

use filectx_openapi::{
    Candidate, Code, EntryType, ItemError, LimitName, LineRange, Occurrence, ProblemData, lossy,
};
use rustix::io::Errno;
use std::os::unix::ffi::OsStrExt;

/// Why something was not done.
#[allow(missing_docs, reason = "a field is named as the contract names it")]
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// The request contradicts itself or the contract; `pointer` names the field.
    InvalidRequest { pointer: String, detail: String, limit: Option<u64> },
    /// The path cannot name a file.
    InvalidPath { detail: String },
    /// There is no such file; `sibling` is the one name beside it that looks alike.
    NotFound { sibling: Option<Vec<u8>> },
    /// The path, or a part of it, is a link that leads nowhere.
    DanglingLink { link: Vec<u8>, target: Vec<u8> },
    /// The system denies it to this user.
    PermissionDenied,
    /// The path leads outside the roots.
    OutsideRoots,
    /// A deny rule covers the path.
    DeniedByPolicy,
    /// The service is read-only.
    ReadOnly,
    /// The path names a directory.
    IsDirectory,
    /// A part of the path is no directory.
    NotADirectory { component: Vec<u8> },
    /// The path names no regular file.
    NotRegularFile { kind: EntryType },
    /// The links lead in a circle.
    LinkLoop,
    /// The file is over the limit.
    TooLarge { size: u64, limit: u64 },
    /// A file, or what an edit would make of it, is over what may be written at once.
    TooLargeToWrite { size: u64, limit: u64 },
    /// The content that was sent is over what may be written at once.
    ContentTooLarge { limit: u64 },
    /// The file is not text.
    NotText { mime_type: String },
    /// A range from 0, or reversed.
    InvalidLineRange { range: LineRange, pointer: String },
    /// The batch's bytes were spent.
    BatchBudgetExhausted { limit: u64, name: LimitName },
    /// The time was up.
    DeadlineExceeded,
    /// The caller is gone; nobody hears this.
    Cancelled,
    /// The image is damaged.
    ImageUndecodable { format: String, size: Option<(u64, u64)>, detail: String },
    /// The image's format is not supported.
    ImageUnsupported { format: String },
    /// The image is over the limits.
    ImageTooLarge { format: String, size: Option<(u64, u64)>, limit: u64, detail: String },
    /// The system reported an error that has no code of its own.
    Io { errno: Errno },
    /// The text to replace is not there.
    NoMatch { edit_index: u64, already_applied: bool, candidates: Vec<Candidate> },
    /// The text to replace is there several times; `more` than could be listed.
    AmbiguousMatch { edit_index: u64, occurrences: Vec<Occurrence>, more: bool },
    /// The edit would change nothing.
    NoChange { edit_index: Option<u64> },
    /// The new text has no bytes in the file's encoding.
    UnencodableText { edit_index: Option<u64>, encoding: String, character: char },
    /// The file is not at the expected revision.
    RevisionMismatch { revision: String },
    /// The file exists already.
    AlreadyExists { revision: String },
    /// Someone else changed the file meanwhile.
    ChangedConcurrently,
    /// The disk or quota is full.
    NoSpace,
    /// The pattern cannot be searched for.
    InvalidPattern { offset: Option<u64>, detail: String },
    /// A panic was contained: a bug.
    Internal,
}

impl From<Errno> for Error {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Error::NotFound { sibling: None },
            // A file system that is mounted read-only, too: nobody may write there.
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Error::PermissionDenied,
            Errno::LOOP => Error::LinkLoop,
            Errno::ISDIR => Error::IsDirectory,
            Errno::NAMETOOLONG => {
                Error::InvalidPath { detail: "a name in it is longer than the system takes".into() }
            }
            Errno::XDEV => Error::OutsideRoots,
            Errno::NOSPC | Errno::DQUOT => Error::NoSpace,
            errno => Error::Io { errno },
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        error
            .raw_os_error()
            .map_or(Error::Io { errno: Errno::IO }, |raw| Errno::from_raw_os_error(raw).into())
    }
}

impl Error {
    /// A request that contradicts the contract.
    pub fn invalid_request(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Error::InvalidRequest { pointer: pointer.into(), detail: detail.into(), limit: None }
    }

    /// What went wrong, in the contract's words, for the thing called `path` (empty where there is none).
    pub fn item(&self, path: &Path) -> ItemError {
        let mut data = Box::<ProblemData>::default();
        let mut hint = None;
        let (code, sentence) = match self {
            Error::InvalidRequest { pointer, detail, limit } => {
                data.pointer = Some(pointer.clone());
                data.limit = *limit;
                // The field is the thing here, not a path.
                let place = if pointer.is_empty() { "the request" } else { pointer };
                return ItemError {
                    code: Code::InvalidRequest,
                    message: format!("{place}: {detail}"),
                    hint,
                    data,
                };
            }
            Error::InvalidPath { detail } => (Code::InvalidPath, format!("this cannot be a path: {detail}")),
            Error::NotFound { sibling } => {
                hint = sibling.as_ref().map(|name| {
                    format!("a name that looks alike is there: {} (send it exactly so)", escaped(name))
                });
                (Code::NotFound, "there is no such file".to_owned())
            }
            Error::DanglingLink { link, target } => {
                let (link, target) = (escaped(link), escaped(target));
                hint = Some(format!("{link} is a link to {target}, which is not there"));
                (Code::NotFound, "there is no such file".to_owned())
            }
            Error::PermissionDenied => {
                (Code::PermissionDenied, "the system denies this to the service's user".to_owned())
            }
            Error::OutsideRoots => (
                Code::OutsideRoots,
                "outside the roots that the service is confined to (see `roots` of /v1/info)".into(),
            ),
            Error::DeniedByPolicy => {
                (Code::DeniedByPolicy, "the service was told to deny this path (--deny)".into())
            }
            Error::ReadOnly => {
                (Code::ReadOnly, "the service is read-only (--read-only); nothing was changed".into())
            }
            Error::IsDirectory => {
                (Code::IsDirectory, "this is a directory; list-directory shows what is in it".into())
            }
            Error::NotADirectory { component } => {
                data.component = Some(lossy(component));
                (Code::NotADirectory, format!("{} is not a directory", lossy(component)))
            }
            Error::NotRegularFile { kind } => {
                data.kind = Some(*kind);
                (Code::NotRegularFile, format!("this is no regular file but a {}", kind_word(*kind)))
            }
            Error::LinkLoop => (Code::LinkLoop, "its links lead in a circle, or through more than 40".into()),
            Error::TooLarge { size, limit } => {
                data.size_bytes = Some(*size);
                data.limit = Some(*limit);
                (
                    Code::TooLarge,
                    format!(
                        "{size} bytes are over the limit of {limit}; raise max_file_bytes or ask for a byte_range"
                    ),
                )
            }
            Error::TooLargeToWrite { size, limit } => {
                data.size_bytes = Some(*size);
                data.limit = Some(*limit);
                (
                    Code::TooLarge,
                    format!(
                        "{size} bytes are over what an edit reads or writes ({limit}, max_write_bytes); nothing was changed"
                    ),
                )
            }
            Error::ContentTooLarge { limit } => {
                data.limit = Some(*limit);
                (
                    Code::RequestTooLarge,
                    format!("the content is over {limit} bytes (max_write_bytes); nothing was written"),
                )
            }
            Error::NotText { mime_type } => {
                data.mime_type = Some(mime_type.clone());
                (
                    Code::NotText,
                    format!("this is not text but {mime_type}; ask for a byte_range, or set `as`"),
                )
            }
            Error::InvalidLineRange { range, pointer } => {
                data.range = Some(*range);
                data.pointer = Some(pointer.clone());
                let why = if range.start == 0 { "lines count from 1" } else { "its end is before its start" };
                (Code::InvalidLineRange, format!("{pointer}: {why}; nothing of the file was read"))
            }
            Error::BatchBudgetExhausted { limit, name } => {
                data.limit = Some(*limit);
                let name = match name {
                    LimitName::MaxJsonFileBytes => "max_json_file_bytes",
                    LimitName::MaxMultipartBytes => "max_multipart_bytes",
                    _ => "max_batch_bytes",
                };
                (
                    Code::BatchBudgetExhausted,
                    format!(
                        "not read: what is left of the batch's {limit} bytes ({name}) does not hold its first line; ask for it in a request of its own"
                    ),
                )
            }
            Error::DeadlineExceeded => {
                (Code::DeadlineExceeded, "not done before the request's time was up (deadline_ms)".into())
            }
            Error::Cancelled => (Code::DeadlineExceeded, "given up, as the caller is gone".into()),
            Error::ImageUndecodable { format, size, detail } => {
                image_data(&mut data, format, *size);
                (
                    Code::ImageUndecodable,
                    format!("this {format} image cannot be decoded: {detail}; `as: binary` gives its bytes"),
                )
            }
            Error::ImageUnsupported { format } => {
                image_data(&mut data, format, None);
                (
                    Code::ImageUnsupported,
                    format!("{format} images are not supported; `as: binary` gives the bytes"),
                )
            }
            Error::ImageTooLarge { format, size, limit, detail } => {
                image_data(&mut data, format, *size);
                data.limit = Some(*limit);
                (
                    Code::ImageTooLarge,
                    format!("this {format} image is over the limit: {detail}; `as: binary` gives its bytes"),
                )
            }
            Error::Io { errno } => {
                data.errno = Some(errno.raw_os_error());
                (Code::IoError, std::io::Error::from(*errno).to_string())
            }
            Error::NoMatch { edit_index, already_applied, candidates } => {
                data.edit_index = Some(*edit_index);
                data.already_applied = already_applied.then_some(true);
                data.candidates = Some(candidates.clone());
                (Code::NoMatch, no_match_sentence(*edit_index, *already_applied, candidates))
            }
            Error::AmbiguousMatch { edit_index, occurrences, more } => {
                data.edit_index = Some(*edit_index);
                data.occurrences = Some(occurrences.clone());
                let most = if *more { "more than " } else { "" };
                let first = if *more { " (the first are listed)" } else { "" };
                (
                    Code::AmbiguousMatch,
                    format!(
                        "edit {edit_index}: old_text is there {most}{} times{first}; send more of what surrounds it, a line_hint, or replace_all",
                        occurrences.len()
                    ),
                )
            }
            Error::NoChange { edit_index } => {
                data.edit_index = *edit_index;
                (Code::NoChange, "this would change nothing; the file was not touched".into())
            }
            Error::UnencodableText { edit_index, encoding, character } => {
                data.edit_index = *edit_index;
                data.encoding = Some(encoding.clone());
                data.character = Some(character.to_string());
                (
                    Code::UnencodableText,
                    format!(
                        "{character:?} (U+{:04X}) cannot be written in the file's encoding, {encoding}; write the whole file to change that",
                        *character as u32
                    ),
                )
            }
            Error::RevisionMismatch { revision } => {
                data.revision = Some(revision.clone());
                (Code::RevisionMismatch, "the file is not at the expected revision; read it again".into())
            }
            Error::AlreadyExists { revision } => {
                data.revision = Some(revision.clone());
                (Code::AlreadyExists, "the file exists already; leave create_only out to replace it".into())
            }
            Error::ChangedConcurrently => (
                Code::ChangedConcurrently,
                "someone else changed the file meanwhile; nothing was written, read it again".into(),
            ),
            Error::NoSpace => (Code::NoSpace, "the disk or the quota is full; the old file is intact".into()),
            Error::InvalidPattern { offset, detail } => {
                data.offset = *offset;
                (Code::InvalidPattern, detail.clone())
            }
            Error::Internal => {
                (Code::Internal, "a bug of the service; please report it with the request id".into())
            }
        };
        let message = if path.as_os_str().is_empty() {
            sentence
        } else {
            format!("{}: {sentence}", escaped(path.as_os_str().as_bytes()))
        };
        ItemError { code, message, hint, data }
    }
}

fn image_data(data: &mut ProblemData, format: &str, size: Option<(u64, u64)>) {
    data.format = Some(format.to_owned());
    data.width = size.map(|(width, _)| width);
    data.height = size.map(|(_, height)| height);
}

fn no_match_sentence(edit_index: u64, already_applied: bool, candidates: &[Candidate]) -> String {
    if already_applied {
        return format!(
            "edit {edit_index}: old_text is not in the file, and new_text is: it seems to be applied already"
        );
    }
    match candidates.first() {
        Some(best) => format!(
            "edit {edit_index}: old_text is not in the file; lines {}-{} are most like it: {}",
            best.line_start, best.line_end, best.detail
        ),
        None => format!("edit {edit_index}: old_text is not in the file, nor anything like it"),
    }
}

fn kind_word(kind: EntryType) -> &'static str {
    match kind {
        EntryType::File => "file",
        EntryType::Directory => "directory",
        EntryType::Symlink => "link",
        EntryType::Fifo => "named pipe (fifo)",
        EntryType::Socket => "socket",
        EntryType::BlockDevice => "block device",
        EntryType::CharDevice => "character device",
    }
}

/// A name for reading: controls, blanks other than the ordinary one, and bytes that are not UTF-8 as escapes.
pub fn escaped(name: &[u8]) -> String {
    let mut out = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            let odd_blank = c.is_whitespace() && c != ' ';
            let combining = unicode_normalization::char::is_combining_mark(c);
            let invisible = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
            if c.is_control() || odd_blank || combining || invisible {
                out.push_str(&format!("\\u{:04x}", c as u32));
            } else {
                out.push(c);
            }
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}
