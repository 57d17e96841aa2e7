//! The bytes of an open file: positioned reads, bounded by the size at open; a file whose size lies (on proc, sysfs and
//! their like) is read to its end at once, within a cap.

use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::identity::Identity;
use super::open::Opened;
use super::system;
use crate::{Cancel, Error};

/// How much is read at once.
pub const BLOCK: usize = 256 << 10;

/// An open file's bytes.
#[derive(Debug)]
pub struct Source {
    fd: OwnedFd,
    identity: Identity,
    size: u64,
    /// All of a file whose size lies.
    memory: Option<Vec<u8>>,
    /// False when a file whose size lies holds more than the cap.
    complete: bool,
}

impl Source {
    /// The bytes of `opened`. `cap`: the most that is read of a file whose size lies.
    pub fn new(opened: Opened, cap: u64, cancel: &Cancel) -> Result<Self, Error> {
        let Opened { fd, identity, .. } = opened;
        let mut source = Self { fd, identity, size: identity.size, memory: None, complete: true };
        if source.size_lies() {
            source.read_to_end(cap, cancel)?;
        }
        Ok(source)
    }

    /// The size at open; of a file whose size lies, how many bytes it gave.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether [`size`](Self::size) is all there is.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Who the file was when it was opened.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Fills `buffer` from `offset` on; fewer bytes mean the end.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, Error> {
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let buffer = &mut buffer[..wanted];
        if let Some(memory) = &self.memory {
            let from = usize::try_from(offset).unwrap_or(usize::MAX).min(memory.len());
            let bytes = &memory[from..memory.len().min(from + buffer.len())];
            buffer[..bytes.len()].copy_from_slice(bytes);
            return Ok(bytes.len());
        }
        read_full(&self.fd, buffer, offset)
    }

    /// The bytes from `from` to `to`, or fewer where the file ends; `cancel` is asked between blocks.
    pub fn read_range(&self, from: u64, to: u64, cancel: &Cancel) -> Result<Vec<u8>, Error> {
        let len = usize::try_from(to.min(self.size).saturating_sub(from)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; len];
        let mut done = 0;
        while done < len {
            cancel.check()?;
            let end = len.min(done + BLOCK);
            let n = self.read_at(&mut bytes[done..end], from + done as u64)?;
            done += n;
            if n == 0 {
                break;
            }
        }
        bytes.truncate(done);
        Ok(bytes)
    }

    /// The first byte from `offset` on that is not in a hole, or the end. A hole is a stretch of zeros that the disk does
    /// not keep.
    pub fn data_from(&self, offset: u64) -> u64 {
        if self.memory.is_some() { offset } else { system::data_from(&self.fd, offset, self.size) }
    }

    /// Whether size or time moved since the open.
    pub fn changed(&self) -> bool {
        // Times of generated files move with every look.
        self.memory.is_none()
            && rustix::fs::fstat(&self.fd).is_ok_and(|stat| self.identity.content_moved(&Identity::of(&stat)))
    }

    fn size_lies(&self) -> bool {
        if self.size == 0 {
            return read_full(&self.fd, &mut [0], 0).is_ok_and(|n| n > 0);
        }
        self.identity.blocks == 0 && system::is_generated(&self.fd)
    }

    fn read_to_end(&mut self, cap: u64, cancel: &Cancel) -> Result<(), Error> {
        let mut bytes = Vec::new();
        let mut block = vec![0; 64 << 10];
        loop {
            cancel.check()?;
            let n = read_once(&self.fd, &mut block, bytes.len() as u64)?;
            if n == 0 {
                break;
            }
            bytes.extend_from_slice(&block[..n]);
            if bytes.len() as u64 > cap {
                self.complete = false;
                break;
            }
        }
        self.size = bytes.len() as u64;
        self.memory = Some(bytes);
        Ok(())
    }
}

fn read_once(fd: &OwnedFd, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    loop {
        match rustix::io::pread(fd, &mut *buffer, offset) {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

fn read_full(fd: &OwnedFd, buffer: &mut [u8], offset: u64) -> Result<usize, Error> {
    let mut done = 0;
    while done < buffer.len() {
        match read_once(fd, &mut buffer[done..], offset + done as u64)? {
            0 => break,
            n => done += n,
        }
    }
    Ok(done)
}
