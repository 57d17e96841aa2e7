//! A PNG made by hand, for tests that need one and no more.

use std::io::Write as _;

/// The grey PNG of these rows, each of which begins with the number of its filter.
pub fn grey(width: u32, height: u32, rows: &[u8]) -> Vec<u8> {
    let mut pixels = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    pixels.write_all(rows).expect("memory");
    let pixels = pixels.finish().expect("memory");
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 0, 0, 0, 0]].concat();
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    for (name, body) in [(b"IHDR", &header[..]), (b"IDAT", &pixels), (b"IEND", &[])] {
        let named = [&name[..], body].concat();
        let mut sum = flate2::Crc::new();
        sum.update(&named);
        png.extend((body.len() as u32).to_be_bytes());
        png.extend(&named);
        png.extend(sum.sum().to_be_bytes());
    }
    png
}
