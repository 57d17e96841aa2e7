//! What a request carries: JSON, or a form whose content is streamed from memory or from a file. A payload can be sent
//! twice, and is the same then.

use std::io;
#[cfg(unix)]
use std::sync::Arc;

use bytes::Bytes;

use crate::token::random_hex;

/// The content of a file to write.
#[derive(Clone, Debug)]
pub struct Content(Source);

impl Content {
    /// A part of a file that stays as it is until the call is over: `length` bytes from `start` on. It is read piece by
    /// piece, as it is sent.
    #[cfg(unix)]
    pub fn of_file(file: std::fs::File, start: u64, length: u64) -> Self {
        Self(Source::File { file: Arc::new(file), at: start, length })
    }

    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        self.0.length()
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Source::Memory(bytes.into()))
    }
}

/// Bytes to send.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Memory(Bytes),
    #[cfg(unix)]
    File {
        file: Arc<std::fs::File>,
        at: u64,
        length: u64,
    },
}

impl Source {
    pub(crate) fn length(&self) -> u64 {
        match self {
            Source::Memory(bytes) => bytes.len() as u64,
            #[cfg(unix)]
            Source::File { length, .. } => *length,
        }
    }

    /// The next bytes, at most `most`. A file is read right here: it is of a local disk, and a piece is small.
    pub(crate) fn take(&mut self, most: usize) -> io::Result<Bytes> {
        match self {
            Source::Memory(bytes) => Ok(bytes.split_to(bytes.len().min(most))),
            #[cfg(unix)]
            Source::File { file, at, length } => {
                use std::os::unix::fs::FileExt as _;
                let mut piece = vec![0; usize::try_from(*length).unwrap_or(most).min(most)];
                file.read_exact_at(&mut piece, *at)?;
                *at += piece.len() as u64;
                *length -= piece.len() as u64;
                Ok(piece.into())
            }
        }
    }
}

/// The body of a request.
#[derive(Clone, Debug)]
pub(crate) struct Payload {
    pub(crate) content_type: String,
    pub(crate) sources: Vec<Source>,
}

impl Payload {
    /// Nothing.
    pub(crate) fn none() -> Self {
        Self { content_type: String::new(), sources: Vec::new() }
    }

    pub(crate) fn json(bytes: Vec<u8>) -> Self {
        Self { content_type: "application/json".into(), sources: vec![Source::Memory(bytes.into())] }
    }

    /// A form of two parts: `request` in JSON, and `content` as it is.
    pub(crate) fn form(request: &[u8], content: Content) -> io::Result<Self> {
        // 128 random bits: no content holds them by chance, and nobody can guess them.
        let boundary = random_hex(16)?;
        let mut head = Vec::with_capacity(request.len() + 512);
        head.extend_from_slice(
            format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"request\"\r\n\
                 Content-Type: application/json\r\n\r\n"
            )
            .as_bytes(),
        );
        head.extend_from_slice(request);
        head.extend_from_slice(
            format!(
                "\r\n--{boundary}\r\nContent-Disposition: form-data; name=\"content\"; filename=\"content\"\r\n\
                 Content-Type: application/octet-stream\r\n\r\n"
            )
            .as_bytes(),
        );
        let tail = format!("\r\n--{boundary}--\r\n").into_bytes();
        Ok(Self {
            content_type: format!("multipart/form-data; boundary={boundary}"),
            sources: vec![Source::Memory(head.into()), content.0, Source::Memory(tail.into())],
        })
    }

    pub(crate) fn length(&self) -> u64 {
        self.sources.iter().map(Source::length).sum()
    }
}
