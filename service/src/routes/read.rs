//! `POST /v1/read-file-context`: a batch of files. One hop to a blocking thread reads the batch and writes the answer's
//! text; more threads help only while a file takes long.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::response::Response;
use filectx_files::{CancelOnDrop, Delivery, Outcome, ReadBatch};
use filectx_openapi::{ReadFileContextRequest, ReadFileContextResponse, Record, routes};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::answer::{self, Facts};
use crate::escape;
use crate::failure::{Failure, Refused};
use crate::guard::load::Permit;
use crate::hop;
use crate::json::{Json, Operation};
use crate::negotiate::{Coding, Form};
use crate::routes::read_multipart;
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
    let reading = Reading::new(Arc::clone(&batch), coding, send);
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
                    reading.finish();
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
    move || {
        reading.batch.work();
        reading.finish();
    }
}

/// A batch, and whom its answer goes to.
struct Reading {
    batch: Arc<ReadBatch>,
    coding: Option<Coding>,
    /// Whether every outcome is there.
    done: Arc<AtomicBool>,
    send: Mutex<Option<oneshot::Sender<Response>>>,
}

impl Reading {
    fn new(batch: Arc<ReadBatch>, coding: Option<Coding>, send: oneshot::Sender<Response>) -> Arc<Self> {
        let done = Arc::new(AtomicBool::new(false));
        let set = Arc::clone(&done);
        batch.on_progress(Box::new(move || set.store(true, Ordering::Release)));
        Arc::new(Self { batch, coding, done, send: Mutex::new(Some(send)) })
    }

    /// Answers, once every outcome is there; the first thread that finds it so does.
    fn finish(&self) {
        if !self.done.load(Ordering::Acquire) {
            return;
        }
        let Some(send) = self.send.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        // A caller that hung up meanwhile does not listen.
        let _ = send.send(document(self.batch.take().outcomes, self.coding));
    }
}

/// The answer, written as [`ReadFileContextResponse`] is.
fn document(outcomes: Vec<Outcome>, coding: Option<Coding>) -> Response {
    // What is compressed already gains nothing.
    let coding = coding.filter(|_| !is_binary(outcomes.first()));
    let mut contexts = Vec::with_capacity(outcomes.iter().map(room).sum());
    contexts.extend_from_slice(br#"{"file_contexts":["#);
    let mut failed = Vec::new();
    let (mut read, mut not_read) = (0, 0);
    for outcome in outcomes {
        match outcome {
            Outcome::Context(context) | Outcome::Stored(context, _) => {
                separate(&mut contexts, read);
                read += 1;
                answer::append_context(&mut contexts, *context);
            }
            Outcome::Failed(file) => {
                separate(&mut failed, not_read);
                not_read += 1;
                answer::append(&mut failed, &file);
            }
        }
    }
    contexts.extend_from_slice(br#"],"failed_files":["#);
    contexts.extend_from_slice(&failed);
    contexts.extend_from_slice(b"]}");
    let facts = Facts { items: Some(read), failed: Some(not_read), ..Facts::default() };
    answer::of_json(contexts, coding, facts)
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

/// Roughly what an outcome takes in the answer.
fn room(outcome: &Outcome) -> usize {
    const FIELDS: usize = 512;
    match outcome {
        Outcome::Context(context) | Outcome::Stored(context, _) => {
            let text = context.text_content.as_ref().map_or(0, |text| escape::room(text.len()));
            let binary = context.binary_content.as_ref().map_or(0, |bytes| bytes.0.len().div_ceil(3) * 4);
            FIELDS + text + binary
        }
        Outcome::Failed(_) => FIELDS,
    }
}
