//! Sixel: six rows at once, colour by colour. 252 colours that lie evenly, and errors handed on to the neighbours
//! (Floyd and Steinberg), are enough for a look.

use std::fmt::Write as _;

use filectx_files::image::Raster;

/// Steps of red, green and blue; the eye tells greens apart best.
const STEPS: [u16; 3] = [6, 7, 6];

/// The image as a sixel sequence.
pub(crate) fn sixel(image: &Raster) -> String {
    let (width, height) = (image.width as usize, image.height as usize);
    let indexes = indexes(&image.rgb, width);
    // Aspect 1:1, and the size.
    let mut out = format!("\x1bP0;1q\"1;1;{width};{height}");
    let mut defined = [false; 256];
    for (rows, band) in indexes.chunks(width.max(1) * 6).enumerate() {
        if rows > 0 {
            out.push('-');
        }
        let mut used = [false; 256];
        band.iter().for_each(|index| used[usize::from(*index)] = true);
        let colours = (0..=255u8).filter(|index| used[usize::from(*index)]);
        for (at, index) in colours.enumerate() {
            if at > 0 {
                out.push('$');
            }
            define(index, &mut defined, &mut out);
            line(band, width, index, &mut out);
        }
    }
    out.push_str("\x1b\\");
    out
}

/// Each pixel's colour: its place among the even ones.
fn indexes(rgb: &[u8], width: usize) -> Vec<u8> {
    let row = width * 3;
    // What is left over from pixels before, for this row and the next, in sixteenths.
    let (mut errors, mut below) = (vec![0i32; row + 6], vec![0i32; row + 6]);
    let mut indexes = Vec::with_capacity(rgb.len() / 3);
    for samples in rgb.chunks_exact(row.max(1)) {
        for (x, pixel) in samples.as_chunks::<3>().0.iter().enumerate() {
            let mut index = 0u16;
            for (channel, (sample, steps)) in pixel.iter().zip(STEPS).enumerate() {
                let at = x * 3 + channel + 3;
                let wanted = (i32::from(*sample) + errors[at] / 16).clamp(0, 255);
                let highest = i32::from(steps) - 1;
                let step = (wanted * highest + 127) / 255;
                let left = wanted - step * 255 / highest;
                errors[at + 3] += left * 7;
                below[at - 3] += left * 3;
                below[at] += left * 5;
                below[at + 3] += left;
                index = index * steps + step as u16;
            }
            indexes.push(index as u8);
        }
        std::mem::swap(&mut errors, &mut below);
        below.fill(0);
    }
    indexes
}

/// Chooses a colour; says what it is when it comes for the first time, in percent.
fn define(index: u8, defined: &mut [bool; 256], out: &mut String) {
    let _ = write!(out, "#{index}");
    if !std::mem::replace(&mut defined[usize::from(index)], true) {
        let index = u16::from(index);
        let [red, green, blue] =
            [index / (STEPS[1] * STEPS[2]), index / STEPS[2] % STEPS[1], index % STEPS[2]];
        let percent = |step: u16, steps: u16| step * 100 / (steps - 1);
        let _ = write!(
            out,
            ";2;{};{};{}#{index}",
            percent(red, STEPS[0]),
            percent(green, STEPS[1]),
            percent(blue, STEPS[2])
        );
    }
}

/// Where in a band the colour is: a character for each column, runs of one as `!COUNT` and it.
fn line(band: &[u8], width: usize, index: u8, out: &mut String) {
    let column = |x: usize| {
        let bits = (0..6).filter(|y| band.get(y * width + x) == Some(&index)).map(|y| 1u8 << y);
        char::from(b'?' + bits.sum::<u8>())
    };
    let mut run = (column(0), 0);
    for x in 0..width {
        let next = column(x);
        if next != run.0 {
            repeat(run, out);
            run = (next, 0);
        }
        run.1 += 1;
    }
    // What is empty up to the end needs no word.
    if run.0 != '?' {
        repeat(run, out);
    }
}

fn repeat((character, count): (char, usize), out: &mut String) {
    if count > 3 {
        let _ = write!(out, "!{count}{character}");
    } else {
        out.extend(std::iter::repeat_n(character, count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_runs_and_colours() {
        // Eight columns, seven rows: red, but for a black row at the end.
        let rgb = [[255, 0, 0].repeat(48), [0, 0, 0].repeat(8)].concat();
        let text = sixel(&Raster { width: 8, height: 7, rgb });
        assert_eq!(text, "\x1bP0;1q\"1;1;8;7#210;2;100;0;0#210!8~-#0;2;0;0;0#0!8@\x1b\\");
    }

    #[test]
    fn greys_between_the_steps_are_mixed() {
        let indexes = indexes(&[[100, 100, 100].repeat(64), [100, 100, 100].repeat(64)].concat(), 64);
        let first = indexes[0];
        assert!(indexes.iter().any(|index| *index != first));
        assert_eq!(indexes.len(), 128);
    }
}
