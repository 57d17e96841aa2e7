//! A future that is woken while it is polled is polled again at once, instead of going through the scheduler, which would
//! wake another thread for it. hyper wakes its own connection so whenever a handler asks for a body.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// So often in a row; then others have their turn.
const ROUNDS: usize = 8;

/// See the module.
#[derive(Debug)]
pub(crate) struct Again<F> {
    future: F,
    inner: Arc<Inner>,
    waker: Waker,
}

#[derive(Debug, Default)]
struct Inner {
    polling: AtomicBool,
    woken: AtomicBool,
    outer: AtomicWaker,
}

impl<F> Again<F> {
    pub(crate) fn new(future: F) -> Self {
        let inner = Arc::<Inner>::default();
        Self { future, waker: Waker::from(Arc::clone(&inner)), inner }
    }

    pub(crate) fn future(self: Pin<&mut Self>) -> Pin<&mut F>
    where
        F: Unpin,
    {
        Pin::new(&mut self.get_mut().future)
    }
}

impl Wake for Inner {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // The poll looks at `woken` after it said that it no longer polls: one of the two sees the other.
        self.woken.store(true, SeqCst);
        if !self.polling.load(SeqCst) {
            self.outer.wake();
        }
    }
}

impl<F: Future + Unpin> Future for Again<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        this.inner.outer.register(cx.waker());
        for _ in 0..ROUNDS {
            this.inner.woken.store(false, SeqCst);
            this.inner.polling.store(true, SeqCst);
            let polled = Pin::new(&mut this.future).poll(&mut Context::from_waker(&this.waker));
            this.inner.polling.store(false, SeqCst);
            if polled.is_ready() || !this.inner.woken.load(SeqCst) {
                return polled;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    /// A future that wakes itself so often before it is ready; the polls that its owner makes, and wakes that it hears.
    fn run(own_wakes: usize) -> (usize, usize) {
        let mut left = own_wakes;
        let mut future = Again::new(poll_fn(|cx| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        }));
        let heard = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&heard));
        let mut polls = 1;
        while Pin::new(&mut future).poll(&mut Context::from_waker(&waker)).is_pending() {
            polls += 1;
        }
        (polls, heard.0.load(SeqCst))
    }

    #[test]
    fn own_wakes_stay_inside_and_others_have_their_turn() {
        assert_eq!(run(0), (1, 0));
        assert_eq!(run(3), (1, 0));
        assert_eq!(run(ROUNDS), (2, 1));
    }

    #[test]
    fn a_wake_from_elsewhere_is_heard() {
        let mut polled = 0;
        let mut future = Again::new(poll_fn(|_| {
            polled += 1;
            if polled == 2 { Poll::Ready(()) } else { Poll::Pending }
        }));
        let heard = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&heard));
        assert!(Pin::new(&mut future).poll(&mut Context::from_waker(&waker)).is_pending());
        future.waker.wake_by_ref();
        assert_eq!(heard.0.load(SeqCst), 1);
        assert!(Pin::new(&mut future).poll(&mut Context::from_waker(&waker)).is_ready());
    }
}
