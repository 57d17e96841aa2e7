//! The multipart answer of `POST /v1/read-file-context`. A batch that is read at once is answered in one piece, like a
//! JSON answer; of one that takes longer, outcomes leave in request order as they are ready. What was read and not sent
//! yet is bounded, so a caller that reads slowly slows the reading down.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use filectx_files::{CancelOnDrop, Delivery, Outcome, ReadBatch, Taken};
use filectx_openapi::ReadFileContextRequest;
use http::{HeaderValue, header};
use http_body::{Frame, SizeHint};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use super::read::{SHORT_BATCH, TICK, is_binary};
use crate::answer::{self, Counts, Facts};
use crate::failure::Failure;
use crate::hop;
use crate::negotiate::Coding;
use crate::parts::{Open, Parts};
use crate::service::Service;
use crate::turn::Turn;

/// How much of what is ready is taken and written at once.
const TAKEN_BYTES: u64 = 1 << 20;
/// How much of a file is read at once while it is sent.
const PIECE_BYTES: u64 = 1 << 20;
/// After so long without a byte taken by the caller the answer is given up: it holds a turn and memory.
const STALLED_FOR: Duration = Duration::from_secs(300);

pub(super) async fn answer(request: ReadFileContextRequest, turn: Turn) -> Result<Response, Failure> {
    let Turn { service, permit, coding, .. } = turn;
    let short = request.files.len() <= SHORT_BATCH;
    let batch = service.files().read_batch(request, Delivery::Multipart)?;
    let short = short && batch.never_waits();
    let ends_with_the_caller = CancelOnDrop(batch.cancel().clone());
    let deadline = Instant::from_std(batch.cancel().deadline());
    let progress = Progress::of(&batch, short);
    let first = match at_once(&service, &batch, coding, short).await? {
        Start::Whole(answer) => return Ok(answer::holding(*answer, (permit, batch))),
        Start::Part(first) => first,
    };
    let (send, receive) = mpsc::channel(1);
    let counts = Counts::default();
    let driver = Driver { batch, progress, deadline, send, counts: counts.clone() };
    let first = match first {
        Some(first) => first,
        // Nobody listens yet, so nobody has gone.
        None => driver.next().await.ok_or_else(Failure::internal)?,
    };
    let parts = parts(&first.outcomes, coding)?;
    let complete = Arc::new(AtomicBool::new(false));
    let received = Received { receive, complete: Arc::clone(&complete), _ends: ends_with_the_caller };
    let facts = Facts { counted: Some(counts), ..Facts::default() };
    let answer = respond(Body::new(received), &parts, coding_of(&first.outcomes, coding), facts)?;
    tokio::spawn(async move {
        let done = driver.send_all(parts, first).await;
        complete.store(done.is_some(), Ordering::Release);
        drop((driver, permit));
    });
    Ok(answer)
}

/// How the stream learns of progress.
enum Progress {
    Told(Arc<Notify>),
    /// It looks for itself: short work runs on a thread of the runtime, and whom that wakes waits until it is done.
    Looked(Duration),
}

impl Progress {
    fn of(batch: &ReadBatch, short: bool) -> Self {
        if short {
            return Progress::Looked(Duration::from_millis(2));
        }
        let progress = Arc::new(Notify::new());
        let tell = Arc::clone(&progress);
        batch.on_progress(Box::new(move || tell.notify_one()));
        Progress::Told(progress)
    }

    async fn made(&self) {
        match self {
            Progress::Told(progress) => progress.notified().await,
            Progress::Looked(pause) => tokio::time::sleep(*pause).await,
        }
    }
}

/// How an answer begins.
enum Start {
    /// It is all there.
    Whole(Box<Response>),
    /// Some of it is there, or nothing yet.
    Part(Option<Taken>),
}

/// Reads the batch on one thread, which also writes the answer if it is done soon.
async fn at_once(
    service: &Service,
    batch: &Arc<ReadBatch>,
    coding: Option<Coding>,
    short: bool,
) -> Result<Start, Failure> {
    let (send, mut written) = oneshot::channel();
    let claimed = Arc::new(AtomicBool::new(false));
    let (reading, claim) = (Arc::clone(batch), Arc::clone(&claimed));
    let work = move || {
        reading.work();
        // Only one of the two takes what is ready: this thread, or the stream.
        if reading.is_read() && !claim.swap(true, Ordering::AcqRel) {
            let _ = send.send(write_all(reading.take(), coding));
        }
    };
    let long = service.hops().takes_long();
    let watched = if short {
        service.hops().short(work)
    } else {
        hop::long(work);
        false
    };
    let soon = if watched {
        tokio::select! {
            biased;
            written = &mut written => Some(written),
            () = long => None,
        }
    } else {
        tokio::time::timeout(TICK, &mut written).await.ok()
    };
    let written = match soon {
        Some(written) => written,
        None if !claimed.swap(true, Ordering::AcqRel) => return Ok(Start::Part(None)),
        None => written.await,
    };
    // A thread that did not write leaves it to the stream.
    written.unwrap_or(Ok(Start::Part(None)))
}

fn write_all(taken: Taken, coding: Option<Coding>) -> Result<Start, Failure> {
    if !taken.done || taken.outcomes.iter().any(|outcome| matches!(outcome, Outcome::Stored(..))) {
        return Ok(Start::Part(Some(taken)));
    }
    let mut parts = parts(&taken.outcomes, coding)?;
    let coding = coding_of(&taken.outcomes, coding);
    let body = parts
        .write(&mut taken.outcomes.into())
        .and_then(|_| parts.finish())
        .and_then(|()| parts.take())
        .map_err(|_| Failure::internal())?;
    let (contexts, failed) = parts.counts();
    let facts = Facts { items: Some(contexts), failed: Some(failed), ..Facts::default() };
    let left = body.iter().map(|bytes| bytes.len() as u64).sum();
    respond(Body::new(Pieces { pieces: body.into(), left }), &parts, coding, facts)
        .map(|answer| Start::Whole(Box::new(answer)))
}

