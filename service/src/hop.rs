//! Where blocking work runs. A hop to a blocking thread costs more than reading a small file, so short work runs right
//! on the runtime's thread that asks - on few of them at once, and watched.
//!
//! A runtime thread that blocks is harmless while others go on, but none of these may be looking for new events: they
//! sleep until someone wakes them. So a watcher wakes one whenever work takes long. It sleeps while nothing runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::Thread;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::Notify;

/// After so long work is no longer short.
const LONG: Duration = Duration::from_millis(10);
/// So many looks in a row at nothing, and the watcher sleeps.
const PATIENCE: u32 = 50;

/// The runtime's threads that may block.
#[derive(Debug)]
pub(crate) struct Hops(Arc<Slots>);

#[derive(Debug)]
struct Slots {
    start: Instant,
    /// A slot for each thread that may block: when its work began, in microseconds after `start`; 0 = none.
    began: Box<[AtomicU64]>,
    watcher: OnceLock<Thread>,
    asleep: AtomicBool,
    /// Told while work takes long.
    long: Notify,
}

impl Hops {
    /// Lets at most `threads` of the runtime's threads block; it must have more than these.
    pub(crate) fn new(threads: usize) -> Self {
        let began = (0..threads).map(|_| AtomicU64::new(0)).collect();
        let start = Instant::now();
        let (watcher, asleep) = (OnceLock::new(), AtomicBool::new(false));
        Self(Arc::new(Slots { start, began, watcher, asleep, long: Notify::new() }))
    }

    /// Runs work that is likely to be short, and may block; says whether it runs so that [`takes_long`](Self::takes_long)
    /// knows of it.
    pub(crate) fn short(&self, work: impl FnOnce() + Send + 'static) -> bool {
        let Some(slot) = self.0.take() else {
            long(work);
            return false;
        };
        if self.0.asleep.load(Ordering::Relaxed) || self.0.watcher.get().is_none() {
            self.watch();
        }
        let slots = Arc::clone(&self.0);
        // A task of its own: whoever waits for the work goes on being polled, for its deadline and its caller.
        tokio::spawn(async move {
            let _free = Free(&slots.began[slot]);
            work();
        });
        true
    }

    /// Ready when some short work turns out to take long. It spares every short request a timer.
    pub(crate) fn takes_long(&self) -> impl Future<Output = ()> + '_ {
        self.0.long.notified()
    }

    fn watch(&self) {
        let watcher = self.0.watcher.get_or_init(|| {
            let (slots, runtime) = (Arc::downgrade(&self.0), Handle::current());
            let thread = std::thread::Builder::new().name("filectxd-watch".into());
            let spawned = thread.spawn(move || watch(&slots, &runtime));
            // Without it long work delays others, nothing worse; the system is out of threads then anyway.
            spawned.map_or_else(|_| std::thread::current(), |thread| thread.thread().clone())
        });
        self.0.asleep.store(false, Ordering::Relaxed);
        watcher.unpark();
    }
}

/// Runs work that may take long, and may block.
pub(crate) fn long(work: impl FnOnce() + Send + 'static) {
    tokio::task::spawn_blocking(work);
}

impl Drop for Hops {
    fn drop(&mut self) {
        if let Some(watcher) = self.0.watcher.get() {
            watcher.unpark();
        }
    }
}

impl Slots {
    fn take(&self) -> Option<usize> {
        let now = (self.start.elapsed().as_micros() as u64).max(1);
        self.began.iter().position(|slot| {
            slot.load(Ordering::Relaxed) == 0
                && slot.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        })
    }

    /// For how long the longest work has run; `None` where nothing runs.
    fn longest(&self) -> Option<Duration> {
        let first =
            self.began.iter().map(|slot| slot.load(Ordering::Relaxed)).filter(|began| *began > 0).min()?;
        Some(self.start.elapsed().saturating_sub(Duration::from_micros(first)))
    }
}

/// Frees its slot, also when the work panics.
struct Free<'a>(&'a AtomicU64);

impl Drop for Free<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

fn watch(slots: &Weak<Slots>, runtime: &Handle) {
    let mut idle = 0;
    loop {
        std::thread::park_timeout(LONG);
        let Some(slots) = slots.upgrade() else { return };
        match slots.longest() {
            Some(time) if time >= LONG => {
                slots.long.notify_waiters();
                // One task more wakes one thread more, which then looks for events.
                drop(runtime.spawn(async {}));
            }
            Some(_) => idle = 0,
            None => idle += 1,
        }
        if idle < PATIENCE {
            continue;
        }
        idle = 0;
        slots.asleep.store(true, Ordering::SeqCst);
        if slots.longest().is_none() && Arc::strong_count(&slots) > 1 {
            drop(slots);
            std::thread::park();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn runtime(threads: usize) -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build().unwrap()
    }

    #[test]
    fn work_that_hangs_holds_up_nobody() {
        use std::io::{Read, Write};
        let runtime = runtime(3);
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (release, hangs) = mpsc::channel::<()>();
        let hangs = Arc::new(std::sync::Mutex::new(hangs));
        // Each connection's first byte says what its work does; the answer comes from the task that waits for it.
        runtime.spawn(async move {
            let hops = Arc::new(Hops::new(2));
            while let Ok((mut stream, _)) = listener.accept().await {
                let (hops, hangs) = (Arc::clone(&hops), Arc::clone(&hangs));
                tokio::spawn(async move {
                    use tokio::io::{AsyncReadExt, AsyncWriteExt};
                    while let Ok(what) = stream.read_u8().await {
                        let (send, receive) = tokio::sync::oneshot::channel();
                        let hangs = Arc::clone(&hangs);
                        let _ = hops.short(move || {
                            if what == b'h' {
                                hangs.lock().map(|hangs| hangs.recv()).ok();
                            }
                            send.send(()).ok();
                        });
                        receive.await.unwrap();
                        stream.write_all(&[what]).await.unwrap();
                    }
                });
            }
        });
        let connect = || {
            let stream = std::net::TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            stream
        };
        let answer = |mut stream: &std::net::TcpStream| {
            let mut byte = [0];
            stream.read_exact(&mut byte).map(|()| byte[0])
        };
        let (hung, other) = ([connect(), connect()], connect());
        // Many rounds, as it depends on which of the runtime's threads slept where.
        for _ in 0..100 {
            for mut stream in &hung {
                stream.write_all(b"h").unwrap();
                (&other).write_all(b"s").unwrap();
                assert_eq!(answer(&other).unwrap(), b's');
            }
            hung.iter().for_each(|_| release.send(()).unwrap());
            for stream in &hung {
                assert_eq!(answer(stream).unwrap(), b'h');
            }
        }
    }

    #[test]
    fn a_slot_is_free_again_after_work_and_after_a_panic() {
        let runtime = runtime(2);
        runtime.block_on(async {
            let hops = Hops::new(1);
            let (send, receive) = tokio::sync::oneshot::channel::<()>();
            hops.short(move || {
                let _dropped_as_it_falls = send;
                std::panic::resume_unwind(Box::new("a bug"));
            });
            assert!(receive.await.is_err());
            while hops.0.longest().is_some() {
                tokio::task::yield_now().await;
            }
            assert_eq!(hops.0.take(), Some(0));
            assert_eq!(hops.0.take(), None);
        });
    }
}
