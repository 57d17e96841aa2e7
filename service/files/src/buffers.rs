//! A bound on the bytes of files that all requests together hold in memory: a batch reserves the most that it may
//! hold before it reads, and waits while others hold too much.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::{Cancel, Error};

/// How often a waiting batch asks whether its caller is still there.
const PATIENCE: Duration = Duration::from_millis(50);

/// The bytes that may be held, and those that are.
#[derive(Debug)]
pub struct Buffers {
    most: u64,
    held: Mutex<u64>,
    freed: Condvar,
}

/// A part of the bytes, given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    buffers: Arc<Buffers>,
    bytes: u64,
}

impl Buffers {
    /// At most `most` bytes.
    pub fn new(most: u64) -> Arc<Self> {
        Arc::new(Self { most, held: Mutex::new(0), freed: Condvar::new() })
    }

    /// Takes `bytes`, if they may be held now.
    pub fn try_reserve(self: &Arc<Self>, bytes: u64) -> Option<Reservation> {
        let mut held = self.held.lock();
        let fits = bytes <= self.most.saturating_sub(*held);
        *held += if fits { bytes } else { 0 };
        fits.then(|| Reservation { buffers: Arc::clone(self), bytes })
    }

    /// Waits until `bytes` may be held. What is more than all there is waits for all there is.
    pub fn reserve(self: &Arc<Self>, bytes: u64, cancel: &Cancel) -> Result<Reservation, Error> {
        let bytes = bytes.min(self.most);
        let mut held = self.held.lock();
        while *held + bytes > self.most {
            cancel.check()?;
            self.freed.wait_for(&mut held, PATIENCE);
        }
        *held += bytes;
        Ok(Reservation { buffers: Arc::clone(self), bytes })
    }
}

impl Reservation {
    /// Gives back what is more than `bytes`.
    pub fn shrink(&mut self, bytes: u64) {
        let spare = self.bytes.saturating_sub(bytes);
        self.bytes -= spare;
        *self.buffers.held.lock() -= spare;
        self.buffers.freed.notify_all();
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        *self.buffers.held.lock() -= self.bytes;
        self.buffers.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_serves_the_next() {
        let buffers = Buffers::new(10);
        let cancel = Cancel::after(Duration::from_secs(60));
        let first = buffers.reserve(7, &cancel).unwrap();
        let second = std::thread::spawn({
            let (buffers, cancel) = (Arc::clone(&buffers), cancel.clone());
            move || buffers.reserve(5, &cancel).map(|reservation| reservation.bytes)
        });
        drop(first);
        assert_eq!(second.join().unwrap(), Ok(5));
        assert_eq!(buffers.reserve(99, &cancel).unwrap().bytes, 10);
    }

    #[test]
    fn what_is_not_needed_is_given_back() {
        let buffers = Buffers::new(10);
        let mut first = buffers.try_reserve(8).unwrap();
        assert!(buffers.try_reserve(5).is_none());
        first.shrink(5);
        first.shrink(7);
        let second = buffers.try_reserve(5).unwrap();
        drop((first, second));
        assert!(buffers.try_reserve(10).is_some());
    }

    #[test]
    fn waiting_ends_with_the_caller() {
        let buffers = Buffers::new(10);
        let cancel = Cancel::after(Duration::from_secs(60));
        let _all = buffers.reserve(10, &cancel).unwrap();
        cancel.cancel();
        assert_eq!(buffers.reserve(1, &cancel).err(), Some(Error::Cancelled));
        let late = Cancel::after(Duration::ZERO);
        assert_eq!(buffers.reserve(1, &late).err(), Some(Error::DeadlineExceeded));
    }
}
