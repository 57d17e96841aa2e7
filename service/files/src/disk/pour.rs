//! Bytes from one open file into another, and from memory into a file: whole, whatever the system takes at once.

use rustix::fd::AsFd;
use rustix::io::Errno;

/// How much is moved at a time.
pub(crate) const CHUNK: usize = 256 << 10;

/// Writes all of `bytes` at `offset`.
pub(crate) fn write_all_at(file: impl AsFd, mut bytes: &[u8], mut offset: u64) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::pwrite(&file, bytes, offset) {
            Ok(0) => return Err(Errno::IO),
            Ok(written) => {
                bytes = &bytes[written..];
                offset += written as u64;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Fills `buffer` from `offset` on; less only at the end of the file.
pub(crate) fn read_at(file: impl AsFd, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let mut filled = 0;
    while filled < buffer.len() {
        match rustix::io::pread(&file, &mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(filled)
}

/// Copies the first `length` bytes of `source` over those of `sink`.
pub(crate) fn pour(source: impl AsFd, sink: impl AsFd, length: u64) -> Result<(), Errno> {
    let mut buffer = vec![0; CHUNK];
    let mut at = 0;
    while at < length {
        let want = usize::try_from(length - at).unwrap_or(CHUNK).min(CHUNK);
        let read = read_at(&source, &mut buffer[..want], at)?;
        if read == 0 {
            return Err(Errno::IO);
        }
        write_all_at(&sink, &buffer[..read], at)?;
        at += read as u64;
    }
    Ok(())
}
