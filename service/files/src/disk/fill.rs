//! Content on its way into a temporary: in pieces, so that a large one needs no memory, within the limit.

use std::io::Read;

use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

use super::identity::Identity;
use super::pour::{CHUNK, read_at, write_all_at};
use crate::bytes::facts::Facts;
use crate::{Cancel, Error};

/// Writes all of `content` into the empty `file`; its facts.
pub(crate) fn fill(
    file: &OwnedFd,
    content: &mut dyn Read,
    limit: u64,
    cancel: &Cancel,
) -> Result<Facts, Error> {
    let mut facts = Facts::default();
    let mut buffer = vec![0; CHUNK];
    loop {
        cancel.check()?;
        let read = match content.read(&mut buffer) {
            Ok(0) => return Ok(facts),
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            // The sender is gone, or sends what cannot be read: it is not a whole content.
            Err(_) => return Err(Error::Cancelled),
        };
        if facts.length() + read as u64 > limit {
            return Err(Error::ContentTooLarge { limit });
        }
        write_all_at(file, &buffer[..read], facts.length())?;
        facts.add(&buffer[..read]);
    }
}

/// [`fill`] for a content in memory, which is within the limit.
pub(crate) fn fill_with(file: impl AsFd, content: &[u8], cancel: &Cancel) -> Result<(), Error> {
    let mut at = 0;
    for chunk in content.chunks(16 * CHUNK) {
        cancel.check()?;
        write_all_at(&file, chunk, at)?;
        at += chunk.len() as u64;
    }
    Ok(())
}

/// The facts of what a file holds, of its first `most` bytes.
pub(crate) fn facts_of(file: &OwnedFd, most: u64, cancel: &Cancel) -> Result<Facts, Error> {
    let mut facts = Facts::default();
    let mut buffer = vec![0; CHUNK];
    while facts.length() < most {
        cancel.check()?;
        let want = usize::try_from(most - facts.length()).unwrap_or(CHUNK).min(CHUNK);
        let read = read_at(file, &mut buffer[..want], facts.length())?;
        if read == 0 {
            break;
        }
        facts.add(&buffer[..read]);
    }
    Ok(facts)
}

/// The whole content of a file of at most `limit` bytes; and its identity afterwards, for who asks whether it moved.
pub(crate) fn content_of(file: &OwnedFd, limit: u64, cancel: &Cancel) -> Result<(Vec<u8>, Identity), Error> {
    let size = Identity::of(&rustix::fs::fstat(file)?).size;
    if size > limit {
        return Err(Error::TooLargeToWrite { size, limit });
    }
    // One more, to see the end; and where the size is told as 0, all there is.
    let mut content = vec![0; usize::try_from(size).map_err(|_| Errno::FBIG)? + 1];
    let mut filled = 0;
    loop {
        cancel.check()?;
        let end = content.len().min(filled + 16 * CHUNK);
        let read = read_at(file, &mut content[filled..end], filled as u64)?;
        if read == 0 {
            break;
        }
        filled += read;
        if filled as u64 > limit {
            return Err(Error::TooLargeToWrite { size: filled as u64, limit });
        }
        if filled == content.len() {
            content.resize(filled + CHUNK, 0);
        }
    }
    content.truncate(filled);
    Ok((content, Identity::of(&rustix::fs::fstat(file)?)))
}
