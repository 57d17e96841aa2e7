//! Bytes of a file that are not read into memory: a multipart answer takes them from the disk while it is sent.

use std::sync::Arc;

use crate::disk::source::Source;
use crate::{Cancel, Error};

/// From this size on, the bytes of a binary stay on the disk until they are sent.
pub(super) const STORED_BYTES: u64 = 8 << 20;
/// What one of them counts for among the bytes that wait in memory: the open files of a batch are bounded by it.
pub(super) const STORED_COST: u64 = 4 << 20;

/// A range of an open file. Clones share the file.
#[derive(Clone, Debug)]
pub struct Stored {
    source: Arc<Source>,
    start: u64,
    end: u64,
}

impl PartialEq for Stored {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.source, &other.source) && (self.start, self.end) == (other.start, other.end)
    }
}

impl Stored {
    pub(super) fn new(source: Arc<Source>, start: u64, end: u64) -> Self {
        Self { source, start, end: end.max(start) }
    }

    /// How many bytes there are, unless the file shrinks.
    #[allow(clippy::len_without_is_empty, reason = "it is made of large files only")]
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    /// At most `most` bytes, `at` bytes behind the start; none where the range, or the file, ends. Blocks.
    pub fn read(&self, at: u64, most: u64, cancel: &Cancel) -> Result<Vec<u8>, Error> {
        let from = self.start.saturating_add(at).min(self.end);
        self.source.read_range(from, from.saturating_add(most).min(self.end), cancel)
    }

    /// Whether the file's size or time moved since it was opened. Blocks.
    pub fn moved(&self) -> bool {
        self.source.changed()
    }

    /// Ends the range earlier.
    pub(super) fn truncate(&mut self, len: u64) {
        self.end = self.end.min(self.start.saturating_add(len));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use filectx_openapi::{
        ByteRange, Code, FileRequest, LimitName, Limits, ReadFileContextRequest, Truncation,
    };

    use crate::{Cancel, Delivery, FenceConfig, Files, Outcome};

    const LARGE: usize = (8 << 20) + 5;

    fn batch(bytes: &[u8], change: impl Fn(&mut ReadFileContextRequest)) -> Vec<Outcome> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("large");
        std::fs::write(&path, bytes).unwrap();
        let fences = FenceConfig { home: "/".into(), ..FenceConfig::default() };
        let files = Arc::new(Files::new(&fences, Limits::default()).unwrap());
        let file = FileRequest { path: Some(path.to_str().unwrap().to_owned()), ..FileRequest::default() };
        let mut request = ReadFileContextRequest {
            files: vec![file],
            max_file_bytes: Some(1 << 40),
            max_batch_bytes: Some(1 << 40),
            ..ReadFileContextRequest::default()
        };
        change(&mut request);
        let batch = files.read_batch(request, Delivery::Multipart).unwrap();
        batch.work();
        let taken = batch.take();
        assert!(taken.done);
        taken.outcomes
    }

    fn binary() -> Vec<u8> {
        (0..LARGE).map(|i| (i % 251) as u8).collect()
    }

    #[test]
    fn a_large_binary_stays_on_the_disk() {
        let bytes = binary();
        let outcomes = batch(&bytes, |_| ());
        let [Outcome::Stored(context, stored)] = &outcomes[..] else { panic!("{outcomes:?}") };
        assert_eq!((context.binary_content.as_ref(), stored.len()), (None, LARGE as u64));
        let cancel = Cancel::after(Duration::from_secs(60));
        let mut read = Vec::new();
        loop {
            let piece = stored.read(read.len() as u64, 1 << 20, &cancel).unwrap();
            if piece.is_empty() {
                break;
            }
            read.extend(piece);
        }
        assert!(read == bytes);
        assert!(!stored.moved());
    }

    #[test]
    fn a_range_of_it_is_cut_by_the_batch() {
        let outcomes = batch(&binary(), |request| {
            request.files[0].byte_range = Some(ByteRange { offset: 2, length: None });
            request.max_batch_bytes = Some(100);
        });
        let [Outcome::Stored(context, stored)] = &outcomes[..] else { panic!("{outcomes:?}") };
        let cut = Truncation { limit: LimitName::MaxBatchBytes, next_line: None, next_byte: Some(102) };
        assert_eq!((context.truncation, context.byte_range_end, stored.len()), (Some(cut), Some(102), 100));
        let whole = batch(&binary(), |request| request.max_batch_bytes = Some(100));
        let [Outcome::Failed(failed)] = &whole[..] else { panic!("{whole:?}") };
        assert_eq!(failed.error.code, Code::BatchBudgetExhausted);
    }

    #[test]
    fn a_large_text_is_cut_to_what_lies_in_memory() {
        let line = b"0123456789abcde\n".repeat(64);
        let outcomes = batch(&line.repeat((65 << 20) / line.len()), |_| ());
        let [Outcome::Context(context)] = &outcomes[..] else { panic!("{}", outcomes.len()) };
        assert_eq!(context.text_content.as_ref().map(String::len), Some(64 << 20));
        assert_eq!(context.truncation.map(|cut| cut.limit), Some(LimitName::MaxJsonFileBytes));
    }
}
