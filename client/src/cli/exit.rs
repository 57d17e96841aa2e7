//! How a command ends: its exit status, and the failures that lead to it.

use filectx_client::{ConfigError, Error};
use filectx_openapi::Code;

/// The exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything was done.
    Done,
    /// Some items were refused; of a search, nothing was found.
    Refused,
    /// The request failed.
    Failed,
}

impl Exit {
    pub(crate) fn status(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Refused => 1,
            Exit::Failed => 2,
        }
    }
}

/// Why a command did not come to its end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request failed.
    Request(Error),
    /// There is nothing to ask with.
    Config(ConfigError),
    /// The arguments contradict each other.
    Usage(String),
    /// The output could not be written, or an input not be read.
    Io(String),
    /// A search failed: never the status that says that nothing was found.
    Search(Error),
    /// Whoever read the output has enough.
    BrokenPipe,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Request(error)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Failure::Config(error)
    }
}

impl Failure {
    /// The failure as a search's.
    pub(crate) fn of_search(self) -> Self {
        match self {
            Failure::Request(error) => Failure::Search(error),
            other => other,
        }
    }

    /// The exit status of a command on one item, such as an edit: was the item refused, or did the request fail?
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Failure::Request(Error::Refused(problem)) => exit_of(&problem.code),
            Failure::Request(_) | Failure::Config(_) | Failure::Usage(_) | Failure::Io(_) => Exit::Failed,
            Failure::Search(_) => Exit::Failed,
            Failure::BrokenPipe => Exit::Done,
        }
    }
}

/// What a refusal is: of the item that was asked for, or of the request. Without `_`, so that a new code has to answer.
fn exit_of(code: &Code) -> Exit {
    match code {
        Code::InvalidPath
        | Code::NotFound
        | Code::PermissionDenied
        | Code::OutsideRoots
        | Code::DeniedByPolicy
        | Code::ReadOnly
        | Code::IsDirectory
        | Code::NotADirectory
        | Code::NotRegularFile
        | Code::LinkLoop
        | Code::TooLarge
        | Code::NotText
        | Code::InvalidLineRange
        | Code::BatchBudgetExhausted
        | Code::ImageUndecodable
        | Code::ImageUnsupported
        | Code::ImageTooLarge
        | Code::IoError
        | Code::NoMatch
        | Code::AmbiguousMatch
        | Code::NoChange
        | Code::UnencodableText
        | Code::RevisionMismatch
        | Code::AlreadyExists
        | Code::ChangedConcurrently
        | Code::NoSpace => Exit::Refused,
        Code::InvalidRequest
        | Code::UnknownRoute
        | Code::MethodNotAllowed
        | Code::Unauthorized
        | Code::ForbiddenOrigin
        | Code::RequestTooLarge
        | Code::UnsupportedMediaType
        | Code::NotAcceptable
        | Code::Overloaded
        | Code::DeadlineExceeded
        | Code::Internal
        | Code::InvalidPattern
        | Code::Other(_) => Exit::Failed,
    }
}
