//! The decoder of multipart answers: bytes in, in pieces of any size, records and raw bytes out. An answer without its
//! last record was cut off, and is none.

use filectx_openapi::{Base64, ReadFileContextResponse, Record};
use memchr::memmem;

/// The longest head of a part.
const MAX_HEAD: usize = 16 << 10;

/// What an answer holds, in its order.
#[derive(Debug)]
pub enum Event<'a> {
    /// A record; of a context with `binary_part` its bytes follow.
    Record(Record),
    /// Bytes of the context before.
    Bytes(&'a [u8]),
}

/// Why an answer cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It ended before its last record.
    #[error("the answer was cut off before its end; what came of it is not to be relied on")]
    CutOff,
    /// It is not what the contract promises.
    #[error("the multipart answer is damaged: {0}")]
    Damaged(&'static str),
}

use DecodeError::Damaged;

/// A decoder under way.
#[derive(Debug)]
pub struct Decoder {
    /// `\r\n--` and the boundary.
    delimiter: Vec<u8>,
    state: State,
    /// Bytes that are not worked off yet.
    buffer: Vec<u8>,
    /// The part whose bytes have to come next.
    awaited: Option<String>,
    contexts: u64,
    failed: u64,
    done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before a boundary; nothing but it may come.
    Boundary,
    /// Behind a boundary: another part, or the end.
    Behind,
    Head,
    Body {
        raw: bool,
        left: Option<u64>,
    },
    End,
}

impl Decoder {
    /// A decoder of an answer with this `Content-Type`; `None` where that is not multipart/mixed.
    pub fn new(content_type: &str) -> Option<Self> {
        let mut fields = content_type.split(';').map(str::trim);
        if !fields.next()?.eq_ignore_ascii_case("multipart/mixed") {
            return None;
        }
        let boundary = fields.find_map(|field| {
            let (name, value) = field.split_once('=')?;
            name.eq_ignore_ascii_case("boundary").then(|| value.trim_matches('"'))
        })?;
        Some(Self {
            delimiter: [b"\r\n--", boundary.as_bytes()].concat(),
            state: State::Boundary,
            // As if a line had ended before the first boundary.
            buffer: b"\r\n".to_vec(),
            awaited: None,
            contexts: 0,
            failed: 0,
            done: false,
        })
    }

    /// Takes the next bytes and tells what they complete.
    pub fn push(&mut self, bytes: &[u8], tell: &mut impl FnMut(Event<'_>)) -> Result<(), DecodeError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(used) = self.step(&buffer[at..], tell)? {
            at += used;
        }
        buffer.drain(..at);
        self.buffer = buffer;
        Ok(())
    }

    /// The answer is over.
    pub fn finish(self) -> Result<(), DecodeError> {
        if self.done && self.state == State::End { Ok(()) } else { Err(DecodeError::CutOff) }
    }

