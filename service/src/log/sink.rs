//! Where log lines go on their way out: into memory, and from there, several at a time, to a writer on a thread of its own.
//! A request never waits for whoever reads the log; where nobody does, lines are lost, and counted.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// The most bytes that wait.
const MOST: usize = 1 << 20;
/// How long lines are gathered before they are written.
const GATHER: Duration = Duration::from_millis(20);
/// How long the end waits for a reader.
const LAST: Duration = Duration::from_secs(1);

/// A way out for log lines. Dropping the one that [`Sink::new`] made writes what waits.
#[derive(Debug)]
pub struct Sink {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<u8>,
    lost: u64,
    ended: bool,
    done: bool,
}

impl Sink {
    /// A way out to `writer`.
    pub fn new(writer: impl Write + Send + 'static) -> Self {
        let shared = Arc::<Shared>::default();
        let to = Arc::clone(&shared);
        let thread =
            std::thread::Builder::new().name("filectxd-log".into()).spawn(move || write_out(&to, writer));
        // A service that can have no thread has other troubles; it runs without a log.
        Self { shared, thread: thread.ok() }
    }
}

/// Another hand on the same sink; its end ends nothing.
impl Clone for Sink {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), thread: None }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        let Some(_thread) = self.thread.take() else { return };
        let mut state = self.shared.lock();
        state.ended = true;
        self.shared.changed.notify_all();
        // The thread itself is not waited for: a reader that takes nothing would hold up the end.
        let done = self.shared.changed.wait_timeout_while(state, LAST, |state| !state.done);
        drop(done.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for &Sink {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut state = self.shared.lock();
        if state.lines.len() + line.len() > MOST {
            state.lost += 1;
            return Ok(line.len());
        }
        // The thread sleeps only while nothing waits.
        let wakes = state.lines.is_empty();
        state.lines.extend_from_slice(line);
        drop(state);
        if wakes {
            self.shared.changed.notify_all();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Sink {
    type Writer = &'a Sink;

    fn make_writer(&'a self) -> &'a Sink {
        self
    }
}

fn write_out(shared: &Shared, mut writer: impl Write) {
    let mut lines = Vec::new();
    loop {
        let state = shared.lock();
        let asleep = |state: &mut State| state.lines.is_empty() && !state.ended;
        let state = shared.changed.wait_while(state, asleep).unwrap_or_else(PoisonError::into_inner);
        let waited = shared.changed.wait_timeout_while(state, GATHER, |state| !state.ended);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut lines, &mut state.lines);
        let (lost, ended) = (std::mem::take(&mut state.lost), state.ended);
        drop(state);
        // A log that cannot be written can be told nowhere.
        let _ = writer.write_all(&lines);
        if lost > 0 {
            let _ = writeln!(writer, "{lost} log lines were lost, as nobody read them");
        }
        let _ = writer.flush();
        lines.clear();
        if ended {
            shared.lock().done = true;
            shared.changed.notify_all();
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// A writer that hands on what it got, and waits for its reader each time.
    struct Slow(mpsc::SyncSender<Vec<u8>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_vec()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_line_comes_out_in_order_and_the_last_at_the_end() {
        let (send, receive) = mpsc::sync_channel(1000);
        let sink = Sink::new(Slow(send));
        let lines: String = (0..1000).map(|n| format!("line {n}\n")).collect();
        lines.split_inclusive('\n').for_each(|line| (&sink.clone()).write_all(line.as_bytes()).unwrap());
        drop(sink);
        let out: Vec<u8> = receive.iter().flatten().collect();
        assert_eq!(String::from_utf8(out).unwrap(), lines);
    }

    #[test]
    fn a_log_that_nobody_reads_holds_up_nobody() {
        let (send, receive) = mpsc::sync_channel(0);
        let sink = Sink::new(Slow(send));
        let line = vec![b'x'; 1000];
        for _ in 0..3000 {
            (&sink).write_all(&line).unwrap();
        }
        let out = std::thread::spawn(move || receive.iter().flatten().collect::<Vec<u8>>());
        drop(sink);
        let out = String::from_utf8(out.join().unwrap()).unwrap();
        assert!(out.len() < 2 * MOST + 1000 && out.ends_with(" log lines were lost, as nobody read them\n"));
    }
}
