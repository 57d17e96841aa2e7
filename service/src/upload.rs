//! A content that comes as a form: frames of the body go to a blocking thread, which takes the form apart and lets the
//! engine write the content as it comes. Memory stays flat, however much that is.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::response::Response;
use bytes::{Buf, Bytes};
use filectx_files::{Cancel, CancelOnDrop};
use filectx_openapi::{WriteFileRequest, WriteFileResponse};
use http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use crate::answer::{self, Facts};
use crate::failure::Failure;
use crate::form::{Form, boundary_of};
use crate::json::{self, Json, Operation};
use crate::negotiate;
use crate::outcomes::{Claim, Claimed, Name, Outcome};
use crate::service::Service;
use crate::strict;
use crate::turn::Turn;

/// How many frames may wait for the disk.
const WAITING: usize = 4;
/// An upload has no time limit on the whole, only on silence (`json.rs`).
const WHOLE: Duration = Duration::from_secs(86_400);

/// A request of write-file.
pub(crate) enum Written {
    /// With its content in it.
    Whole(WriteFileRequest, Turn),
    /// A form whose content is still to come.
    Form(Upload),
}

impl FromRequest<Arc<Service>> for Written {
    type Rejection = Failure;

    async fn from_request(request: Request, service: &Arc<Service>) -> Result<Self, Failure> {
        let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let Some(boundary) = content_type.and_then(boundary_of) else {
            let Json(request, turn) = Json::from_request(request, service).await?;
            return Ok(Self::Whole(request, turn));
        };
        let (head, mut body) = request.into_parts();
        match admit(&head.headers, service).await {
            Ok((turn, name)) => Ok(Self::Form(Upload { boundary, name, turn, headers: head.headers, body })),
            Err(failure) => {
                json::drain(&head.headers, &mut body).await;
                Err(failure)
            }
        }
    }
}

async fn admit(headers: &HeaderMap, service: &Arc<Service>) -> Result<(Turn, Option<Name>), Failure> {
    let form = negotiate::form(headers, false)?;
    let name = WriteFileRequest::KEYED.map(|operation| Name::of(operation, headers)).transpose()?.flatten();
    let permit = service.load().permit().await?;
    Ok((Turn::new(Arc::clone(service), permit, form, negotiate::coding(headers)), name))
}

/// A form that is coming in.
pub(crate) struct Upload {
    boundary: String,
    name: Option<Name>,
    turn: Turn,
    headers: HeaderMap,
    body: Body,
}

impl Upload {
    /// Writes its content, and answers.
    pub(crate) async fn write(mut self, facts: fn(&WriteFileResponse) -> Facts) -> Result<Response, Failure> {
        let cancel = Cancel::after(WHOLE);
        let _ends_with_the_caller = CancelOnDrop(cancel.clone());
        let (send, frames) = mpsc::channel(WAITING);
        let Turn { service, permit, coding, .. } = self.turn;
        let (boundary, name) = (self.boundary, self.name);
        let work = move || {
            let source = Frames { frames, frame: Bytes::new(), failure: None };
            store(&service, Form::new(source, &boundary), name, &cancel, facts)
        };
        let working = tokio::task::spawn_blocking(work);
        let sent = pump(&mut self.body, send).await;
        let done = working.await.unwrap_or_else(|_| Err(Failure::internal()));
        if done.is_err() && !sent {
            json::drain(&self.headers, &mut self.body).await;
        }
        let (body, facts) = done?;
        Ok(answer::holding(answer::of_json(body.to_vec(), coding, facts), permit))
    }
}

/// Hands the body's frames on; whether all of it was taken.
async fn pump(body: &mut Body, send: mpsc::Sender<Result<Bytes, Failure>>) -> bool {
    loop {
        let frame = json::next_frame(body).await.transpose();
        let Some(frame) = frame else { return true };
        let broken = frame.is_err();
        if send.send(frame).await.is_err() || broken {
            return false;
        }
    }
}

/// The frames as a stream of bytes, for a blocking thread.
struct Frames {
    frames: mpsc::Receiver<Result<Bytes, Failure>>,
    frame: Bytes,
    /// Why there are no more.
    failure: Option<Failure>,
}

impl Read for Frames {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while !self.frame.has_remaining() {
            match self.frames.blocking_recv() {
                None => return Ok(0),
                Some(Ok(frame)) => self.frame = frame,
                Some(Err(failure)) => {
                    self.failure = Some(failure);
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
            }
        }
        let read = self.frame.remaining().min(out.len());
        self.frame.copy_to_slice(&mut out[..read]);
        Ok(read)
    }
}

type Stored = Result<(Bytes, Facts), Failure>;

