//! `multipart/form-data` as it comes in (RFC 7578): part after part, each read as a stream, nothing held but a piece.
//! Synchronous: the bytes come from a [`Read`].

use std::io::{self, ErrorKind, Read};

use memchr::memmem::Finder;

/// The longest head of a part.
const HEAD: usize = 8 << 10;
const PIECE: usize = 64 << 10;

/// What comes in.
pub(crate) struct Form<R> {
    source: R,
    /// What was read and not yet taken; before the first part as if a line had ended right before it.
    buffer: Vec<u8>,
    taken: usize,
    /// CR LF, two dashes and the boundary.
    delimiter: Finder<'static>,
    length: usize,
}

impl<R: Read> Form<R> {
    /// The parts of `source` between lines of `boundary`.
    pub(crate) fn new(source: R, boundary: &str) -> Self {
        let delimiter = format!("\r\n--{boundary}").into_bytes();
        Self {
            source,
            buffer: b"\r\n".to_vec(),
            taken: 0,
            length: delimiter.len(),
            delimiter: Finder::new(&delimiter).into_owned(),
        }
    }

    /// Where the bytes come from.
    pub(crate) fn source(&mut self) -> &mut R {
        &mut self.source
    }

    /// Steps to the next part: its name; `None` after the last.
    pub(crate) fn next(&mut self) -> io::Result<Option<String>> {
        // What is left of the part before, or of the preamble.
        let mut piece = vec![0; PIECE];
        while self.read_part(&mut piece)? > 0 {}
        self.taken += self.length;
        while self.ahead().len() < 2 {
            self.need_more()?;
        }
        if self.ahead().starts_with(b"--") {
            return Ok(None);
        }
        let end = loop {
            if let Some(end) = memchr::memmem::find(self.ahead(), b"\r\n\r\n") {
                break end;
            }
            if self.ahead().len() > HEAD {
                return Err(wrong("the head of a part does not end"));
            }
            self.need_more()?;
        };
        let name = name_of(&self.ahead()[..end]);
        self.taken += end + 4;
        name.map(Some).ok_or_else(|| wrong("a part has no `content-disposition: form-data; name=...`"))
    }

