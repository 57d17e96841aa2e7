//! A batch under way. Any number of threads may work on it; outcomes are settled in request order, so the answer does
//! not depend on how many there are. A file that hangs (a dead network mount) holds up one thread, not the others, and
//! fails when the time is up.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::Outcome;
use super::file::{failed_unread, fetch};
use super::plan::{Delivery, Plan};
use super::settle::Fetched;
use crate::buffers::Reservation;
use crate::{Cancel, Error, Files};

/// How long a file may be in work before another thread takes the files behind it.
pub(super) const STALLED: Duration = Duration::from_millis(20);
/// The most threads that one batch takes.
const THREADS: usize = 8;
/// How long the files' sizes are waited for: on a dead mount they never come.
const SIZES_WITHIN: Duration = Duration::from_millis(100);
/// The most bytes of outcomes that wait for an earlier file, or for the caller to take them.
const WAITING_BYTES: u64 = 64 << 20;

/// A batch under way; see the module.
pub struct ReadBatch {
    files: Arc<Files>,
    plan: Plan,
    delivery: Delivery,
    pub(super) next: AtomicUsize,
    threads: AtomicUsize,
    state: Mutex<State>,
    moved: Condvar,
    progress: OnceLock<Box<dyn Fn() + Send + Sync>>,
    reserved: OnceLock<Result<(), Error>>,
    reservation: Mutex<Option<Reservation>>,
}

/// What is ready.
#[derive(Debug)]
pub struct Taken {
    /// Outcomes that were not taken before, in request order.
    pub outcomes: Vec<Outcome>,
    /// Whether these are the last.
    pub done: bool,
}

struct State {
    slots: Vec<Slot>,
    /// Files before this one are settled.
    settled: usize,
    /// What is left of the batch's bytes.
    rest: u64,
    /// Bytes that were read and not taken yet.
    waiting: u64,
    /// Bytes that were taken.
    taken: u64,
    ready: VecDeque<Outcome>,
    /// The part of these that is ready.
    ready_bytes: u64,
}

enum Slot {
    Untouched,
    InWork(Instant),
    Read(Fetched),
    Settled,
}

impl ReadBatch {
    pub(super) fn new(files: Arc<Files>, plan: Plan, delivery: Delivery) -> Self {
        let slots = plan.request.files.iter().map(|_| Slot::Untouched).collect();
        let rest = plan.batch.bytes;
        Self {
            files,
            plan,
            delivery,
            next: AtomicUsize::new(0),
            threads: AtomicUsize::new(0),
            state: Mutex::new(State {
                slots,
                settled: 0,
                rest,
                waiting: 0,
                taken: 0,
                ready: VecDeque::new(),
                ready_bytes: 0,
            }),
            moved: Condvar::new(),
            progress: OnceLock::new(),
            reserved: OnceLock::new(),
            reservation: Mutex::new(None),
        }
    }

    /// The batch's deadline and cancellation.
    pub fn cancel(&self) -> &Cancel {
        &self.plan.cancel
    }

    /// Calls `wake` whenever [`take`](Self::take) may have something new: for one document only at the end. One caller.
    pub fn on_progress(&self, wake: Box<dyn Fn() + Send + Sync>) {
        let _only_the_first = self.progress.set(wake);
    }

    /// Works on the batch until no file is left to begin. Blocks; any number of threads may call it at once.
    pub fn work(self: &Arc<Self>) {
        self.work_and(|| ());
    }

    /// The same, and calls `settled` on this thread whenever [`take`](Self::take) may have something new.
    pub fn work_and(self: &Arc<Self>, settled: impl Fn()) {
        self.threads.fetch_add(1, Ordering::Relaxed);
        let mut block = Vec::new();
        if let Err(error) = self.reserved.get_or_init(|| self.reserve()) {
            self.fail_rest(error);
            settled();
        }
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.plan.request.files.len() || !self.begin(index) {
                break;
            }
            let fetched =
                catch_unwind(AssertUnwindSafe(|| fetch(&self.files, &self.plan, index, &mut block)))
                    .unwrap_or_else(|_| failed_unread(&self.files, &self.plan, index, &Error::Internal));
            if self.put(index, fetched) {
                settled();
            }
        }
        self.threads.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether one more thread should work: files wait, and those in work take long.
    pub fn wants_help(&self) -> bool {
        let begun = self.next.load(Ordering::Relaxed);
        if begun >= self.plan.request.files.len() || self.threads.load(Ordering::Relaxed) >= THREADS {
            return false;
        }
        let stalled = |slot: &Slot| matches!(slot, Slot::InWork(since) if since.elapsed() >= STALLED);
        let idle_cores = self.threads.load(Ordering::Relaxed) < self.files.cores();
        idle_cores || self.state.lock().slots.iter().any(stalled)
    }

