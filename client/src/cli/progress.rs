//! How far a batch is, on a terminal's stderr, once it takes over a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Nothing is shown of what takes less.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the line is drawn.
const TICK: Duration = Duration::from_millis(100);

/// Runs `work`, which tells how many files of `total` have an outcome; `draws`: whether there is a terminal to show it on.
pub(crate) fn shown<T>(
    draws: bool,
    total: usize,
    work: impl FnOnce(Box<dyn Fn(u64) + Send + Sync>) -> T,
) -> T {
    if !draws {
        return work(Box::new(|_| {}));
    }
    let files = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&files);
    let (done, ended) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || draw(total as u64, &told, &ended));
        // Dropped at the end of the scope's work, whatever that is.
        let _done = done;
        work(Box::new(move |count| files.store(count, Ordering::Relaxed)))
    })
}

fn draw(total: u64, files: &AtomicU64, ended: &mpsc::Receiver<()>) {
    if ended.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{elapsed} [{bar:30}] {pos} of {len} files") {
        bar.set_style(style.progress_chars("=> "));
    }
    loop {
        bar.set_position(files.load(Ordering::Relaxed));
        bar.tick();
        if ended.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout) {
            return bar.finish_and_clear();
        }
    }
}
