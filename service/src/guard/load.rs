//! How much is worked on at once, and how much may wait: what comes beyond is refused with `overloaded` before
//! anything of it was done.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use filectx_openapi::{Code, Limits};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::failure::Failure;

/// The bound. One for a service.
#[derive(Debug)]
pub(crate) struct Load {
    free: Arc<Semaphore>,
    waiting: AtomicU64,
    max_waiting: u64,
    longest_wait: Duration,
}

/// The right to work on one request, until it is dropped.
pub(crate) type Permit = OwnedSemaphorePermit;

impl Load {
    pub(crate) fn new(limits: &Limits) -> Self {
        let at_once = usize::try_from(limits.max_concurrent_requests).unwrap_or(usize::MAX);
        Self {
            free: Arc::new(Semaphore::new(at_once.clamp(1, Semaphore::MAX_PERMITS))),
            waiting: AtomicU64::new(0),
            max_waiting: limits.max_queued_requests,
            longest_wait: Duration::from_millis(limits.deadline_ms),
        }
    }

    /// Waits for a turn, in the order of arrival.
    pub(crate) async fn permit(&self) -> Result<Permit, Failure> {
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            return Ok(permit);
        }
        let place = Place::take(&self.waiting);
        if place.number >= self.max_waiting {
            return Err(self.overloaded());
        }
        match tokio::time::timeout(self.longest_wait, Arc::clone(&self.free).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(self.overloaded()),
        }
    }

    fn overloaded(&self) -> Failure {
        Failure::new(
            Code::Overloaded,
            format!(
                "as many requests as the service takes at once are running, and {} (max_queued_requests) wait; \
                 nothing was done, try again",
                self.max_waiting
            ),
        )
    }
}

/// One place in the queue, given back when the wait ends, however it ends.
struct Place<'a> {
    waiting: &'a AtomicU64,
    number: u64,
}

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicU64) -> Self {
        Self { waiting, number: waiting.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn load(at_once: u64, queued: u64) -> Load {
        Load::new(&Limits {
            max_concurrent_requests: at_once,
            max_queued_requests: queued,
            ..Limits::default()
        })
    }

    #[tokio::test]
    async fn what_neither_runs_nor_waits_is_refused() {
        let load = load(1, 1);
        let first = load.permit().await.unwrap();
        let mut second = Box::pin(load.permit());
        assert!(second.as_mut().now_or_never().is_none());
        let refused = load.permit().await.unwrap_err();
        assert_eq!(refused.0.code, Code::Overloaded);
        drop(first);
        assert!(second.await.is_ok());
        assert!(load.permit().await.is_ok());
    }

    #[tokio::test]
    async fn a_caller_that_leaves_the_queue_frees_its_place() {
        let load = load(1, 1);
        let _first = load.permit().await.unwrap();
        for _ in 0..3 {
            let mut waiting = Box::pin(load.permit());
            assert!(waiting.as_mut().now_or_never().is_none());
        }
    }
}