    /// What is ready and was not taken before.
    pub fn take(&self) -> Taken {
        self.take_up_to(u64::MAX)
    }

    /// The same, but after the first outcome only what fits into `bytes`: the rest goes on waiting, within its bounds.
    pub fn take_up_to(&self, bytes: u64) -> Taken {
        let mut state = self.state.lock();
        let mut outcomes = Vec::new();
        let mut taken: u64 = 0;
        while let Some(next) = state.ready.front().map(Outcome::held) {
            if !outcomes.is_empty() && taken.saturating_add(next) > bytes {
                break;
            }
            taken = taken.saturating_add(next);
            outcomes.extend(state.ready.pop_front());
        }
        state.waiting -= taken;
        state.taken += taken;
        state.ready_bytes -= taken;
        let done = state.settled == state.slots.len() && state.ready.is_empty();
        drop(state);
        self.moved.notify_all();
        Taken { outcomes, done }
    }

    /// Whether an outcome of every file is there.
    pub fn is_read(&self) -> bool {
        let state = self.state.lock();
        state.settled == state.slots.len()
    }

    /// Whether work on it never waits until outcomes are taken: all that its limits allow may wait.
    pub fn never_waits(&self) -> bool {
        self.plan.batch.bytes <= WAITING_BYTES
    }

    /// The time is up: what is not read now fails.
    pub fn expire(&self) {
        self.fail_rest(&Error::DeadlineExceeded);
    }

    /// Reads all of it on threads of its own and waits for the end, or for the deadline. `watch` is told how many files
    /// are settled.
    pub fn drive(self: &Arc<Self>, watch: &dyn Fn(u64)) -> Vec<Outcome> {
        let help = || {
            let batch = Arc::clone(self);
            // Without a thread to be had the batch still ends, by its deadline.
            let _ = std::thread::Builder::new().name("filectx-read".into()).spawn(move || batch.work());
        };
        help();
        let mut state = self.state.lock();
        while state.settled < state.slots.len() {
            watch(state.settled as u64);
            let left = self.plan.cancel.deadline().saturating_duration_since(Instant::now());
            let waited = self.moved.wait_for(&mut state, left.min(STALLED));
            if waited.timed_out() {
                drop(state);
                if self.plan.cancel.check().is_err() {
                    self.expire();
                } else if self.wants_help() {
                    help();
                }
                state = self.state.lock();
            }
        }
        drop(state);
        self.take().outcomes
    }

    /// Reserves the most that the batch may hold in memory: what its limits allow when that is free, else what its
    /// files' sizes and limits allow, and waits for that. What it did not need goes back as soon as it is read.
    fn reserve(self: &Arc<Self>) -> Result<(), Error> {
        let count = self.plan.request.files.len() as u64;
        let by_limits = count.saturating_mul(self.plan.most_of_a_file()).min(self.most_waiting());
        let reservation = match self.files.buffers().try_reserve(by_limits) {
            Some(reservation) => reservation,
            None => {
                let bytes = self.by_sizes().min(by_limits);
                self.files.buffers().reserve(bytes, &self.plan.cancel)?
            }
        };
        *self.reservation.lock() = Some(reservation);
        Ok(())
    }

