//! What all decodes together may use: memory and threads. A bomb waits or fails; bombs in parallel do not add up.
//!
//! The threads are the pool's own. An allocator keeps some of what a thread has freed for that thread; decodes on all the
//! threads that read would have it keep that many times over.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::Duration;

use filectx_openapi::Limits;

use crate::{Cancel, Error};

/// The memory and the threads of all decodes of a process, and the memory of the files that are decoded.
#[derive(Debug)]
pub struct ImagePool {
    decodes: Turns,
    files: Turns,
    threads: usize,
    /// To the threads, which end with it. `None` where there are none to be had.
    work: OnceLock<Option<mpsc::Sender<Job>>>,
}

type Job = Box<dyn FnOnce() + Send>;

/// Something that there is only so much of.
#[derive(Debug)]
struct Turns {
    memory: u64,
    free: Mutex<Free>,
    returned: Condvar,
}

#[derive(Debug)]
struct Free {
    memory: u64,
    threads: usize,
    /// Tickets: whoever came first is served first, so that a large image is not starved by small ones.
    next_ticket: u64,
    waiting: VecDeque<u64>,
}

/// A share of the pool, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Share<'a> {
    turns: &'a Turns,
    memory: u64,
}

/// How often a waiting decode looks whether its caller is still there.
const LOOK: Duration = Duration::from_millis(50);

impl ImagePool {
    /// The pool for an engine with these limits and processors. Six bytes for each pixel of the largest source hold an
    /// 8-bit image twice over, or its coefficients; twice the largest file waits or is being decoded.
    pub fn new(limits: &Limits, threads: usize) -> Self {
        let memory = limits.max_image_source_pixels.saturating_mul(6).saturating_add(64 << 20);
        Self::of(memory, threads, limits.max_image_source_bytes.saturating_mul(2))
    }

    fn of(memory: u64, threads: usize, files: u64) -> Self {
        let threads = threads.max(1);
        let (decodes, files) = (Turns::new(memory, threads), Turns::new(files, usize::MAX));
        Self { decodes, files, threads, work: OnceLock::new() }
    }

    /// Runs `work` on a thread of the pool and waits for it; `None` when it panicked. The caller holds a share of the
    /// decodes, so a thread is free.
    pub(super) fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let caught = || catch_unwind(AssertUnwindSafe(work)).ok();
        let Some(threads) = self.work.get_or_init(|| start(self.threads)) else { return caught() };
        let (tell, told) = mpsc::channel();
        let job = Box::new(move || {
            // Whoever asked waits for it.
            let _ = tell.send(caught());
        });
        threads.send(job).ok()?;
        told.recv().ok()?
    }

    /// Takes `size` bytes for an image's file, waiting for them in turn.
    pub(crate) fn admit(&self, size: u64, cancel: &Cancel) -> Result<Share<'_>, Error> {
        self.files.take(size, cancel)
    }

    /// Takes a thread and `memory` bytes for a decode, waiting for them in turn. The caller has compared with the
    /// capacity. Whoever holds these waits for nothing else.
    pub(super) fn take(&self, memory: u64, cancel: &Cancel) -> Result<Share<'_>, Error> {
        self.decodes.take(memory, cancel)
    }

    /// All the memory for decodes there is, taken or not.
    pub(super) fn capacity(&self) -> u64 {
        self.decodes.memory
    }
}

/// Starts threads that work until the sender is dropped.
fn start(threads: usize) -> Option<mpsc::Sender<Job>> {
    let (send, receive) = mpsc::channel::<Job>();
    let receive = Arc::new(Mutex::new(receive));
    let one = || {
        let receive = Arc::clone(&receive);
        let work = move || {
            loop {
                let job = receive.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok(job) = job else { return };
                job();
            }
        };
        std::thread::Builder::new().name("filectx-image".into()).spawn(work).is_ok()
    };
    // Fewer than wished for serve in turn.
    let started = (0..threads).filter(|_| one()).count();
    (started > 0).then_some(send)
}

