//! The content of a write: small ones travel in the request, large ones are streamed from a file, since a change that
//! may have to be asked for again needs its content twice.

use std::fs::File;
use std::io::{self, Read, Seek as _, Write as _};

use filectx_client::Content;
use filectx_openapi::WriteFileRequest;

/// More than this is not held in memory.
const SMALL: u64 = 1 << 20;

/// The content of a write.
#[derive(Debug)]
pub(crate) enum Input {
    Small(Vec<u8>),
    Large(Content),
}

/// What is left of `file`, which may be a pipe.
pub(crate) fn content(mut file: File) -> io::Result<Input> {
    let mut small = Vec::new();
    let regular = file.metadata()?.is_file();
    let start = if regular { file.stream_position()? } else { 0 };
    (&mut file).take(SMALL + 1).read_to_end(&mut small)?;
    if small.len() as u64 <= SMALL {
        return Ok(Input::Small(small));
    }
    if regular {
        let length = file.metadata()?.len().saturating_sub(start);
        return Ok(Input::Large(Content::of_file(file, start, length)));
    }
    let mut kept = tempfile::tempfile()?;
    kept.write_all(&small)?;
    io::copy(&mut file, &mut kept)?;
    let length = kept.stream_position()?;
    Ok(Input::Large(Content::of_file(kept, 0, length)))
}

/// The request with this content.
pub(crate) fn carrying(request: WriteFileRequest, content: Vec<u8>) -> WriteFileRequest {
    match String::from_utf8(content) {
        Ok(text) => WriteFileRequest { text_content: Some(text), ..request },
        Err(error) => WriteFileRequest { binary_content: Some(error.into_bytes().into()), ..request },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(input: &Input) -> (bool, u64) {
        match input {
            Input::Small(bytes) => (false, bytes.len() as u64),
            Input::Large(content) => (true, content.length()),
        }
    }

    #[test]
    fn what_is_left_of_a_file_or_pipe_is_the_content() {
        for (size, large) in [(0, false), (SMALL, false), (SMALL + 1, true), (3 * SMALL, true)] {
            let bytes = vec![7; usize::try_from(size).unwrap()];
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(b"head").unwrap();
            file.write_all(&bytes).unwrap();
            file.seek(io::SeekFrom::Start(4)).unwrap();
            assert_eq!(length(&content(file).unwrap()), (large, size));

            let (reader, mut writer) = io::pipe().unwrap();
            let sender = std::thread::spawn(move || writer.write_all(&bytes).unwrap());
            let pipe = File::from(std::os::fd::OwnedFd::from(reader));
            assert_eq!(length(&content(pipe).unwrap()), (large, size));
            sender.join().unwrap();
        }
    }
}
