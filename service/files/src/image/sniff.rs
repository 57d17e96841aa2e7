//! Which image a file is, by its first bytes (the name only helps where the contract says so). A signature alone is
//! not enough where its letters could begin a text: then the header has to be plausible as well.
//!
//! Not for decoding: what is sniffed here may still be damaged.

use filectx_openapi::ImageFormat;

use super::pnm;

/// An image by its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sniffed {
    /// One that can be shown.
    Image(Format),
    /// One that is known by name only.
    Unsupported {
        /// What people call it, in lower case.
        format: &'static str,
        /// Its media type.
        mime_type: &'static str,
    },
}

/// The formats that are decoded.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Png,
    Jpeg,
    Gif,
    Webp,
    Bmp,
    Tiff,
    Ico,
    Tga,
    Pnm,
    Qoi,
}

impl Sniffed {
    /// The media type.
    pub fn mime_type(self) -> &'static str {
        match self {
            Sniffed::Image(format) => format.mime_type(),
            Sniffed::Unsupported { mime_type, .. } => mime_type,
        }
    }

    /// The format in the contract's words.
    pub fn noun(self) -> ImageFormat {
        match self {
            Sniffed::Image(format) => format.noun(),
            Sniffed::Unsupported { format, .. } => ImageFormat::Other(format.to_owned()),
        }
    }
}

impl Format {
    /// The media type.
    pub fn mime_type(self) -> &'static str {
        match self {
            Format::Png => "image/png",
            Format::Jpeg => "image/jpeg",
            Format::Gif => "image/gif",
            Format::Webp => "image/webp",
            Format::Bmp => "image/bmp",
            Format::Tiff => "image/tiff",
            Format::Ico => "image/x-icon",
            Format::Tga => "image/x-tga",
            Format::Pnm => "image/x-portable-anymap",
            Format::Qoi => "image/qoi",
        }
    }

    /// The name that errors use.
    pub fn name(self) -> &'static str {
        match self {
            Format::Png => "png",
            Format::Jpeg => "jpeg",
            Format::Gif => "gif",
            Format::Webp => "webp",
            Format::Bmp => "bmp",
            Format::Tiff => "tiff",
            Format::Ico => "ico",
            Format::Tga => "tga",
            Format::Pnm => "pnm",
            Format::Qoi => "qoi",
        }
    }

    /// The format in the contract's words.
    pub fn noun(self) -> ImageFormat {
        match self {
            Format::Png => ImageFormat::Png,
            Format::Jpeg => ImageFormat::Jpeg,
            Format::Gif => ImageFormat::Gif,
            Format::Webp => ImageFormat::Webp,
            Format::Bmp => ImageFormat::Bmp,
            Format::Tiff => ImageFormat::Tiff,
            Format::Ico => ImageFormat::Ico,
            Format::Tga => ImageFormat::Tga,
            Format::Pnm => ImageFormat::Pnm,
            Format::Qoi => ImageFormat::Qoi,
        }
    }
}

/// The image that begins with `head` (8 KiB, or all of a shorter file) in a file called `name`.
pub fn sniff(head: &[u8], name: &[u8]) -> Option<Sniffed> {
    let format = match head {
        // The second form is what a transfer in text mode leaves of a PNG: no text either.
        [0x89, b'P', b'N', b'G', b'\r' | b'\n', ..] => Format::Png,
        // Any number of fill bytes may come before the first marker.
        [0xff, 0xd8, 0xff] | [0xff, 0xd8, 0xff, 0xc0..=0xff, ..] => Format::Jpeg,
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', rest @ ..] if is_binary(rest) => Format::Gif,
        [b'R', b'I', b'F', b'F', size @ ..] if is_webp(size) => Format::Webp,
        [b'B', b'M', ..] if is_bmp(head) => Format::Bmp,
        [0, 0, 1 | 2, 0, ..] if is_ico(head) => Format::Ico,
        [b'P', b'4'..=b'7', ..] if is_pnm(head) => Format::Pnm,
        [b'q', b'o', b'i', b'f', ..] if is_qoi(head) => Format::Qoi,
        _ => return unsupported(head, name).or_else(|| late(head, name).map(Sniffed::Image)),
    };
    Some(Sniffed::Image(format))
}

