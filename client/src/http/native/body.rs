//! A request's body goes out in pieces, and each piece that the connection takes is a sign of life.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::pace::Pace;
use crate::payload::{Payload, Source};

const PIECE_BYTES: usize = 64 << 10;

/// A body that says how far it is.
#[derive(Debug)]
pub(crate) struct PacedBody {
    sources: std::vec::IntoIter<Source>,
    now: Option<Source>,
    left: u64,
    pace: Arc<Pace>,
}

impl PacedBody {
    pub(crate) fn new(payload: &Payload, pace: Arc<Pace>) -> Self {
        let left = payload.length();
        Self { sources: payload.sources.clone().into_iter(), now: None, left, pace }
    }

    fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            match self.now.as_mut().filter(|source| source.length() > 0) {
                Some(source) => return Some(source.take(PIECE_BYTES)),
                None => self.now = Some(self.sources.next()?),
            }
        }
    }
}

impl Body for PacedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Some(piece) = self.next() else { return Poll::Ready(None) };
        let piece = piece?;
        self.left -= piece.len() as u64;
        self.pace.step(self.left == 0);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use std::time::Duration;

    use super::*;
    use crate::error::Phase;
    use crate::payload::Content;

    fn sent(payload: &Payload) -> (Vec<u8>, Phase) {
        let pace = Arc::new(Pace::new(false));
        let body = PacedBody::new(payload, Arc::clone(&pace));
        let length = body.size_hint().exact();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let bytes = runtime.block_on(body.collect()).unwrap().to_bytes().to_vec();
        assert_eq!(length, Some(bytes.len() as u64));
        (bytes, pace.limit(Duration::ZERO, Duration::ZERO).0)
    }

    #[test]
    fn a_form_is_its_parts_as_they_are_and_the_same_twice() {
        let content: Vec<u8> = (0..200_000_u32).map(|n| (n % 251) as u8).collect();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), [b"skip".as_slice(), &content, b"rest"].concat()).unwrap();
        let file = std::fs::File::open(dir.path().join("f")).unwrap();
        for of in [Content::from(content.clone()), Content::of_file(file, 4, content.len() as u64)] {
            let payload = Payload::form(b"{}", of).unwrap();
            let (bytes, phase) = sent(&payload);
            assert_eq!(phase, Phase::Answer, "all was sent");
            assert_eq!(sent(&payload).0, bytes);
            let boundary = payload.content_type.strip_prefix("multipart/form-data; boundary=").unwrap();
            let head = format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"request\"\r\nContent-Type: \
                 application/json\r\n\r\n{{}}\r\n--{boundary}\r\nContent-Disposition: form-data; \
                 name=\"content\"; filename=\"content\"\r\nContent-Type: application/octet-stream\r\n\r\n"
            );
            let tail = format!("\r\n--{boundary}--\r\n");
            assert!(bytes == [head.as_bytes(), &content, tail.as_bytes()].concat());
        }
    }

    #[test]
    fn a_file_that_became_shorter_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), b"short").unwrap();
        let file = std::fs::File::open(dir.path().join("f")).unwrap();
        let payload = Payload::form(b"{}", Content::of_file(file, 0, 10)).unwrap();
        let body = PacedBody::new(&payload, Arc::new(Pace::new(false)));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert!(runtime.block_on(body.collect()).is_err());
    }
}
