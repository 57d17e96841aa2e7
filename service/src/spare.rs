//! Buffers that serve again. A large answer needs megabytes that the system hands out page by page; a few buffers are kept
//! from answer to answer instead. Bounded: what there are too many of, or what is too large, goes back to the system.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// So many buffers are kept at most.
const MOST: usize = 2;
/// Buffers that can hold more than this are not kept: ten megabytes in base64, and the room that growing takes.
const LARGEST: usize = 24 << 20;

/// The buffers that are kept. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spare(Arc<Mutex<Vec<Vec<u8>>>>);

impl Spare {
    /// An empty buffer, which comes back here when it is dropped.
    pub(crate) fn take(&self) -> SpareBytes {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        SpareBytes { bytes, home: self.clone() }
    }
}

/// A buffer that goes back to where it came from.
#[derive(Debug)]
pub(crate) struct SpareBytes {
    bytes: Vec<u8>,
    home: Spare,
}

impl Drop for SpareBytes {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        let mut kept = self.home.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MOST && (1..=LARGEST).contains(&bytes.capacity()) {
            kept.push(bytes);
        }
    }
}

impl Deref for SpareBytes {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for SpareBytes {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

impl AsRef<[u8]> for SpareBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<SpareBytes> for Bytes {
    fn from(bytes: SpareBytes) -> Bytes {
        Bytes::from_owner(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_serves_again_when_its_answer_is_gone() {
        let spare = Spare::default();
        let mut bytes = spare.take();
        bytes.extend_from_slice(&[1; 1000]);
        let place = bytes.as_ptr();
        let sent = Bytes::from(bytes);
        assert_ne!(spare.take().as_ptr(), place);
        drop(sent);
        let again = spare.take();
        assert_eq!((again.as_ptr(), again.len()), (place, 0));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let spare = Spare::default();
        let all: Vec<SpareBytes> = (0..5)
            .map(|_| {
                let mut bytes = spare.take();
                bytes.reserve(100);
                bytes
            })
            .collect();
        drop(all);
        assert_eq!(spare.0.lock().unwrap().len(), MOST);
        spare.0.lock().unwrap().clear();
        spare.take().reserve(LARGEST + 1);
        assert!(spare.0.lock().unwrap().is_empty());
    }
}
