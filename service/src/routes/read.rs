//! `POST /v1/read-file-context`: a batch of files. One hop to a blocking thread reads the batch and writes the answer's
//! text; more threads help only while a file takes long.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::response::Response;
use filectx_files::{CancelOnDrop, Delivery, Outcome, ReadBatch};
use filectx_openapi::{ReadFileContextRequest, ReadFileContextResponse, Record, routes};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::answer::{self, Facts};
use crate::failure::{Failure, Refused};
use crate::guard::load::Permit;
use crate::hop;
use crate::json::{Json, Operation};
use crate::negotiate::{Coding, Form};
use crate::routes::read_multipart;
use crate::spare::SpareBytes;
use crate::turn::Turn;

/// How often a batch that takes long is asked whether one more thread should work on it.
pub(super) const TICK: Duration = Duration::from_millis(20);

/// Up to so many files are short work: the hop to a thread of their own would cost more than it frees.
pub(super) const SHORT_BATCH: usize = 64;

impl Operation for ReadFileContextRequest {
    const MULTIPART: bool = true;
}

/// Read a batch of files
///
/// Whole files, ranges of lines or ranges of bytes; text as it is, binaries in base64. Every file of the request is in
/// exactly one of the two lists of the answer: a file that cannot be read fails alone. What a limit cut says so in
/// `truncation`, with where to go on. With `Accept: multipart/mixed` the same outcomes come as a stream of parts, one
/// JSON record each, with binaries as raw parts after their record; the last record is `done`.
#[utoipa::path(
    post, path = routes::READ_FILE_CONTEXT, tag = "files", operation_id = "read_file_context",
    responses(
        (status = 200, description = "An outcome for each file; as parts, a record each.", content(
            (ReadFileContextResponse = "application/json"),
            (Record = "multipart/mixed"),
        )),
        Refused,
    )
)]
pub(crate) async fn read_file_context(
    Json(request, turn): Json<ReadFileContextRequest>,
) -> Result<Response, Failure> {
    if turn.form == Form::Multipart {
        return read_multipart::answer(request, turn).await;
    }
    let Turn { service, permit, coding, .. } = turn;
    let short = request.files.len() <= SHORT_BATCH;
    let batch = service.files().read_batch(request, Delivery::Json)?;
    let _ends_with_the_caller = CancelOnDrop(batch.cancel().clone());
    let deadline = Instant::from_std(batch.cancel().deadline());
    let (send, mut answer) = oneshot::channel();
    let document = Document::new(service.spare().take());
    let reading = Reading::new(Arc::clone(&batch), coding, document, send);
    let long = service.hops().takes_long();
    if short && service.hops().short(work(&reading)) {
        // No timer as long as work is short, which is nearly always.
        tokio::select! {
            biased;
            answer = &mut answer => return sent(answer, permit, batch),
            () = long => {}
        }
    } else if !short {
        hop::long(work(&reading));
    }
    loop {
        let tick = Instant::now() + TICK;
        tokio::select! {
            answer = &mut answer => return sent(answer, permit, batch),
            () = tokio::time::sleep_until(tick.min(deadline)) => {
                if Instant::now() >= deadline {
                    batch.expire();
                    reading.advance();
                } else if batch.wants_help() {
                    hop::long(work(&reading));
                }
            }
        }
    }
}

/// The answer; the batch holds its part of the memory bound until the bytes are sent.
fn sent(
    answer: Result<Response, oneshot::error::RecvError>,
    permit: Permit,
    batch: Arc<ReadBatch>,
) -> Result<Response, Failure> {
    let answer = answer.map_err(|_| Failure::internal())?;
    Ok(answer::holding(answer, (permit, batch)))
}

fn work(reading: &Arc<Reading>) -> impl FnOnce() + Send + 'static {
    let reading = Arc::clone(reading);
    move || reading.batch.work_and(|| reading.advance())
}

/// A batch, and the answer that grows with it: each outcome is written while its text is still at hand.
struct Reading {
    batch: Arc<ReadBatch>,
    coding: Option<Coding>,
    /// What is written so far, and whom it goes to; `None` once it is sent.
    document: Mutex<Option<(Document, oneshot::Sender<Response>)>>,
}

impl Reading {
    fn new(
        batch: Arc<ReadBatch>,
        coding: Option<Coding>,
        document: Document,
        send: oneshot::Sender<Response>,
    ) -> Arc<Self> {
        Arc::new(Self { batch, coding, document: Mutex::new(Some((document, send))) })
    }

    /// Writes what is ready, and answers once every outcome is there.
    fn advance(&self) {
        let mut document = self.document.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((written, _)) = &mut *document else { return };
        let taken = self.batch.take();
        taken.outcomes.into_iter().for_each(|outcome| written.push(outcome));
        if taken.done
            && let Some((written, send)) = document.take()
        {
            // A caller that hung up meanwhile does not listen.
            let _ = send.send(written.finish(self.coding));
        }
    }
}

/// The text of an answer under way, as serde writes a [`ReadFileContextResponse`].
struct Document {
    contexts: SpareBytes,
    failed: Vec<u8>,
    read: u64,
    not_read: u64,
    /// Whether compression gains anything, as far as the first outcome tells.
    compressible: bool,
}

impl Document {
    fn new(mut contexts: SpareBytes) -> Self {
        contexts.extend_from_slice(br#"{"file_contexts":["#);
        Self { contexts, failed: Vec::new(), read: 0, not_read: 0, compressible: true }
    }

    fn push(&mut self, outcome: Outcome) {
        if self.read + self.not_read == 0 {
            // What is compressed already gains nothing.
            self.compressible = !is_binary(Some(&outcome));
        }
        match outcome {
            Outcome::Context(context) | Outcome::Stored(context, _) => {
                separate(&mut self.contexts, self.read);
                self.read += 1;
                answer::append_context(&mut self.contexts, *context);
            }
            Outcome::Failed(file) => {
                separate(&mut self.failed, self.not_read);
                self.not_read += 1;
                answer::append(&mut self.failed, &file);
            }
        }
    }

    fn finish(mut self, coding: Option<Coding>) -> Response {
        self.contexts.extend_from_slice(br#"],"failed_files":["#);
        self.contexts.extend_from_slice(&self.failed);
        self.contexts.extend_from_slice(b"]}");
        let facts = Facts { items: Some(self.read), failed: Some(self.not_read), ..Facts::default() };
        answer::of_json(self.contexts, coding.filter(|_| self.compressible), facts)
    }
}

/// Whether an outcome is one that gains nothing from compression.
pub(super) fn is_binary(outcome: Option<&Outcome>) -> bool {
    match outcome {
        Some(Outcome::Context(context)) => context.binary_content.is_some(),
        Some(Outcome::Stored(..)) => true,
        Some(Outcome::Failed(_)) | None => false,
    }
}

fn separate(list: &mut Vec<u8>, before: u64) {
    if before > 0 {
        list.push(b',');
    }
}