fn store(
    service: &Service,
    mut form: Form<Frames>,
    name: Option<Name>,
    cancel: &Cancel,
    facts: fn(&WriteFileResponse) -> Facts,
) -> Stored {
    let head = request_part(service, &mut form);
    let (request, text) = head.map_err(|failure| form.source().failure.take().unwrap_or(failure))?;
    let mut digest = Sha256::new();
    digest.update((text.len() as u64).to_le_bytes());
    digest.update(&text);
    let mut content =
        Content { form, service, digest, name, claim: None, replayed: None, failure: None, cancel };
    let written = service.files().write_from(&request, &mut content, cancel);
    let Content { claim, replayed, failure, mut form, .. } = content;
    match replayed {
        Some(Outcome::Done(body, facts)) => return Ok((body, facts)),
        Some(Outcome::Refused(error)) => return Err(error.into()),
        None => {}
    }
    if let Some(failure) = failure.or_else(|| form.source().failure.take()) {
        return Err(failure);
    }
    let outcome = match written {
        Ok(answer) => Outcome::Done(serde_json::to_vec(&answer).unwrap_or_default().into(), facts(&answer)),
        Err(error) => Outcome::Refused(error),
    };
    if let Some(claim) = claim {
        claim.settle(&outcome);
    }
    match outcome {
        Outcome::Done(body, facts) => Ok((body, facts)),
        Outcome::Refused(error) => Err(error.into()),
    }
}

/// The part `request`, which comes first, and its text.
fn request_part(service: &Service, form: &mut Form<Frames>) -> Result<(WriteFileRequest, Vec<u8>), Failure> {
    let broken = |error: io::Error| Failure::invalid_request(None, format!("the form: {error}"));
    let expect = |found: Option<String>, name: &str| match found {
        Some(found) if found == name => Ok(()),
        _ => {
            Err(Failure::invalid_request(None, "the form: send the part `request`, then the part `content`"))
        }
    };
    expect(form.next().map_err(broken)?, "request")?;
    let limit = service.files().limits().max_body_bytes;
    let (mut text, mut piece) = (Vec::new(), vec![0; 16 << 10]);
    loop {
        let read = form.read_part(&mut piece).map_err(broken)?;
        if read == 0 {
            break;
        }
        text.extend_from_slice(&piece[..read]);
        if text.len() as u64 > limit {
            return Err(json::too_large(limit));
        }
    }
    let request = strict::from_slice(&text).map_err(json::not_as_asked)?;
    expect(form.next().map_err(broken)?, "content")?;
    Ok((request, text))
}

/// The part `content`, as the engine reads it. At its end, before anything is published, it is known which request this
/// is: one that was done already ends here.
struct Content<'a> {
    form: Form<Frames>,
    service: &'a Service,
    digest: Sha256,
    name: Option<Name>,
    claim: Option<Claim<'a>>,
    replayed: Option<Outcome>,
    failure: Option<Failure>,
    cancel: &'a Cancel,
}

impl Read for Content<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.form.read_part(out).map_err(|error| self.refuse(&error.to_string()))?;
        self.digest.update(&out[..read]);
        if read == 0 && self.claim.is_none() {
            if !self.form.is_last().map_err(|error| self.refuse(&error.to_string()))? {
                return Err(self.refuse("more comes after the part `content`"));
            }
            self.claim()?;
        }
        Ok(read)
    }
}

impl Content<'_> {
    fn refuse(&mut self, why: &str) -> io::Error {
        self.failure = Some(Failure::invalid_request(None, format!("the form: {why}")));
        io::ErrorKind::InvalidData.into()
    }

    fn claim(&mut self) -> io::Result<()> {
        let Some(name) = self.name.take() else { return Ok(()) };
        let key = name.with_digest(self.digest.clone().finalize().into());
        match self.service.outcomes().claim(&key, self.cancel) {
            Ok(Claimed::Mine(claim)) => {
                self.claim = Some(claim);
                Ok(())
            }
            Ok(Claimed::Known(outcome)) => {
                self.replayed = Some(outcome);
                Err(io::ErrorKind::AlreadyExists.into())
            }
            Err(error) => {
                self.failure = Some(error.into());
                Err(io::ErrorKind::InvalidInput.into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use filectx_openapi::Code;

    #[test]
    fn a_code_for_each_end_of_a_stream() {
        let (send, frames) = mpsc::channel(WAITING);
        let mut source = Frames { frames, frame: Bytes::new(), failure: None };
        send.try_send(Ok(Bytes::from_static(b"ab"))).unwrap();
        send.try_send(Err(Failure::new(Code::DeadlineExceeded, "silence"))).unwrap();
        let mut out = [0; 8];
        assert_eq!(source.read(&mut out).unwrap(), 2);
        assert!(source.read(&mut out).is_err());
        assert_eq!(source.failure.unwrap().0.code, Code::DeadlineExceeded);
    }
}
