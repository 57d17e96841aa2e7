//! Time limits, behind one seam: the only place of the library that knows whose clock it is.

use std::future::Future;
use std::time::Duration;

#[cfg(not(target_family = "wasm"))]
pub(crate) use std::time::Instant;
#[cfg(target_family = "wasm")]
pub(crate) use web_time::Instant;

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
#[cfg(not(target_family = "wasm"))]
pub(crate) async fn until<F: Future>(end: Instant, work: F) -> Option<F::Output> {
    tokio::time::timeout_at(end.into(), work).await.ok()
}

/// The same by the timers of JavaScript.
#[cfg(target_family = "wasm")]
pub(crate) async fn until<F: Future>(end: Instant, work: F) -> Option<F::Output> {
    let (mut work, left) = (std::pin::pin!(work), end.saturating_duration_since(Instant::now()));
    // Rounded up: who looks at the clock then must not find the end still ahead.
    let millis = u32::try_from(left.as_millis()).unwrap_or(u32::MAX).saturating_add(1);
    let mut end = gloo_timers::future::TimeoutFuture::new(millis);
    std::future::poll_fn(|cx| match work.as_mut().poll(cx) {
        std::task::Poll::Ready(done) => std::task::Poll::Ready(Some(done)),
        std::task::Poll::Pending => std::pin::Pin::new(&mut end).poll(cx).map(|()| None),
    })
    .await
}
