//! A search from the command line, for measuring: `find DIRECTORY PATTERN [MAX_RESULTS]`. Prints the counts alone.
#![allow(clippy::print_stdout, reason = "it is a program")]

use std::time::{Duration, Instant};

use filectx_files::{Cancel, FenceConfig, Files};
use filectx_openapi::{FindTextRequest, Limits};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: find DIRECTORY PATTERN [MAX_RESULTS]";
    let (cwd, pattern) = (args.next().ok_or(usage)?, args.next().ok_or(usage)?);
    let max_results: u64 = args.next().map_or(Ok(5_000), |most| most.parse())?;
    let request = serde_json::json!({"cwd": cwd, "pattern": pattern, "max_results": max_results});
    let request: FindTextRequest = serde_json::from_value(request)?;
    let files = Files::new(&FenceConfig::default(), Limits::default())?;
    let start = Instant::now();
    let found =
        files.find_text(&request, &Cancel::after(Duration::from_secs(600))).map_err(|error| error.message)?;
    println!(
        "{} rows of {} files in {:.1?}; {:?}, {} errors, cut: {}",
        found.rows.len(),
        found.files_searched,
        start.elapsed(),
        found.skipped,
        found.error_count,
        found.truncation.is_some()
    );
    Ok(())
}
