//! A multipart answer, written part by part: records as JSON, bytes as bytes, compressed as a whole where the caller
//! asked. It writes to memory; who sends it decides when it goes on.

use std::collections::VecDeque;
use std::io::{self, Write};

use bytes::Bytes;
use filectx_files::{Outcome, Stored};
use filectx_openapi::{FileContext, Record};
use flate2::write::GzEncoder;

use crate::guard::token::random_hex;
use crate::negotiate::{Coding, JSON};
use crate::{answer, escape};

/// From this size on, bytes are handed on as they are instead of being copied to others.
const COPIED_BYTES: usize = 64 << 10;

/// The writer of one answer.
pub(crate) struct Parts {
    boundary: String,
    sink: Sink,
    contexts: u64,
    failed: u64,
    ended: bool,
    /// What is ready to be sent.
    ready: Vec<Bytes>,
}

/// Bytes of a part that the caller has to write, from the disk.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) stored: Stored,
    request_index: u64,
}

enum Sink {
    Plain(Vec<u8>),
    Zstd(Box<zstd::stream::write::Encoder<'static, Vec<u8>>>),
    Gzip(Box<GzEncoder<Vec<u8>>>),
}

impl Parts {
    pub(crate) fn new(coding: Option<Coding>) -> io::Result<Self> {
        let sink = match coding {
            None => Sink::Plain(Vec::new()),
            Some(Coding::Zstd) => Sink::Zstd(Box::new(zstd::stream::write::Encoder::new(Vec::new(), 1)?)),
            Some(Coding::Gzip) => {
                Sink::Gzip(Box::new(GzEncoder::new(Vec::new(), flate2::Compression::fast())))
            }
        };
        Ok(Self {
            boundary: random_hex::<16>()?,
            sink,
            contexts: 0,
            failed: 0,
            ended: false,
            ready: Vec::new(),
        })
    }

    /// The answer's `Content-Type`.
    pub(crate) fn content_type(&self) -> String {
        format!("multipart/mixed; boundary={}", self.boundary)
    }

    /// How many contexts and failures were written.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.contexts, self.failed)
    }

    /// Writes outcomes up to the first whose bytes lie on the disk: its record and the head of its part are written,
    /// then [`raw`](Self::raw) is wanted for the bytes, and [`close`](Self::close).
    pub(crate) fn write(&mut self, outcomes: &mut VecDeque<Outcome>) -> io::Result<Option<Open>> {
        while let Some(outcome) = outcomes.pop_front() {
            match outcome {
                Outcome::Failed(file) => {
                    self.failed += 1;
                    self.record(&Record::FailedFile(file))?;
                }
                Outcome::Context(mut context) => {
                    let Some(content) = context.binary_content.take() else {
                        self.contexts += 1;
                        self.context(*context)?;
                        continue;
                    };
                    self.head_of(context, Some(content.0.len() as u64))?;
                    self.put(content.0)?;
                    self.sink.write_all(b"\r\n")?;
                }
                Outcome::Stored(context, stored) => {
                    let request_index = context.request_index;
                    self.head_of(context, None)?;
                    return Ok(Some(Open { stored, request_index }));
                }
            }
        }
        Ok(None)
    }

    /// Writes bytes of the part that is open.
    pub(crate) fn raw(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        self.put(bytes)
    }

    /// Ends the part that is open; `moved`: the file changed meanwhile.
    pub(crate) fn close(&mut self, open: &Open, moved: bool) -> io::Result<()> {
        self.sink.write_all(b"\r\n")?;
        if moved {
            self.record(&Record::FileChanged { request_index: open.request_index })?;
        }
        Ok(())
    }

