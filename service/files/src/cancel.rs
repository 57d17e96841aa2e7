//! How work ends early: a caller that hung up, or a time that is up. Every loop of the engine asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::Error;

/// A request's right to go on. Clones share it.
#[derive(Clone, Debug)]
pub struct Cancel {
    cancelled: Arc<AtomicBool>,
    deadline: Instant,
}

impl Cancel {
    /// Work that may go on for `time` from now.
    pub fn after(time: Duration) -> Self {
        // A far future that `Instant` cannot hold becomes a day: no request lives longer.
        let now = Instant::now();
        let deadline = now.checked_add(time).unwrap_or(now + Duration::from_secs(86_400));
        Self { cancelled: Arc::new(AtomicBool::new(false)), deadline }
    }

    /// Ends the work: the caller is gone.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// The same right without an end in time: for what goes on as long as the caller is there.
    pub fn without_deadline(&self) -> Self {
        Self { deadline: Self::after(Duration::MAX).deadline, ..self.clone() }
    }

    /// When the time is up.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether the caller is gone.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Fails when the caller is gone or the time is up.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if Instant::now() >= self.deadline {
            return Err(Error::DeadlineExceeded);
        }
        Ok(())
    }
}

/// Cancels when it is dropped: held by a future, it ends the work when the future is dropped.
#[derive(Debug)]
pub struct CancelOnDrop(pub Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
