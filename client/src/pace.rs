//! How far a call is: when the connection last took a piece of the request, and how long may pass from there.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::error::Phase;
use crate::time::Instant;

/// When the connection last took something, and whether that was the end.
#[derive(Debug)]
pub(crate) struct Pace(Mutex<(Instant, bool)>);

impl Pace {
    /// A request whose sending begins now; without a body it is sent at once.
    pub(crate) fn new(sent: bool) -> Self {
        Self(Mutex::new((Instant::now(), sent)))
    }

    /// A piece was taken; `sent`: the last one.
    pub(crate) fn step(&self, sent: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (Instant::now(), sent);
    }

    /// The phase, how long it may last, and when that is over.
    pub(crate) fn limit(&self, silence: Duration, answer: Duration) -> (Phase, Duration, Instant) {
        let (last, sent) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (phase, after) = if sent { (Phase::Answer, answer) } else { (Phase::Send, silence) };
        (phase, after, last + after)
    }
}
