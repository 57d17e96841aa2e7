//! Time limits, behind one seam: the only place of the library that knows whose clock it is.

use std::future::Future;
use std::time::{Duration, Instant};

/// How long a call may take in each of its phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimits {
    /// Until a connection is there and has proved that it leads to the service.
    pub connect: Duration,
    /// Until an answer begins, on top of the request's own deadline.
    pub answer_grace: Duration,
    /// Silence while a request is sent or an answer received. Neither has a limit on the whole.
    pub silence: Duration,
}

impl Default for TimeLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            answer_grace: Duration::from_secs(5),
            silence: Duration::from_secs(30),
        }
    }
}

/// What `work` comes to, or `None` when it is not done by `end`.
pub(crate) async fn until<F: Future>(end: Instant, work: F) -> Option<F::Output> {
    tokio::time::timeout_at(end.into(), work).await.ok()
}