fn parts(outcomes: &[Outcome], coding: Option<Coding>) -> Result<Parts, Failure> {
    Parts::new(coding_of(outcomes, coding)).map_err(|_| Failure::internal())
}

/// The first outcome decides: what is compressed already gains nothing.
fn coding_of(outcomes: &[Outcome], coding: Option<Coding>) -> Option<Coding> {
    coding.filter(|_| !is_binary(outcomes.first()))
}

fn respond(body: Body, parts: &Parts, coding: Option<Coding>, facts: Facts) -> Result<Response, Failure> {
    let mut response = Response::new(body);
    let content_type = HeaderValue::try_from(parts.content_type()).map_err(|_| Failure::internal())?;
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    if let Some(coding) = coding {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
    }
    response.extensions_mut().insert(facts);
    Ok(response)
}

/// A batch under way, and the caller that it is sent to.
struct Driver {
    batch: Arc<ReadBatch>,
    progress: Progress,
    deadline: Instant,
    send: mpsc::Sender<Bytes>,
    /// For the log.
    counts: Counts,
}

impl Driver {
    /// Sends outcomes until the last; `None` when the answer broke off.
    async fn send_all(&self, mut parts: Parts, mut taken: Taken) -> Option<()> {
        loop {
            let done = taken.done;
            let mut outcomes = VecDeque::from(taken.outcomes);
            loop {
                let (open, ready);
                (parts, outcomes, open, ready) = blocking(move || {
                    let open = parts.write(&mut outcomes)?;
                    if done && open.is_none() {
                        parts.finish()?;
                    }
                    let ready = parts.take()?;
                    Ok((parts, outcomes, open, ready))
                })
                .await?;
                self.counts.set(parts.counts());
                self.send(ready).await?;
                let Some(open) = open else { break };
                parts = self.send_stored(parts, open).await?;
            }
            if done {
                return Some(());
            }
            taken = self.next().await?;
        }
    }

    /// Sends a file from the disk.
    async fn send_stored(&self, mut parts: Parts, open: Open) -> Option<Parts> {
        let open = Arc::new(open);
        let mut at = 0;
        loop {
            let (stored, cancel) = (Arc::clone(&open), self.batch.cancel().clone());
            let (ready, read);
            (parts, ready, read) = blocking(move || {
                // Once begun it is sent to its end: the deadline is for what is not read yet.
                let piece = stored.stored.read(at, PIECE_BYTES, &cancel.without_deadline());
                let piece = piece.map_err(|_| io::Error::other("the file cannot be read on"))?;
                let read = piece.len() as u64;
                if read == 0 {
                    parts.close(&stored, stored.stored.moved())?;
                } else {
                    parts.raw(piece)?;
                }
                let ready = parts.take()?;
                Ok((parts, ready, read))
            })
            .await?;
            self.send(ready).await?;
            if read == 0 {
                return Some(parts);
            }
            at += read;
        }
    }

    /// What is ready next; `None` when the caller is gone.
    async fn next(&self) -> Option<Taken> {
        let mut tick = Instant::now() + TICK;
        loop {
            let taken = self.batch.take_up_to(TAKEN_BYTES);
            if taken.done || !taken.outcomes.is_empty() {
                return Some(taken);
            }
            tokio::select! {
                () = self.progress.made() => {}
                () = self.send.closed() => return None,
                () = tokio::time::sleep_until(self.deadline.min(tick)) => {
                    self.tick();
                    tick = Instant::now() + TICK;
                }
            }
        }
    }

    fn tick(&self) {
        if Instant::now() >= self.deadline {
            self.batch.expire();
        } else if self.batch.wants_help() {
            let batch = Arc::clone(&self.batch);
            hop::long(move || batch.work());
        }
    }

    /// Sends bytes as the caller takes them; `None` when it is gone or takes nothing any more.
    async fn send(&self, ready: Vec<Bytes>) -> Option<()> {
        for bytes in ready {
            let given_up = Instant::now() + STALLED_FOR;
            let mut expires = self.deadline;
            let slot = loop {
                tokio::select! {
                    slot = self.send.reserve() => break slot.ok()?,
                    () = tokio::time::sleep_until(expires) => {
                        self.batch.expire();
                        expires = given_up;
                    }
                }
                if Instant::now() >= given_up {
                    return None;
                }
            };
            slot.send(bytes);
        }
        Some(())
    }
}

/// Runs `work` where it may block; `None` when it failed, which ends the answer without its last record.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()?.ok()
}

/// The body of an answer that is sent as it comes. Dropped, it ends the batch.
struct Received {
    receive: mpsc::Receiver<Bytes>,
    /// Whether the last record was sent: without it the connection breaks off, so that nobody takes a part for all.
    complete: Arc<AtomicBool>,
    _ends: CancelOnDrop,
}

impl http_body::Body for Received {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match ready!(self.receive.poll_recv(cx)) {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            None if self.complete.load(Ordering::Acquire) => Poll::Ready(None),
            None => Poll::Ready(Some(Err(io::Error::other("the answer broke off")))),
        }
    }
}

/// The body of an answer that is there.
struct Pieces {
    pieces: VecDeque<Bytes>,
    left: u64,
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let Some(bytes) = self.pieces.pop_front() else { return Poll::Ready(None) };
        self.left -= bytes.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
