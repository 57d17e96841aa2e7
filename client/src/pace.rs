//! How far the sending of a request is: its body goes out in pieces, and each piece that the connection takes is a
//! sign of life.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::error::Phase;

const PIECE_BYTES: usize = 64 << 10;

/// When the connection last took something, and whether that was the end.
#[derive(Debug)]
pub(crate) struct Pace(Mutex<(Instant, bool)>);

impl Pace {
    /// A request whose sending begins now; without a body it is sent at once.
    pub(crate) fn new(sent: bool) -> Self {
        Self(Mutex::new((Instant::now(), sent)))
    }

    fn step(&self, sent: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (Instant::now(), sent);
    }

    /// The phase, how long it may last, and when that is over.
    pub(crate) fn limit(&self, silence: Duration, answer: Duration) -> (Phase, Duration, Instant) {
        let (last, sent) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (phase, after) = if sent { (Phase::Answer, answer) } else { (Phase::Send, silence) };
        (phase, after, last + after)
    }
}

/// A body that says how far it is.
#[derive(Debug)]
pub(crate) struct PacedBody {
    left: Bytes,
    pace: Arc<Pace>,
}

impl PacedBody {
    pub(crate) fn new(bytes: Bytes, pace: Arc<Pace>) -> Self {
        Self { left: bytes, pace }
    }
}

impl Body for PacedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left.is_empty() {
            return Poll::Ready(None);
        }
        let size = self.left.len().min(PIECE_BYTES);
        let piece = self.left.split_to(size);
        self.pace.step(self.left.is_empty());
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.len() as u64)
    }
}