/// Formats that others build on, or that have no signature: asked last.
fn late(head: &[u8], name: &[u8]) -> Option<Format> {
    match head {
        [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] if head.len() >= 8 => Some(Format::Tiff),
        _ if has_extension(name, &["tga", "icb", "vda", "vst", "targa"]) && is_tga(head) => Some(Format::Tga),
        _ => None,
    }
}

const RAW: &[&str] =
    &["dng", "nef", "nrw", "arw", "srf", "sr2", "pef", "srw", "rwl", "iiq", "3fr", "erf", "kdc", "cr2"];

fn unsupported(head: &[u8], name: &[u8]) -> Option<Sniffed> {
    let (format, mime_type) = match head {
        [_, _, _, _, b'f', b't', b'y', b'p', brands @ ..] => iso_media(head, brands)?,
        [b'8', b'B', b'P', b'S', 0, 1, ..] => ("psd", "image/vnd.adobe.photoshop"),
        [b'8', b'B', b'P', b'S', 0, 2, ..] => ("psb", "image/vnd.adobe.photoshop"),
        [0xff, 0x0a, ..] if is_binary(&head[2..]) => ("jxl", "image/jxl"),
        [0, 0, 0, 12, b'J', b'X', b'L', b' ', ..] => ("jxl", "image/jxl"),
        [0, 0, 0, 12, b'j', b'P', b' ', b' ', ..] | [0xff, 0x4f, 0xff, 0x51, ..] => {
            ("jpeg 2000", "image/jp2")
        }
        [b'I', b'I', 0xbc, 0 | 1, ..] => ("jpeg xr", "image/jxr"),
        [b'g', b'i', b'm', b'p', b' ', b'x', b'c', b'f', b' ', ..] if is_binary(head) => {
            ("xcf", "image/x-xcf")
        }
        [0x76, 0x2f, 0x31, 0x01, ..] => ("openexr", "image/x-exr"),
        [b'i', b'c', b'n', b's', 0, ..] => ("icns", "image/icns"),
        [b'I', b'I', 42, 0, _, _, _, _, b'C', b'R', ..] => ("camera raw", "image/x-canon-cr2"),
        [b'I', b'I', b'R', b'O' | b'S', ..] | [b'M', b'M', b'O', b'R', ..] if is_binary(head) => {
            ("camera raw", "image/x-olympus-orf")
        }
        [b'I', b'I', b'U', 0, ..] => ("camera raw", "image/x-panasonic-rw2"),
        [b'I', b'I', 42, 0, ..] | [b'M', b'M', 0, 42, ..] if has_extension(name, RAW) => {
            ("camera raw", "image/x-raw")
        }
        _ if head.starts_with(b"FUJIFILMCCD-RAW") => ("camera raw", "image/x-fuji-raf"),
        _ => return None,
    };
    Some(Sniffed::Unsupported { format, mime_type })
}

