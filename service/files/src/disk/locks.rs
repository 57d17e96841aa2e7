//! Locks of single files: changes of one file through the service happen one after the other. A lock is known by the
//! directory entry that a change goes to and by the inode that is there, so that links, hard links and bind mounts meet.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::{Cancel, Error};

/// How long a waiter sleeps before it asks whether its caller is still there.
const ASK: Duration = Duration::from_millis(50);

/// What is locked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// A name in a directory (device and inode), whether something is there or not.
    Entry(u64, u64, Vec<u8>),
    /// A file, by device and inode.
    Inode(u64, u64),
}

/// The locks in force.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    held: Mutex<HashSet<Key>>,
    freed: Condvar,
    /// How many were freed so far.
    count: AtomicU64,
}

/// A held lock; dropping it frees it.
#[derive(Debug)]
pub(crate) struct Guard<'a> {
    locks: &'a Locks,
    key: Key,
}

impl Locks {
    /// How many changes ended so far: what was seen before it grew may be stale.
    pub(crate) fn ended(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Waits until nobody else holds `key`. Whoever needs two takes the entry before the inode.
    pub(crate) fn acquire(&self, key: Key, cancel: &Cancel) -> Result<Guard<'_>, Error> {
        let mut held = self.held();
        while held.contains(&key) {
            cancel.check()?;
            let left = cancel.deadline().saturating_duration_since(Instant::now());
            (held, _) = self.freed.wait_timeout(held, left.min(ASK)).unwrap_or_else(PoisonError::into_inner);
        }
        held.insert(key.clone());
        Ok(Guard { locks: self, key })
    }

    /// A panic while it is held leaves the set whole: each change of it is one call.
    fn held(&self) -> MutexGuard<'_, HashSet<Key>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.locks.count.fetch_add(1, Ordering::Release);
        self.locks.held().remove(&self.key);
        self.locks.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn one_holder_at_a_time() {
        let (locks, inside, most) = (Locks::default(), AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let cancel = Cancel::after(Duration::from_secs(60));
                        let _guard = locks.acquire(Key::Inode(1, 2), &cancel).unwrap();
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(most.into_inner(), 1);
        assert!(locks.held().is_empty());
    }

    #[test]
    fn other_keys_do_not_wait_and_a_deadline_ends_a_wait() {
        let locks = Locks::default();
        let cancel = Cancel::after(Duration::from_secs(60));
        let held = locks.acquire(Key::Entry(1, 2, b"a".to_vec()), &cancel).unwrap();
        drop(locks.acquire(Key::Entry(1, 2, b"b".to_vec()), &cancel).unwrap());
        let short = Cancel::after(Duration::from_millis(1));
        let refused = locks.acquire(Key::Entry(1, 2, b"a".to_vec()), &short);
        assert_eq!(refused.map(|_| ()).unwrap_err(), Error::DeadlineExceeded);
        assert_eq!(locks.ended(), 1);
        drop(held);
        assert!(locks.acquire(Key::Entry(1, 2, b"a".to_vec()), &cancel).is_ok());
    }
}