    /// The sum of the files' sizes within the limits. A file whose size does not come in time counts in full.
    fn by_sizes(self: &Arc<Self>) -> u64 {
        let (tell, told) = std::sync::mpsc::channel();
        let batch = Arc::clone(self);
        let looking = std::thread::Builder::new().name("filectx-sizes".into()).spawn(move || {
            let cwd = batch.plan.request.cwd.as_deref();
            for file in &batch.plan.request.files {
                let at =
                    batch.files.fences().locate(file.path.as_deref(), file.path_base64.as_deref(), cwd, "");
                let size = at.ok().and_then(|at| batch.files.fences().look(&at).ok()).map_or(0, |id| id.size);
                if tell.send(size.min(batch.plan.most_of_a_file())).is_err() {
                    return;
                }
            }
        });
        let end = Instant::now() + SIZES_WITHIN;
        let mut unknown = self.plan.request.files.len() as u64;
        let mut sum = 0;
        while looking.is_ok() && unknown > 0 {
            let Ok(size) = told.recv_timeout(end.saturating_duration_since(Instant::now())) else { break };
            (sum, unknown) = (sum + size, unknown - 1);
        }
        sum + unknown.saturating_mul(self.plan.most_of_a_file())
    }

    fn most_waiting(&self) -> u64 {
        self.plan.batch.bytes.min(WAITING_BYTES)
    }

    /// Marks a file as in work; false when nobody waits for it any more.
    pub(super) fn begin(&self, index: usize) -> bool {
        let mut state = self.state.lock();
        let most = self.most_waiting();
        // Whoever works on the first unsettled file waits for no other; only for a caller who takes outcomes as they come.
        let full = |state: &State| {
            let ahead = state.waiting > most && index > state.settled;
            ahead || (self.delivery == Delivery::Multipart && state.ready_bytes > most)
        };
        while full(&state) && matches!(state.slots[index], Slot::Untouched) {
            if self.plan.cancel.is_cancelled() {
                return false;
            }
            self.moved.wait_for(&mut state, STALLED);
        }
        if !matches!(state.slots[index], Slot::Untouched) || self.plan.cancel.is_cancelled() {
            return false;
        }
        state.slots[index] = Slot::InWork(Instant::now());
        true
    }

    /// Keeps what was read of a file; says whether anything became settled by it.
    fn put(&self, index: usize, fetched: Fetched) -> bool {
        let mut state = self.state.lock();
        // It came too late: the deadline has answered for it.
        if !matches!(state.slots[index], Slot::InWork(_)) {
            return false;
        }
        state.waiting += fetched.held();
        state.slots[index] = Slot::Read(fetched);
        let moved = self.settle(&mut state);
        self.tell(&state, moved);
        moved
    }

    fn fail_rest(&self, error: &Error) {
        let mut state = self.state.lock();
        for index in state.settled..state.slots.len() {
            if matches!(state.slots[index], Slot::Untouched | Slot::InWork(_)) {
                state.slots[index] = Slot::Read(failed_unread(&self.files, &self.plan, index, error));
            }
        }
        let moved = self.settle(&mut state);
        self.tell(&state, moved);
    }

    /// Settles what can be settled; says whether that was anything.
    fn settle(&self, state: &mut State) -> bool {
        let before = state.settled;
        while let Some(slot) = state.slots.get_mut(state.settled) {
            let fetched = match std::mem::replace(slot, Slot::Settled) {
                Slot::Read(fetched) => fetched,
                other => {
                    *slot = other;
                    break;
                }
            };
            let held = fetched.held();
            let outcomes = fetched.settle(&mut state.rest, self.plan.batch);
            let kept: u64 = outcomes.iter().map(Outcome::held).sum();
            // What the batch's budget cut off waits no more.
            state.waiting -= held.saturating_sub(kept);
            state.ready_bytes += kept;
            state.ready.extend(outcomes);
            state.settled += 1;
        }
        state.settled > before
    }

    fn tell(&self, state: &State, moved: bool) {
        let done = state.settled == state.slots.len();
        if !moved {
            return;
        }
        if done && let Some(held) = &mut *self.reservation.lock() {
            // A document holds what was taken until it is sent.
            let document = if self.delivery == Delivery::Json { state.taken } else { 0 };
            held.shrink(state.waiting + document);
        }
        self.moved.notify_all();
        if (done || self.delivery == Delivery::Multipart)
            && let Some(wake) = self.progress.get()
        {
            wake();
        }
    }
}

impl std::fmt::Debug for ReadBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadBatch").field("plan", &self.plan).finish_non_exhaustive()
    }
}