/// The still images among the ISO media files, by their brands.
fn iso_media(head: &[u8], brands: &[u8]) -> Option<(&'static str, &'static str)> {
    let size = u32::from_be_bytes(head.get(..4)?.try_into().ok()?) as usize;
    let brands = brands.get(..size.checked_sub(8)?.min(brands.len()))?;
    let major = brands.get(..4)?;
    // Major brand, four bytes of version, compatible brands.
    let all = || std::iter::once(major).chain(brands.get(8..).unwrap_or(&[]).chunks_exact(4));
    let has = |wanted: &[&[u8]]| all().any(|brand| wanted.contains(&brand));
    match major {
        b"crx " => Some(("camera raw", "image/x-canon-cr3")),
        b"isom" | b"mp41" | b"mp42" | b"qt  " => None,
        _ if has(&[b"avif", b"avis"]) => Some(("avif", "image/avif")),
        _ if has(&[b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"]) => {
            Some(("heic", "image/heic"))
        }
        _ => None,
    }
}

fn has_extension(name: &[u8], extensions: &[&str]) -> bool {
    let Some(dot) = memchr::memrchr(b'.', name) else { return false };
    extensions.iter().any(|extension| name[dot + 1..].eq_ignore_ascii_case(extension.as_bytes()))
}

/// Whether these bytes are no text: not UTF-8, or with controls (a lone one is forgiven, as in the rule for texts).
fn is_binary(bytes: &[u8]) -> bool {
    let bytes = &bytes[..bytes.len().min(8192)];
    let whole = match std::str::from_utf8(bytes) {
        Ok(text) => text.as_bytes(),
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        Err(_) => return true,
    };
    let controls = whole.iter().filter(|byte| is_control(**byte)).count();
    controls > 1.max(whole.len() / 100)
}

fn is_control(byte: u8) -> bool {
    matches!(byte, 0..=7 | 14..=26 | 31 | 127)
}

fn is_webp(after_riff: &[u8]) -> bool {
    let [size @ .., _, _, _, _, _, _, _, _] = &after_riff[..after_riff.len().min(12)] else { return false };
    size.len() == 4
        && after_riff[4..].starts_with(b"WEBP")
        && (after_riff[8..].starts_with(b"VP8") || size.iter().any(|byte| is_control(*byte)))
}

fn u16_le(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn u32_le(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn is_bmp(head: &[u8]) -> bool {
    let (Some(pixels), Some(header)) = (u32_le(head, 10), u32_le(head, 14)) else { return false };
    matches!(header, 12 | 16 | 40 | 52 | 56 | 64 | 108 | 124) && pixels >= 14 + header && pixels < 1 << 24
}

fn is_ico(head: &[u8]) -> bool {
    let (Some(count), Some(size), Some(offset)) = (u16_le(head, 4), u32_le(head, 14), u32_le(head, 18))
    else {
        return false;
    };
    (1..=1024).contains(&count)
        && size >= 40
        && offset >= 6 + 16 * count
        && offset < 1 << 24
        && matches!(head[9], 0 | 255)
}

fn is_qoi(head: &[u8]) -> bool {
    head.len() >= 14 && matches!(head[12], 3 | 4) && matches!(head[13], 0 | 1)
}

fn is_tga(head: &[u8]) -> bool {
    let (Some(width), Some(height)) = (u16_le(head, 12), u16_le(head, 14)) else { return false };
    let Some(&[_, map, kind, .., map_depth, _, _, _, _, _, _, _, _, depth, flags]) = head.get(..18) else {
        return false;
    };
    let colours = match kind {
        1 | 9 => map == 1 && matches!(map_depth, 15 | 16 | 24 | 32) && matches!(depth, 8 | 16),
        2 | 10 => map <= 1 && matches!(depth, 15 | 16 | 24 | 32),
        3 | 11 => map == 0 && matches!(depth, 8 | 16),
        _ => false,
    };
    colours && width > 0 && height > 0 && flags & 0x0f <= 8 && is_binary(head)
}

/// A PNM header of one of the binary kinds, and a body that is no text.
fn is_pnm(head: &[u8]) -> bool {
    let Some(header) = pnm::header(head) else { return false };
    let body = &head[header.length..];
    // A tiny picture is proven by its exact length; one control is enough then.
    let exact =
        body.len() as u64 == header.body && body.iter().any(|byte| is_control(*byte) || *byte >= 0x80);
    exact || is_binary(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &[u8], name: &str, expect: Option<&str>) {
        let found = sniff(head, name.as_bytes());
        let found = found.map(|sniffed| match sniffed {
            Sniffed::Image(format) => format.name(),
            Sniffed::Unsupported { format, .. } => format,
        });
        assert_eq!(found, expect, "{name}: {:?}", head.escape_ascii().to_string());
    }

    #[test]
    fn content_decides() {
        let ico = b"\0\0\x01\0\x01\0\x10\x10\0\0\x01\0\x20\0\x68\x04\0\0\x16\0\0\0\x28";
        let bmp = b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x02\0\0\0";
        let tga = b"\0\0\x02\0\0\0\0\0\0\0\0\0\x02\0\x02\0\x18\x20\x01\x02\x03\x04";
        let cases: &[(&[u8], &str, Option<&str>)] = &[
            (b"\x89PNG\r\n\x1a\n", "a.txt", Some("png")),
            (b"\x89PNG\r\n\x1a\nnot really", "a", Some("png")),
            (b"\x89PNG\n\x1a\n\0\0", "a", Some("png")),
            (b"\xff\xd8\xff", "a.png", Some("jpeg")),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", "a.png", Some("jpeg")),
            (b"\xff\xd8\xff\xff\xff\xe0", "a", Some("jpeg")),
            (b"\xff\xd8\xff\0", "a.jpg", None),
            (b"GIF89a\x02\0\x02\0\x80\0\0", "a", Some("gif")),
            (b"GIF89a is a format of 1989.\n", "a.gif", None),
            (b"RIFF\x24\0\0\0WEBPVP8L", "a", Some("webp")),
            (b"RIFF\x24\0\0\0WAVEfmt ", "a.webp", None),
            (b"RIFF", "a.webp", None),
            (bmp, "a", Some("bmp")),
            (b"BMW is a maker of cars, and of engines", "a.bmp", None),
            (b"II*\0\x08\0\0\0", "a", Some("tiff")),
            (b"MM\0*\0\0\0\x08", "a", Some("tiff")),
            (b"II*\0\x08\0\0\0", "a.NEF", Some("camera raw")),
            (b"II*\0\x10\0\0\0CR\x02\0", "a.tif", Some("camera raw")),
            (ico, "a", Some("ico")),
            (b"\0\0\x01\0\0\0\0\0", "a.ico", None),
            (tga, "a.TGA", Some("tga")),
            (tga, "a", None),
            (b"qoif\0\0\0\x02\0\0\0\x02\x04\0", "a", Some("qoi")),
            (b"qoif is a format", "a.qoi", None),
            (b"P5\n# made by hand\n2 2\n255\n\0\x01\x02\x03", "a", Some("pnm")),
            (b"P5 1 1 255\n\0", "a", Some("pnm")),
            (b"P4 8 1\n\xf0", "a", Some("pnm")),
            (b"P6 2 1 255 \xff\0\0\0\xff\0", "a", Some("pnm")),
            (
                b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n\x01\x02\x03\xff",
                "a",
                Some("pnm"),
            ),
            (b"P5 is the fifth parameter\n", "a.pgm", None),
            (b"P5 10 10 255 follow as text, and more text\n", "a.pgm", None),
            (b"P2\n2 2\n255\n0 1 2 3\n", "a.pgm", None),
            (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "a.jpg", Some("heic")),
            (b"\0\0\0\x1cftypmif1\0\0\0\0mif1avifmiaf", "a", Some("avif")),
            (b"\0\0\0\x18ftypisom\0\0\0\0isommp41", "a.mp4", None),
            (b"8BPS\0\x01\0\0", "a", Some("psd")),
            (b"8BPS is the magic of PSD", "a.psd", None),
            (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "a.svg", None),
            (b"version https://git-lfs.github.com/spec/v1\n", "a.png", None),
            (b"", "a.png", None),
        ];
        for (head, name, expect) in cases {
            check(head, name, *expect);
        }
    }

    #[test]
    fn every_prefix_is_bearable() {
        let heads: [&[u8]; 5] = [
            b"\0\0\x01\0\x01\0\x10\x10\0\0\x01\0\x20\0\x68\x04\0\0\x16\0\0\0\x28",
            b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nENDHDR\n\x01",
            b"P6 99999999999999999999 1 255 \xff",
            b"\0\0\0\x04ftypmif1",
            b"RIFF\x24\0\0\0WEBPVP8L",
        ];
        for head in heads {
            for end in 0..=head.len() {
                sniff(&head[..end], b"a.tga");
            }
        }
    }
}
