//! The header of the binary kinds of PNM: words and numbers, with comments between them.

/// The header of a binary PNM.
pub(super) struct Header {
    pub(super) width: u64,
    pub(super) height: u64,
    /// Length of the header, and of the pixels that it announces.
    pub(super) length: usize,
    pub(super) body: u64,
}

/// The header of a binary PNM that begins with `P` and `4` to `7`.
pub(super) fn header(head: &[u8]) -> Option<Header> {
    let kind = *head.get(1)?;
    let header = if kind == b'7' { pam_header(head)? } else { classic_header(head, kind)? };
    (header.width > 0 && header.height > 0).then_some(header)
}

fn pam_header(head: &[u8]) -> Option<Header> {
    let length = memchr::memmem::find(&head[..head.len().min(1024)], b"\nENDHDR\n")? + 8;
    let text = std::str::from_utf8(&head[..length]).ok()?;
    let word = |name: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
    };
    let (width, height) = (word("WIDTH ")?, word("HEIGHT ")?);
    let sample = if word("MAXVAL ")? > 255 { 2 } else { 1 };
    let body = width.checked_mul(height)?.checked_mul(word("DEPTH ")?)?.checked_mul(sample)?;
    Some(Header { width, height, length, body })
}

fn classic_header(head: &[u8], kind: u8) -> Option<Header> {
    let mut at = 2;
    let mut numbers = [0u64; 3];
    let wanted = if kind == b'4' { 2 } else { 3 };
    for number in &mut numbers[..wanted] {
        let start = at;
        loop {
            match head.get(at)? {
                b'#' if at > 2 => at += memchr::memchr(b'\n', &head[at..])?,
                byte if byte.is_ascii_whitespace() => at += 1,
                _ => break,
            }
        }
        let digits = head[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if at == start || digits == 0 {
            return None;
        }
        *number = std::str::from_utf8(&head[at..at + digits]).ok()?.parse().ok()?;
        at += digits;
    }
    head.get(at)?.is_ascii_whitespace().then_some(())?;
    let [width, height, maximum] = numbers;
    let row = match kind {
        b'4' => width.div_ceil(8),
        b'5' => width.checked_mul(if maximum > 255 { 2 } else { 1 })?,
        _ => width.checked_mul(if maximum > 255 { 6 } else { 3 })?,
    };
    Some(Header { width, height, length: at + 1, body: row.checked_mul(height)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        type Case<'a> = (&'a [u8], Option<(u64, u64, u64)>);
        let cases: &[Case<'_>] = &[
            (b"P5\n# made by hand\n3 2\n255\n......", Some((3, 2, 6))),
            (b"P6 3 2 65535 ", Some((3, 2, 36))),
            (b"P4 9 2\n", Some((9, 2, 4))),
            (b"P7\nWIDTH 3\nHEIGHT 2\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n", Some((3, 2, 24))),
            (b"P5 0 2 255 ", None),
            (b"P5 3 2", None),
            (b"P5 3 2 255", None),
            (b"P6 99999999999999999999 1 255 ", None),
            (b"P", None),
        ];
        for (bytes, expect) in cases {
            let found = header(bytes).map(|header| (header.width, header.height, header.body));
            assert_eq!(found, *expect, "{:?}", bytes.escape_ascii().to_string());
        }
    }
}
