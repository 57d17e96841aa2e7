//! Successful answers: a JSON value serialised once, compressed where the caller asked, sent in one piece, with the
//! facts that the log tells about it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use filectx_openapi::FileContext;
use http::{HeaderValue, header};
use http_body::{Frame, SizeHint};
use serde::Serialize;

use crate::escape;
use crate::negotiate::{Coding, JSON};

/// What the log tells of an answer: numbers, and for a change its path and revisions. Never contents.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// How many things the answer holds: files read, entries, rows.
    pub(crate) items: Option<u64>,
    /// How many of the request's items failed.
    pub(crate) failed: Option<u64>,
    /// Both, of an answer that is still being made.
    pub(crate) counted: Option<Counts>,
    /// A change: the path.
    pub(crate) path: Option<String>,
    /// A change: the file's revision now.
    pub(crate) revision: Option<String>,
    /// A change: the file's revision before.
    pub(crate) previous_revision: Option<String>,
}

/// The numbers of an answer that is sent while it is made; the log reads them when it has ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(Arc<[AtomicU64; 2]>);

impl Counts {
    /// So many items were written by now, and so many failures.
    pub(crate) fn set(&self, (items, failed): (u64, u64)) {
        self.0[0].store(items, Ordering::Relaxed);
        self.0[1].store(failed, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> (u64, u64) {
        (self.0[0].load(Ordering::Relaxed), self.0[1].load(Ordering::Relaxed))
    }
}

impl Facts {
    /// An answer that holds so many things.
    pub(crate) fn items(items: usize) -> Self {
        Self { items: Some(items as u64), ..Self::default() }
    }

    /// A change of `path`.
    pub(crate) fn change(path: &str, revision: Option<&str>, previous_revision: Option<&str>) -> Self {
        Self {
            path: Some(path.to_owned()),
            revision: revision.map(str::to_owned),
            previous_revision: previous_revision.map(str::to_owned),
            ..Self::default()
        }
    }
}

/// An answer whose JSON text is there already.
pub(crate) fn of_json(body: impl Into<Bytes>, coding: Option<Coding>, facts: Facts) -> Response {
    let body = body.into();
    // Compression into memory does not fail; if it ever does, the plain body is right, too.
    let compressed = coding.and_then(|coding| Some((compress(&body, coding).ok()?.into(), coding)));
    let (body, coding) = compressed.map_or((body, None), |(body, coding)| (body, Some(coding)));
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    if let Some(coding) = coding {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
    }
    response.extensions_mut().insert(facts);
    response
}

/// Writes `value` behind what is there.
pub(crate) fn append<T: Serialize>(list: &mut Vec<u8>, value: &T) {
    // Text, numbers and lists written to memory: it cannot fail.
    let _ = serde_json::to_writer(list, value);
}

/// Writes a context as serde does, but its content, of which most of an answer is, directly.
pub(crate) fn append_context(list: &mut Vec<u8>, mut context: FileContext) {
    let (text, binary) = (context.text_content.take(), context.binary_content.take());
    append(list, &context);
    if let Some(text) = text {
        list.pop();
        list.extend_from_slice(br#","text_content":"#);
        escape::push(list, &text);
        list.push(b'}');
    }
    if let Some(binary) = binary {
        list.pop();
        list.extend_from_slice(br#","binary_content":"#);
        binary.push_json(list);
        list.push(b'}');
    }
}

/// `answer`, which keeps `held` until its bytes were sent or given up.
pub(crate) fn holding<T: Send + Sync + Unpin + 'static>(answer: Response, held: T) -> Response {
    answer.map(|body| Body::new(HoldingBytes { body, held: Some(held) }))
}

/// So many bytes are sent at once, and hold nothing up.
const SENT_AT_ONCE: usize = 64 << 10;

/// A body whose last bytes keep something: hyper takes them long before a slow caller does.
struct HoldingBytes<T> {
    body: Body,
    held: Option<T>,
}

struct Kept<T> {
    bytes: Bytes,
    _held: T,
}

impl<T> AsRef<[u8]> for Kept<T> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl<T: Send + Sync + Unpin + 'static> http_body::Body for HoldingBytes<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        let last = this.body.is_end_stream();
        let keep = |bytes: Bytes| match this.held.take_if(|_| last && bytes.len() > SENT_AT_ONCE) {
            Some(held) => Bytes::from_owner(Kept { bytes, _held: held }),
            None => bytes,
        };
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(keep))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A body that keeps something until it was handed over, or given up.
#[derive(Debug)]
pub(crate) struct Holding<B, T> {
    pub(crate) body: B,
    pub(crate) _held: T,
}

impl<B: http_body::Body + Unpin, T: Unpin> http_body::Body for Holding<B, T> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Fast levels: what leaves a host goes through SSH, where the processor is the neck before the line is.
fn compress(body: &[u8], coding: Coding) -> io::Result<Vec<u8>> {
    match coding {
        Coding::Zstd => zstd::bulk::compress(body, 1),
        Coding::Gzip => {
            let room = Vec::with_capacity(body.len() / 4 + 64);
            let mut encoder = flate2::write::GzEncoder::new(room, flate2::Compression::fast());
            io::Write::write_all(&mut encoder, body)?;
            encoder.finish()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body::Body as _;
    use http_body_util::BodyExt;

    #[tokio::test]
    async fn large_bytes_keep_what_they_hold_until_they_are_gone() {
        for (size, keeps) in [(10, false), (SENT_AT_ONCE + 1, true)] {
            let held = Arc::new(());
            let answer = holding(of_json(vec![b' '; size], None, Facts::default()), Arc::clone(&held));
            let mut body = answer.into_body();
            let frame = body.frame().await.unwrap().unwrap();
            assert!(body.is_end_stream() && body.frame().await.is_none());
            drop(body);
            assert_eq!(Arc::strong_count(&held) == 2, keeps, "{size}");
            drop(frame);
            assert_eq!(Arc::strong_count(&held), 1);
        }
    }
}