impl Turns {
    fn new(memory: u64, threads: usize) -> Self {
        let free = Free { memory, threads, next_ticket: 0, waiting: VecDeque::new() };
        Self { memory, free: Mutex::new(free), returned: Condvar::new() }
    }

    fn take(&self, memory: u64, cancel: &Cancel) -> Result<Share<'_>, Error> {
        let memory = memory.min(self.memory);
        let mut free = self.lock();
        let ticket = free.next_ticket;
        free.next_ticket += 1;
        free.waiting.push_back(ticket);
        loop {
            if let Err(error) = cancel.check() {
                free.waiting.retain(|other| *other != ticket);
                self.returned.notify_all();
                return Err(error);
            }
            if free.waiting.front() == Some(&ticket) && free.threads > 0 && free.memory >= memory {
                free.waiting.pop_front();
                free.threads -= 1;
                free.memory -= memory;
                self.returned.notify_all();
                return Ok(Share { turns: self, memory });
            }
            free = self.returned.wait_timeout(free, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Free> {
        // Nothing panics while it is held; the numbers are right even if something did.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        let mut free = self.turns.lock();
        free.threads += 1;
        free.memory += self.memory;
        drop(free);
        self.turns.returned.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn shares_never_exceed_the_pool() {
        let pool = Turns::new(100, 3);
        let cancel = Cancel::after(Duration::from_secs(60));
        let (now, most) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for index in 0..8u64 {
                let (pool, cancel, now, most) = (&pool, &cancel, &now, &most);
                scope.spawn(move || {
                    for step in 0..50 {
                        let memory = 10 + (index * 13 + step * 7) % 80;
                        let share = pool.take(memory, cancel);
                        let taken = now.fetch_add(memory, Ordering::SeqCst) + memory;
                        most.fetch_max(taken, Ordering::SeqCst);
                        std::thread::yield_now();
                        now.fetch_sub(memory, Ordering::SeqCst);
                        drop(share);
                    }
                });
            }
        });
        assert!(most.load(Ordering::SeqCst) <= 100);
        assert_eq!(pool.lock().memory, 100);
        assert_eq!(pool.lock().threads, 3);
    }

    #[test]
    fn a_panic_costs_its_own_work_alone() {
        let pool = ImagePool::of(100, 2, 100);
        for _ in 0..5 {
            assert_eq!(pool.run(|| -> u8 { panic!("as a decoder may") }), None);
        }
        assert_eq!(pool.run(|| 7), Some(7));
    }

    #[test]
    fn who_waits_too_long_is_told() {
        let pool = Turns::new(100, 2);
        let share = pool.take(80, &Cancel::after(Duration::from_secs(60)));
        assert!(share.is_ok());
        assert_eq!(pool.take(30, &Cancel::after(Duration::ZERO)).map(drop), Err(Error::DeadlineExceeded));
        assert!(pool.take(20, &Cancel::after(Duration::from_secs(60))).is_ok());
    }

    #[test]
    fn who_gives_up_lets_the_next_one_pass() {
        let pool = Turns::new(100, 2);
        let long = Cancel::after(Duration::from_secs(60));
        let _held = pool.take(80, &long);
        std::thread::scope(|scope| {
            let gone = Cancel::after(Duration::from_secs(60));
            let (pool, other) = (&pool, gone.clone());
            let first = scope.spawn(move || pool.take(90, &other).map(drop));
            while pool.lock().waiting.is_empty() {
                std::thread::yield_now();
            }
            let second = scope.spawn({
                let long = long.clone();
                move || pool.take(10, &long).map(drop)
            });
            gone.cancel();
            assert_eq!(first.join().unwrap(), Err(Error::Cancelled));
            assert_eq!(second.join().unwrap(), Ok(()));
        });
    }
}
