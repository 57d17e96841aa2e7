//! PNG, row by row where it can be: the source never lies in memory as a whole.

use std::io::Cursor;

use png::{ColorType, DecodeOptions, DecodingError, Limits, Reader, Transformations};

use super::super::pixels::{Layout, Pixels};
use super::super::scale::RowScaler;
use super::{Decoded, Source, Trouble, damaged};

pub(super) fn decode(source: Source<'_>) -> Result<Decoded, Trouble> {
    // Checksums of the pixel stream that are wrong hide no picture, but such a file is not passed on as it is.
    match attempt(source, true) {
        Err(Trouble::Damaged(_)) => attempt(source, false).map(|decoded| Decoded { whole: false, ..decoded }),
        other => other,
    }
}

fn attempt(source: Source<'_>, strict: bool) -> Result<Decoded, Trouble> {
    let row = u64::from(source.outline.size.0) * 8;
    let mut options = DecodeOptions::default();
    options.set_ignore_adler32(!strict);
    options.set_ignore_text_chunk(true);
    options.set_ignore_iccp_chunk(true);
    let mut decoder = png::Decoder::new_with_options(Cursor::new(source.bytes), options);
    decoder.set_limits(Limits {
        bytes: usize::try_from(row * 4).unwrap_or(usize::MAX).saturating_add(16 << 20),
    });
    decoder.set_transformations(Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(trouble)?;
    let layout = match reader.output_color_type().0 {
        ColorType::Grayscale => Layout::Grey,
        ColorType::GrayscaleAlpha => Layout::GreyAlpha,
        ColorType::Rgb => Layout::Rgb,
        ColorType::Rgba => Layout::Rgba,
        ColorType::Indexed => return Err(damaged("its palette is missing")),
    };
    let size = (reader.info().width, reader.info().height);
    if size != source.outline.size {
        return Err(damaged("it declares two sizes"));
    }
    let pixels = if source.target == size || reader.info().interlaced {
        all_at_once(&mut reader, size, layout)?
    } else {
        by_rows(&mut reader, source, layout)?
    };
    // What comes after the pixels may be damaged; they are there all the same.
    let whole = reader.finish().is_ok();
    Ok(Decoded { pixels, size, icc: None, whole })
}

fn trouble(error: DecodingError) -> Trouble {
    match error {
        DecodingError::LimitsExceeded => Trouble::TooLarge,
        error => damaged(error),
    }
}

fn all_at_once(
    reader: &mut Reader<Cursor<&[u8]>>,
    size: (u32, u32),
    layout: Layout,
) -> Result<Pixels, Trouble> {
    let length = reader.output_buffer_size().ok_or(Trouble::TooLarge)?;
    let mut data = vec![0; length];
    reader.next_frame(&mut data).map_err(trouble)?;
    Pixels::new(size, layout, data).ok_or_else(|| damaged("its rows do not add up"))
}

fn by_rows(
    reader: &mut Reader<Cursor<&[u8]>>,
    source: Source<'_>,
    layout: Layout,
) -> Result<Pixels, Trouble> {
    let mut scaler = RowScaler::new(layout, source.outline.size, source.target);
    while let Some(row) = reader.next_row().map_err(trouble)? {
        if scaler.push(row.data())? {
            source.cancel.check()?;
        }
    }
    Ok(scaler.finish()?)
}

pub(super) fn memory(source: Source<'_>) -> u64 {
    let (size, target) = (source.outline.size, source.target);
    let pixels = u64::from(size.0) * u64::from(size.1);
    // Rows of sixteen bits, and what the decoder keeps of the stream.
    let rows = u64::from(size.0) * 32 + (1 << 20);
    let interlaced = source.bytes.get(28).is_some_and(|flag| *flag != 0);
    if size == target || interlaced {
        return rows + pixels * 5;
    }
    rows + RowScaler::memory(4, size, target)
}