    /// Writes the last record and the end.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.record(&Record::Done { file_contexts: self.contexts, failed_files: self.failed })?;
        write!(self.sink, "--{}--\r\n", self.boundary)?;
        self.ended = true;
        self.sink.end()
    }

    /// What can be sent by now.
    pub(crate) fn take(&mut self) -> io::Result<Vec<Bytes>> {
        if !self.ended {
            self.sink.flush()?;
        }
        self.hand_on();
        Ok(std::mem::take(&mut self.ready))
    }

    /// The record of a context with bytes, and the head of their part.
    fn head_of(&mut self, mut context: Box<FileContext>, length: Option<u64>) -> io::Result<()> {
        let id = format!("part-{}", self.contexts);
        self.contexts += 1;
        let mime = context.mime_type.clone().unwrap_or_else(|| "application/octet-stream".to_owned());
        context.binary_part = Some(id.clone());
        self.context(*context)?;
        write!(self.sink, "--{}\r\ncontent-type: {mime}\r\ncontent-id: <{id}>\r\n", self.boundary)?;
        if let Some(length) = length {
            write!(self.sink, "content-length: {length}\r\n")?;
        }
        self.sink.write_all(b"\r\n")
    }

    fn context(&mut self, context: FileContext) -> io::Result<()> {
        const TYPE: &[u8] = br#"{"type":"file_context""#;
        let mut json = Vec::with_capacity(
            512 + context.text_content.as_ref().map_or(0, |text| escape::room(text.len())),
        );
        json.extend_from_slice(TYPE);
        answer::append_context(&mut json, context);
        // Its opening brace becomes the comma behind the type.
        json[TYPE.len()] = b',';
        self.json(json)
    }

    fn record(&mut self, record: &Record) -> io::Result<()> {
        let json = serde_json::to_vec(record).map_err(io::Error::other)?;
        self.json(json)
    }

    fn json(&mut self, json: Vec<u8>) -> io::Result<()> {
        let (boundary, length) = (&self.boundary, json.len());
        write!(self.sink, "--{boundary}\r\ncontent-type: {JSON}\r\ncontent-length: {length}\r\n\r\n")?;
        self.put(json)?;
        self.sink.write_all(b"\r\n")
    }

    fn put(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        if bytes.len() < COPIED_BYTES || !matches!(self.sink, Sink::Plain(_)) {
            return self.sink.write_all(&bytes);
        }
        self.hand_on();
        self.ready.push(bytes.into());
        Ok(())
    }

    fn hand_on(&mut self) {
        let written = std::mem::take(self.sink.written());
        if !written.is_empty() {
            self.ready.push(written.into());
        }
    }
}

impl Sink {
    fn written(&mut self) -> &mut Vec<u8> {
        match self {
            Sink::Plain(written) => written,
            Sink::Zstd(encoder) => encoder.get_mut(),
            Sink::Gzip(encoder) => encoder.get_mut(),
        }
    }

    fn end(&mut self) -> io::Result<()> {
        match self {
            Sink::Plain(_) => Ok(()),
            Sink::Zstd(encoder) => encoder.do_finish(),
            Sink::Gzip(encoder) => encoder.try_finish(),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::Plain(written) => written.write(bytes),
            Sink::Zstd(encoder) => encoder.write(bytes),
            Sink::Gzip(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::Plain(_) => Ok(()),
            Sink::Zstd(encoder) => encoder.flush(),
            Sink::Gzip(encoder) => encoder.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use filectx_openapi::{Base64, Code, FailedFile, ItemError};
    use std::io::Read;

    fn outcomes() -> VecDeque<Outcome> {
        let binary = |index: u64, bytes: Vec<u8>| FileContext {
            request_index: index,
            mime_type: Some("image/png".into()),
            binary_content: Some(Base64(bytes)),
            ..FileContext::default()
        };
        let text = FileContext { text_content: Some("text\r\n--".into()), ..FileContext::default() };
        let error = ItemError::new(Code::NotFound, "gone");
        let failed = FailedFile { request_index: 1, path: "gone".into(), path_base64: None, error };
        [
            Outcome::Context(Box::new(text)),
            Outcome::Failed(Box::new(failed)),
            Outcome::Context(Box::new(binary(2, b"\r\n--\0".to_vec()))),
            Outcome::Context(Box::new(binary(3, vec![7; 200_000]))),
        ]
        .into()
    }

    fn written(coding: Option<Coding>) -> (String, Vec<u8>) {
        let mut parts = Parts::new(coding).unwrap();
        let mut body = Vec::new();
        assert!(parts.write(&mut outcomes()).unwrap().is_none());
        body.extend(parts.take().unwrap().concat());
        parts.finish().unwrap();
        body.extend(parts.take().unwrap().concat());
        assert_eq!(parts.counts(), (3, 1));
        (parts.boundary.clone(), body)
    }

    #[test]
    fn records_and_bytes_in_order() {
        let (boundary, body) = written(None);
        let text = String::from_utf8_lossy(&body);
        let heads = ["file_context", "failed_file", "file_context", "file_context", "done"];
        let found: Vec<&str> =
            text.split(r#"{"type":""#).skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert_eq!(found, heads);
        assert!(text.contains("content-id: <part-1>\r\ncontent-length: 5\r\n\r\n\r\n--\0\r\n"));
        assert!(text.contains("content-id: <part-2>\r\ncontent-length: 200000\r\n"));
        assert!(text.ends_with(&format!("\"failed_files\":1}}\r\n--{boundary}--\r\n")), "{text}");
        assert_ne!(written(None).0, boundary);
    }

    #[test]
    fn compressed_as_a_whole() {
        let plain = written(None).1.len();
        let mut unzipped = Vec::new();
        flate2::read::GzDecoder::new(&written(Some(Coding::Gzip)).1[..]).read_to_end(&mut unzipped).unwrap();
        assert_eq!(unzipped.len(), plain);
        let unzipped = zstd::stream::decode_all(&written(Some(Coding::Zstd)).1[..]).unwrap();
        assert_eq!(unzipped.len(), plain);
    }
}