    /// Reads on in the part; 0 at its end.
    pub(crate) fn read_part(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let ahead = &self.buffer[self.taken..];
            let (safe, ended) = match self.delimiter.find(ahead) {
                Some(at) => (at, true),
                // Its beginning may be the end of what is there.
                None => (ahead.len().saturating_sub(self.length - 1), false),
            };
            if safe > 0 || ended {
                let read = safe.min(out.len());
                out[..read].copy_from_slice(&ahead[..read]);
                self.taken += read;
                return Ok(read);
            }
            self.need_more()?;
        }
    }

    /// Whether nothing but the end follows the part, which was read to its end.
    pub(crate) fn is_last(&mut self) -> io::Result<bool> {
        while self.ahead().len() < self.length + 2 {
            self.need_more()?;
        }
        Ok(&self.ahead()[self.length..self.length + 2] == b"--")
    }

    fn ahead(&self) -> &[u8] {
        &self.buffer[self.taken..]
    }

    fn need_more(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        let from = self.buffer.len();
        self.buffer.resize(from + PIECE, 0);
        let read = self.source.read(&mut self.buffer[from..]);
        self.buffer.truncate(from + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Err(io::Error::new(ErrorKind::UnexpectedEof, "the body ended within the form")),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

/// The name that a part's head gives it.
fn name_of(head: &[u8]) -> Option<String> {
    let head = std::str::from_utf8(head).ok()?;
    let lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
    let (_, value) =
        lines.into_iter().find(|(name, _)| name.trim().eq_ignore_ascii_case("content-disposition"))?;
    let (kind, parameters) = value.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("form-data") {
        return None;
    }
    parameter(parameters, "name")
}

/// The boundary that a content type names.
pub(crate) fn boundary_of(content_type: &str) -> Option<String> {
    let (essence, parameters) = content_type.split_once(';')?;
    if !essence.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    parameter(parameters, "boundary").filter(|boundary| (1..=70).contains(&boundary.len()))
}

/// The value of a parameter, quoted or not.
fn parameter(parameters: &str, wanted: &str) -> Option<String> {
    let mut rest = parameters;
    loop {
        let (name, value) = rest.split_once('=')?;
        let value = value.trim_start();
        let (value, behind) = match value.strip_prefix('"') {
            Some(quoted) => {
                let (mut text, mut chars) = (String::new(), quoted.chars());
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => text.push(chars.next()?),
                        c => text.push(c),
                    }
                }
                (text, chars.as_str())
            }
            None => {
                let end = value.find(';').unwrap_or(value.len());
                (value[..end].trim().to_owned(), &value[end..])
            }
        };
        if name.trim_matches([' ', '\t', ';']).eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives its bytes in small pieces.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let read = self.1.min(self.0.len()).min(out.len());
            out[..read].copy_from_slice(&self.0[..read]);
            self.0 = &self.0[read..];
            Ok(read)
        }
    }

    fn parts(body: &[u8], step: usize) -> io::Result<Vec<(String, Vec<u8>)>> {
        let mut form = Form::new(Slow(body, step), "B");
        let mut parts = Vec::new();
        while let Some(name) = form.next()? {
            let (mut content, mut piece) = (Vec::new(), [0; 3]);
            loop {
                match form.read_part(&mut piece)? {
                    0 => break,
                    read => content.extend_from_slice(&piece[..read]),
                }
            }
            parts.push((name, content));
        }
        Ok(parts)
    }

    const TWO: &[u8] = b"--B\r\nContent-Disposition: form-data; name=\"request\"\r\nContent-Type: application/json\r\n\r\n{}\r\n--B\r\nContent-Disposition: form-data; filename=\"n;a\\\"me=\"; name=content\r\n\r\na\r\n-b\r\n--\r\n--X\r\n\r\n--B--\r\n";

    #[test]
    fn parts_come_out_whole_however_they_come_in() {
        let expected = vec![
            ("request".to_owned(), b"{}".to_vec()),
            ("content".to_owned(), b"a\r\n-b\r\n--\r\n--X\r\n".to_vec()),
        ];
        for step in 1..TWO.len() {
            assert_eq!(parts(TWO, step).unwrap(), expected, "{step}");
        }
        let with_preamble = [b"to be ignored\r\n", TWO, b"so is this"].concat();
        assert_eq!(parts(&with_preamble, 7).unwrap(), expected);
        assert!(parts(b"--B--\r\n", 3).unwrap().is_empty());
    }

    #[test]
    fn a_body_that_breaks_off_is_an_error() {
        for cut in 0..TWO.len() - 4 {
            let error = parts(&TWO[..cut], 5).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{cut}");
        }
    }

    #[test]
    fn heads_that_say_nothing_are_errors() {
        for head in
            ["Content-Disposition: attachment; name=x", "X: y", "Content-Disposition: form-data; filename=x"]
        {
            let body = format!("--B\r\n{head}\r\n\r\nx\r\n--B--");
            assert_eq!(parts(body.as_bytes(), 9).unwrap_err().kind(), ErrorKind::InvalidData, "{head}");
        }
        let endless = [b"--B\r\n".to_vec(), vec![b'x'; 2 * HEAD + PIECE]].concat();
        assert_eq!(parts(&endless, PIECE).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn boundaries() {
        let of = |text| boundary_of(text);
        assert_eq!(of("multipart/form-data; boundary=abc").as_deref(), Some("abc"));
        assert_eq!(of("Multipart/Form-Data; charset=utf-8; Boundary=\"a b\"").as_deref(), Some("a b"));
        for none in [
            "multipart/form-data",
            "multipart/mixed; boundary=x",
            "multipart/form-data; boundary=",
            "application/json",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
