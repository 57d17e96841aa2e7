//! Any bytes through the image path: what comes back is an image of the declared format, within the limits, that fits
//! when it is asked for again. A decoder may panic: that costs one image, as in the service.
#![no_main]

use std::sync::OnceLock;
use std::time::Duration;

use filectx_files::image::{FitLimits, ImagePool, Sniffed, describe, fit, sniff};
use filectx_files::{Cancel, Error};
use filectx_openapi::Limits;
use libfuzzer_sys::{Corpus, fuzz_target};

const LIMITS: FitLimits =
    FitLimits { max_pixels: 1_500, max_side: 64, max_bytes: 2_000, max_source_pixels: 100_000 };

fn quiet() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        if thread.name() != Some("filectx-image") {
            eprintln!("{panic}");
        }
    }));
}

fn run(data: &[u8]) -> Corpus {
    static POOL: OnceLock<ImagePool> = OnceLock::new();
    let pool = POOL.get_or_init(|| ImagePool::new(&Limits::default(), 1));
    let Some(Sniffed::Image(format)) = sniff(data, b"x.tga") else { return Corpus::Reject };
    describe(data, format, data.len() as u64);
    let cancel = Cancel::after(Duration::from_secs(20));
    match fit(data.to_vec(), format, &LIMITS, pool, &cancel) {
        Ok(first) => {
            let (width, height) = (first.info.width.unwrap_or(0), first.info.height.unwrap_or(0));
            assert!(width >= 1 && height >= 1 && width * height <= LIMITS.max_pixels);
            assert!(width.max(height) <= LIMITS.max_side && first.bytes.len() as u64 <= LIMITS.max_bytes);
            assert_eq!(sniff(&first.bytes, b""), Some(Sniffed::Image(first.format)));
            let again = fit(first.bytes.clone(), first.format, &LIMITS, pool, &cancel)
                .expect("what came is an image");
            assert_eq!((again.info.source_width, again.info.source_height), (Some(width), Some(height)));
            assert!(again.bytes == first.bytes, "what came carries more than its picture");
        }
        Err(
            Error::ImageUndecodable { .. } | Error::ImageUnsupported { .. } | Error::ImageTooLarge { .. },
        ) => {}
        Err(other) => panic!("{other:?}"),
    }
    Corpus::Keep
}

fuzz_target!(init: quiet(), |data: &[u8]| -> Corpus { run(data) });
