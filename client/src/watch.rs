//! Sees a multipart answer come, outcome by outcome, while `http.rs` receives it. What it means is `client.rs`'s.

use std::sync::{Arc, Mutex, PoisonError};

use filectx_openapi::Record;

use crate::http::Watch;
use crate::multipart::{Decoder, Event};

/// Tells of how many files an outcome has come.
pub(crate) fn outcomes(tell: impl Fn(u64) + Send + Sync + 'static) -> Watch {
    let answer: Mutex<(String, Option<Decoder>)> = Mutex::default();
    Watch(Arc::new(move |content_type, bytes| {
        let mut answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
        // Boundaries are random: another one is that of a second try.
        if answer.0 != content_type {
            *answer = (content_type.to_owned(), Decoder::new(content_type));
        }
        let Some(decoder) = &mut answer.1 else { return };
        let mut told = None;
        // What is damaged is told when the answer is there.
        let _ = decoder.push(bytes, &mut |event| match event {
            Event::Record(Record::FileContext(context)) => told = Some(context.request_index + 1),
            Event::Record(Record::FailedFile(failed)) => told = Some(failed.request_index + 1),
            Event::Record(_) | Event::Bytes(_) => {}
        });
        if let Some(files) = told {
            tell(files);
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_seen_to_come_and_a_second_try_to_begin() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let tell = Arc::clone(&seen);
        let watch = outcomes(move |files| tell.lock().unwrap().push(files));
        let failed = |boundary: &str, index: u64| {
            let error = r#"{"code":"not_found","message":"m"}"#;
            let record =
                format!(r#"{{"type":"failed_file","request_index":{index},"path":"g","error":{error}}}"#);
            format!("--{boundary}\r\ncontent-type: application/json\r\n\r\n{record}\r\n")
        };
        let first = failed("A", 0) + &failed("A", 1) + "--A";
        for piece in first.as_bytes().chunks(7) {
            (watch.0)("multipart/mixed; boundary=A", piece);
        }
        (watch.0)("multipart/mixed; boundary=B", (failed("B", 0) + "--B").as_bytes());
        (watch.0)("application/json", b"{}");
        assert_eq!(*seen.lock().unwrap(), [1, 2, 1]);
    }
}
