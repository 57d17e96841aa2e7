//! How a failure becomes an answer. A handler returns a [`Failure`]; the door, which knows the request's id, turns it
//! into a Problem. What axum refuses by itself (and what a panic leaves) becomes one there, too.

use axum::response::{IntoResponse, Response};
use filectx_openapi::{Code, ItemError, Problem};
use http::{HeaderValue, StatusCode, header};
use utoipa::IntoResponses;

/// Why a request is refused.
#[derive(Clone, Debug)]
pub(crate) struct Failure(pub(crate) ItemError);

impl Failure {
    /// A failure without data.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self(ItemError::new(code, message))
    }

    /// A request that does not follow the contract; `pointer` names the field where one is at fault.
    pub(crate) fn invalid_request(pointer: Option<String>, message: impl Into<String>) -> Self {
        let mut failure = Self::new(Code::InvalidRequest, message);
        failure.0.data.pointer = pointer;
        failure
    }

    /// The failure that a status without words stands for: what axum answers by itself.
    pub(crate) fn of_status(status: StatusCode) -> Self {
        let (code, message) = match status.as_u16() {
            404 => (Code::UnknownRoute, "there is nothing at this address; see /openapi.json"),
            405 => (Code::MethodNotAllowed, "this route has no such method; see `allow`"),
            413 => (Code::RequestTooLarge, "the request body is over the limit"),
            415 => (Code::UnsupportedMediaType, "the request body is of another type"),
            400..=499 => (Code::InvalidRequest, "the request is not well formed"),
            _ => (Code::Internal, "a bug of the service; please report it with the request id"),
        };
        Self::new(code, message)
    }

    /// What is left of a request whose handler panicked.
    pub(crate) fn internal() -> Self {
        Self::of_status(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.0.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The body of the answer.
    pub(crate) fn problem(self, request_id: &str) -> Vec<u8> {
        // A Problem is text and numbers: it always serialises.
        serde_json::to_vec(&Problem::new(self.0, request_id)).unwrap_or_default()
    }
}

impl From<ItemError> for Failure {
    fn from(error: ItemError) -> Self {
        Self(error)
    }
}

impl IntoResponse for Failure {
    /// A head without a body: the door fills it in (`door.rs`).
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        if self.0.code == Code::Overloaded {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.0.code == Code::Unauthorized {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

macro_rules! failures {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident $status:tt $text:tt;)* })*) => {$(
        $(#[$doc])*
        #[derive(IntoResponses)]
        #[allow(dead_code, reason = "it only describes answers for the document")]
        pub(crate) enum $name {$(
            #[response(status = $status, description = $text, content_type = "application/problem+json")]
            $variant(Problem),
        )*}
    )*};
}

failures! {
    /// What every route behind the token may refuse.
    Guarded {
        Unauthorized 401 "`unauthorized`: the token is missing or wrong.";
        Forbidden 403 "`forbidden_origin`: the Host or Origin is foreign.";
        Internal 500 "`internal`: a bug; the service stays up.";
    }

    /// What the health check may refuse.
    HealthRefused {
        BadRequest 400 "`invalid_request`: the nonce is not 16 to 64 bytes of hex.";
        Forbidden 403 "`forbidden_origin`: the Host or Origin is foreign.";
    }

    /// What every operation may refuse as a whole.
    Refused {
        BadRequest 400 "`invalid_request`: not JSON, or not as the contract says; `pointer` names the field.";
        Unauthorized 401 "`unauthorized`: the token is missing or wrong.";
        Forbidden 403 "`forbidden_origin`: the Host or Origin is foreign.";
        NotAcceptable 406 "`not_acceptable`: no answer of the asked type exists.";
        TooLarge 413 "`request_too_large`: the body is over `limit`.";
        MediaType 415 "`unsupported_media_type`: the body is no `application/json`.";
        Internal 500 "`internal`: a bug; the service stays up.";
        Overloaded 503 "`overloaded`: the queue is full, nothing was done; try again after `Retry-After`.";
        Deadline 504 "`deadline_exceeded`: the time was up.";
    }

    /// What an operation on one path may refuse besides (with [`Refused`]; a status with several codes is told once).
    OnePath {
        BadRequest 400 "`invalid_request`: not JSON, or not as the contract says; `pointer` names the field.";
        Unauthorized 401 "`unauthorized`: the token is missing or wrong.";
        Forbidden 403 "`forbidden_origin`, `permission_denied`, `outside_roots`, `denied_by_policy`, `read_only`.";
        NotFound 404 "`not_found`: there is no such file; `hint` may name a sibling.";
        NotAcceptable 406 "`not_acceptable`: no answer of the asked type exists.";
        Conflict 409 "`is_directory`, `not_a_directory`, `not_regular_file`, `link_loop`, `not_text`, `no_match`, `ambiguous_match`, `no_change`, `changed_concurrently`.";
        Precondition 412 "`revision_mismatch`, `already_exists`: the file is at `revision`.";
        TooLarge 413 "`request_too_large`, `too_large`: over `limit`.";
        MediaType 415 "`unsupported_media_type`: the body is no `application/json`.";
        Unprocessable 422 "`invalid_path`, `invalid_pattern`, `unencodable_text`.";
        Internal 500 "`io_error`, `internal`.";
        Overloaded 503 "`overloaded`: the queue is full, nothing was done; try again after `Retry-After`.";
        Deadline 504 "`deadline_exceeded`: the time was up.";
        NoSpace 507 "`no_space`: the old file is intact.";
    }
}
