//! Any bytes as a multipart answer: they decode, or are refused, alike in one piece and in many.
#![no_main]

use filectx_client::multipart::{Assembler, DecodeError, Decoder};
use filectx_openapi::{FailedFile, FileContext};
use libfuzzer_sys::fuzz_target;

fn decode<'a>(
    pieces: impl Iterator<Item = &'a [u8]>,
) -> Result<(Vec<FileContext>, Vec<FailedFile>), DecodeError> {
    let mut decoder = Decoder::new("multipart/mixed; boundary=B").expect("it is multipart");
    let mut assembler = Assembler::default();
    for piece in pieces {
        decoder.push(piece, &mut |event| assembler.take(event))?;
    }
    decoder.finish()?;
    let response = assembler.response();
    Ok((response.file_contexts, response.failed_files))
}

fuzz_target!(|data: &[u8]| {
    let Some((size, body)) = data.split_first() else { return };
    let whole = decode(std::iter::once(body));
    let pieces = decode(body.chunks(usize::from(*size) + 1));
    assert_eq!(whole, pieces);
});
