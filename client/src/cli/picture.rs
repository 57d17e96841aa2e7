//! Images on a terminal that can show them, below the lines that tell what they are. Everywhere else these lines are all.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use filectx_client::render::ReadView;
use filectx_files::Cancel;
use filectx_files::image::{ImagePool, Raster, raster};
use filectx_openapi::{BinaryMode, FileContext, ImageFormat, ImageLimits, Limits, ReadFileContextRequest};

use super::Context;
use super::sixel::sixel;
use super::terminal::{Protocol, protocol};

/// What a terminal has room for.
const MAX_SIDE: u64 = 800;
const MAX_PIXELS: u64 = 400_000;
/// So many pictures of one batch are shown.
const MOST: usize = 20;
/// The most base64 in one command of kitty's protocol.
const CHUNK: usize = 4096;

/// The pictures of a batch, as what a terminal has to be sent.
#[derive(Default)]
pub(crate) struct Pictures {
    shown: HashMap<u64, String>,
}

impl Pictures {
    /// The images that `view` tells of, asked for once more in a size for the terminal; none where it shows none.
    pub(crate) fn of(request: &ReadFileContextRequest, view: &ReadView, context: &Context) -> Self {
        let style = context.out.style();
        let images = view.files.iter().filter(|file| file.about.image.is_some());
        let indexes: Vec<u64> = images.map(|file| file.request_index).take(MOST).collect();
        if !style.terminal || !style.color || indexes.is_empty() {
            return Self::default();
        }
        let Some(protocol) = protocol() else { return Self::default() };
        let file = |index: &u64| request.files.get(usize::try_from(*index).ok()?).cloned();
        let image = ImageLimits { max_pixels: Some(MAX_PIXELS), max_side: Some(MAX_SIDE), max_bytes: None };
        let request = ReadFileContextRequest {
            files: indexes.iter().filter_map(file).collect(),
            binary: BinaryMode::Content,
            image: Some(image),
            max_file_bytes: None,
            ..request.clone()
        };
        // Without an answer there is no picture; what the image is has been told.
        let answer = context.backend.read(&request).unwrap_or_default();
        let pool = ImagePool::new(&Limits::default(), 1);
        let shown = answer.file_contexts.into_iter().filter_map(|context| {
            let index = *indexes.get(usize::try_from(context.request_index).ok()?)?;
            Some((index, sequence(context, protocol, &pool)?))
        });
        Self { shown: shown.collect() }
    }

    /// The picture of the file `index`, with a line end behind it.
    pub(crate) fn take(&mut self, index: u64) -> Option<String> {
        self.shown.remove(&index).map(|picture| picture + "\n")
    }
}

/// What shows the image. What comes from a host is no part of it but as pixels or in base64.
fn sequence(context: FileContext, protocol: Protocol, pool: &ImagePool) -> Option<String> {
    let format = context.image?.format?;
    let bytes = context.binary_content?.0;
    if protocol == Protocol::Iterm {
        return Some(iterm(&bytes));
    }
    if protocol == Protocol::Kitty && format == ImageFormat::Png {
        return Some(kitty("f=100", &bytes));
    }
    let image = raster(bytes, MAX_PIXELS, pool, &Cancel::after(Duration::from_secs(10)))?;
    Some(match protocol {
        Protocol::Sixel => sixel(&image),
        Protocol::Kitty | Protocol::Iterm => raw(&image),
    })
}

fn raw(image: &Raster) -> String {
    kitty(&format!("f=24,s={},v={}", image.width, image.height), &image.rgb)
}

/// kitty's protocol: shown at once, and no answer wanted.
fn kitty(format: &str, bytes: &[u8]) -> String {
    let text = base64_simd::STANDARD.encode_to_string(bytes);
    let mut out = String::with_capacity(text.len() + text.len() / CHUNK * 16 + 64);
    let last = text.len().saturating_sub(1) / CHUNK;
    for (at, chunk) in text.as_bytes().chunks(CHUNK).enumerate() {
        let first = if at == 0 { format!("a=T,q=2,{format},") } else { String::new() };
        let more = u8::from(at < last);
        // Base64 is text.
        let chunk = String::from_utf8_lossy(chunk);
        let _ = write!(out, "\x1b_G{first}m={more};{chunk}\x1b\\");
    }
    out
}

fn iterm(bytes: &[u8]) -> String {
    let text = base64_simd::STANDARD.encode_to_string(bytes);
    format!("\x1b]1337;File=inline=1;size={};preserveAspectRatio=1:{text}\x07", bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kitty_takes_it_in_pieces() {
        let one = kitty("f=100", b"abc");
        assert_eq!(one, "\x1b_Ga=T,q=2,f=100,m=0;YWJj\x1b\\");
        let many = kitty("f=24,s=2000,v=1", &[7; 6000]);
        assert!(many.starts_with("\x1b_Ga=T,q=2,f=24,s=2000,v=1,m=1;"));
        let pieces: Vec<&str> = many.split("\x1b\\").filter(|piece| !piece.is_empty()).collect();
        assert_eq!(pieces.len(), 2);
        assert!(pieces[1].starts_with("\x1b_Gm=0;"));
        let text: String =
            pieces.iter().filter_map(|piece| piece.split_once(';')).map(|(_, text)| text).collect();
        assert_eq!(base64_simd::STANDARD.decode_to_vec(text).unwrap(), [7; 6000]);
    }

    #[test]
    fn iterm_takes_the_file() {
        assert_eq!(iterm(b"abc"), "\x1b]1337;File=inline=1;size=3;preserveAspectRatio=1:YWJj\x07");
    }
}