    /// Works off the beginning of `bytes`; `None`: more has to come.
    fn step(&mut self, bytes: &[u8], tell: &mut impl FnMut(Event<'_>)) -> Result<Option<usize>, DecodeError> {
        match self.state {
            State::Boundary => {
                let length = self.delimiter.len().min(bytes.len());
                if bytes[..length] != self.delimiter[..length] {
                    return Err(Damaged("a part does not end where it should"));
                }
                Ok(self.follow(length == self.delimiter.len(), State::Behind, length))
            }
            State::Behind => match bytes {
                [b'\r', b'\n', ..] => Ok(self.follow(true, State::Head, 2)),
                [b'-', b'-', ..] => Ok(self.follow(true, State::End, 2)),
                [_, _, ..] => Err(Damaged("a boundary is followed by something else")),
                _ => Ok(None),
            },
            // Alike in one piece and in many: an end behind the longest head is none.
            State::Head => match memmem::find(&bytes[..bytes.len().min(MAX_HEAD)], b"\r\n\r\n") {
                Some(end) => {
                    let body = self.head(&bytes[..end])?;
                    Ok(self.follow(true, body, end + 4))
                }
                None if bytes.len() >= MAX_HEAD => Err(Damaged("the head of a part is too long")),
                None => Ok(None),
            },
            State::Body { raw: true, left } => Ok(self.raw(bytes, left, tell)),
            State::Body { raw: false, left } => {
                let end = match left {
                    Some(left) => usize::try_from(left).ok().filter(|end| *end <= bytes.len()),
                    None => memmem::find(bytes, &self.delimiter),
                };
                let Some(end) = end else { return Ok(None) };
                self.record(&bytes[..end], tell)?;
                Ok(self.follow(true, State::Boundary, end))
            }
            // What comes behind the end belongs to nobody.
            State::End => Ok(Some(bytes.len()).filter(|length| *length > 0)),
        }
    }

    fn follow(&mut self, complete: bool, state: State, used: usize) -> Option<usize> {
        complete.then(|| {
            self.state = state;
            used
        })
    }

    /// What the head of a part says of its body.
    fn head(&mut self, head: &[u8]) -> Result<State, DecodeError> {
        let head = std::str::from_utf8(head).map_err(|_| Damaged("the head of a part is no text"))?;
        let field = |wanted: &str| {
            let fields = head.split("\r\n").filter_map(|line| line.split_once(':'));
            fields
                .filter(|(name, _)| name.trim().eq_ignore_ascii_case(wanted))
                .map(|(_, value)| value.trim())
                .next()
        };
        let length =
            field("content-length").map(|length| length.parse().map_err(|_| Damaged("a length is none")));
        let left = length.transpose()?;
        if self.done {
            return Err(Damaged("something follows the last record"));
        }
        let Some(awaited) = self.awaited.take() else { return Ok(State::Body { raw: false, left }) };
        let id = field("content-id").and_then(|id| id.strip_prefix('<')?.strip_suffix('>'));
        if id != Some(&awaited) {
            return Err(Damaged("the bytes of a context do not follow it"));
        }
        Ok(State::Body { raw: true, left })
    }

    fn raw(&mut self, bytes: &[u8], left: Option<u64>, tell: &mut impl FnMut(Event<'_>)) -> Option<usize> {
        let (used, complete) = match left {
            Some(left) => {
                let used = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                self.state = State::Body { raw: true, left: Some(left - used as u64) };
                (used, used as u64 == left)
            }
            None => match memmem::find(bytes, &self.delimiter) {
                Some(end) => (end, true),
                // The boundary may have begun.
                None => (bytes.len().saturating_sub(self.delimiter.len() - 1), false),
            },
        };
        if used > 0 {
            tell(Event::Bytes(&bytes[..used]));
        }
        if complete {
            self.state = State::Boundary;
        }
        (complete || used > 0).then_some(used)
    }

    fn record(&mut self, json: &[u8], tell: &mut impl FnMut(Event<'_>)) -> Result<(), DecodeError> {
        let record = serde_json::from_slice(json).map_err(|_| Damaged("a record is no record"))?;
        match &record {
            Record::FileContext(context) => {
                self.contexts += 1;
                self.awaited = context.binary_part.clone();
            }
            Record::FailedFile(_) => self.failed += 1,
            Record::FileChanged { .. } => {}
            Record::Done { file_contexts, failed_files } => {
                if (*file_contexts, *failed_files) != (self.contexts, self.failed) {
                    return Err(Damaged("it holds another number of outcomes than its last record says"));
                }
                self.done = true;
            }
        }
        tell(Event::Record(record));
        Ok(())
    }
}

/// Puts records and bytes together to the response that a JSON answer holds.
#[derive(Debug, Default)]
pub struct Assembler {
    response: ReadFileContextResponse,
}

impl Assembler {
    /// Takes what the decoder tells.
    pub fn take(&mut self, event: Event<'_>) {
        let contexts = &mut self.response.file_contexts;
        match event {
            Event::Record(Record::FileContext(mut context)) => {
                // Of no length, if nothing follows.
                context.binary_content = context.binary_part.take().map(|_| Base64::default());
                contexts.push(*context);
            }
            Event::Record(Record::FailedFile(failed)) => self.response.failed_files.push(*failed),
            Event::Record(Record::FileChanged { request_index }) => {
                let last = contexts.last_mut().filter(|context| context.request_index == request_index);
                if let Some(context) = last {
                    context.changed_during_read = Some(true);
                }
            }
            Event::Record(Record::Done { .. }) => {}
            Event::Bytes(bytes) => {
                if let Some(content) = contexts.last_mut().and_then(|context| context.binary_content.as_mut())
                {
                    content.0.extend_from_slice(bytes);
                }
            }
        }
    }

    /// The response.
    pub fn response(self) -> ReadFileContextResponse {
        self.response
    }
}

/// Decodes an answer that is there whole; `None` where its type is not multipart/mixed.
pub(crate) fn decode(
    content_type: &str,
    body: &[u8],
) -> Option<Result<ReadFileContextResponse, DecodeError>> {
    let mut decoder = Decoder::new(content_type)?;
    let mut assembler = Assembler::default();
    let decoded = decoder.push(body, &mut |event| assembler.take(event)).and_then(|()| decoder.finish());
    Some(decoded.map(|()| assembler.response()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &str = "multipart/mixed; boundary=BOUND";

    fn part(head: &str, body: &[u8]) -> Vec<u8> {
        [format!("--BOUND\r\n{head}\r\n\r\n").as_bytes(), body, b"\r\n"].concat()
    }

    fn json(body: &str) -> Vec<u8> {
        part("Content-Type: application/json", body.as_bytes())
    }

    fn context(index: u64, content: &str) -> Vec<u8> {
        json(&format!(
            r#"{{"type":"file_context","request_index":{index},"file_name":"f","last_modified_epoch_millis":0,"file_size_bytes":0,"revision":"r",{content}}}"#
        ))
    }

    fn answer() -> Vec<u8> {
        [
            context(0, r#""text_content":"\r\n--BOUND--\r\n""#),
            json(r#"{"type":"failed_file","request_index":1,"path":"g","error":{"code":"not_found","message":"m"}}"#),
            context(2, r#""binary_part":"part-1""#),
            part("content-id: <part-1>\r\nContent-Type: image/png\r\nContent-Length: 14", b"\r\n--BOUND--\r\n\0"),
            context(3, r#""binary_part":"part-2""#),
            part("content-id: <part-2>", b"\r\n--BOUN\r\n--no boundary"),
            json(r#"{"type":"file_changed","request_index":3}"#),
            json(r#"{"type":"done","file_contexts":3,"failed_files":1}"#),
            b"--BOUND--\r\n".to_vec(),
        ]
        .concat()
    }

    fn check(response: &ReadFileContextResponse) {
        let contexts = &response.file_contexts;
        let bytes = |at: usize| contexts[at].binary_content.as_ref().map(|content| &content.0[..]);
        assert_eq!(contexts[0].text_content.as_deref(), Some("\r\n--BOUND--\r\n"));
        assert_eq!(bytes(1), Some(&b"\r\n--BOUND--\r\n\0"[..]));
        assert_eq!(bytes(2), Some(&b"\r\n--BOUN\r\n--no boundary"[..]));
        assert_eq!((contexts[1].changed_during_read, contexts[2].changed_during_read), (None, Some(true)));
        assert!(contexts.iter().all(|context| context.binary_part.is_none()));
        assert_eq!(response.failed_files.len(), 1);
    }

    #[test]
    fn pieces_of_any_size() {
        let whole = answer();
        check(&decode(TYPE, &whole).unwrap().unwrap());
        for size in 1..40 {
            let mut decoder = Decoder::new(TYPE).unwrap();
            let mut assembler = Assembler::default();
            for piece in whole.chunks(size) {
                decoder.push(piece, &mut |event| assembler.take(event)).unwrap();
            }
            decoder.finish().unwrap();
            check(&assembler.response());
        }
    }

    #[test]
    fn an_answer_without_its_end_is_none() {
        let whole = answer();
        let end = whole.len() - b"\r\n".len();
        for cut in 0..end {
            assert_eq!(decode(TYPE, &whole[..cut]).unwrap().err(), Some(DecodeError::CutOff), "{cut}");
        }
        let without_done =
            String::from_utf8_lossy(&whole).replace("\"done\"", "\"file_changed\",\"request_index\":1");
        assert_eq!(decode(TYPE, without_done.as_bytes()).unwrap().err(), Some(DecodeError::CutOff));
    }

    #[test]
    fn damage_is_told() {
        let whole = String::from_utf8_lossy(&answer()).into_owned();
        for (from, to) in [
            ("\"file_contexts\":3", "\"file_contexts\":4"),
            ("<part-1>", "<part-9>"),
            ("Content-Length: 14", "Content-Length: 13"),
            ("Content-Length: 14", "Content-Length: x"),
            ("{\"type\":\"failed_file\"", "{\"type\":\"failed_fil\""),
            ("--BOUND--\r\n\0\r\n--BOUND\r\n", "--BOUND--\r\n\0\r\n--BOUNDx"),
        ] {
            let damaged = whole.replacen(from, to, 1);
            assert_ne!(damaged, whole);
            let error = decode(TYPE, damaged.as_bytes()).unwrap().err();
            assert!(matches!(error, Some(Damaged(_))), "{from} {to}: {error:?}");
        }
    }

    #[test]
    fn a_head_that_is_too_long_is_refused_in_one_piece_and_in_many() {
        let long = part(&format!("x: {}", "y".repeat(MAX_HEAD)), b"{}");
        for size in [long.len(), 100] {
            let mut decoder = Decoder::new(TYPE).unwrap();
            let decoded = long.chunks(size).try_for_each(|piece| decoder.push(piece, &mut |_| {}));
            assert!(matches!(decoded, Err(Damaged(_))), "{decoded:?}");
        }
    }

    #[test]
    fn content_types() {
        assert!(Decoder::new("application/json").is_none());
        assert!(Decoder::new("multipart/mixed").is_none());
        let quoted = Decoder::new("Multipart/Mixed; charset=x; Boundary=\"B\"").unwrap();
        assert_eq!(quoted.delimiter, b"\r\n--B");
    }
}
