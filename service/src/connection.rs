//! One connection: hyper between a stream and the door, and a watch over callers that do not go on. hyper's own time
//! limit sets a timer for each request; this one looks at all of it now and then.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};

use crate::again::Again;
use crate::answer::Holding;
use crate::door::Door;

/// The longest that a request's head may take, from its first byte on.
const HEAD: Duration = Duration::from_secs(10);
/// The longest that a connection may wait for its next request.
const IDLE: Duration = Duration::from_secs(600);
/// The longest that a caller may take nothing of its answer.
const STALLED: Duration = Duration::from_secs(60);
/// How often that is looked at.
const LOOK: Duration = Duration::from_secs(5);

/// Answers what comes over `stream`, until either side ends it or `stopped` turns true.
pub(crate) async fn answer<S>(door: Door, stream: S, mut stopped: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let progress = Arc::new(Progress::new(Instant::now()));
    let service = service_fn({
        let progress = Arc::clone(&progress);
        move |request| {
            let (door, busy) = (door.clone(), Busy::begin(&progress));
            async move {
                let answer = door.answer(request).await;
                Ok::<_, Infallible>(answer.map(|body| Holding { body, _held: busy }))
            }
        }
    });
    let stream = TokioIo::new(Watched { stream, progress: Arc::clone(&progress) });
    // Without a timer hyper sets no time limit of its own.
    let connection = http1::Builder::new().header_read_timeout(None).serve_connection(stream, service);
    let mut connection = std::pin::pin!(Again::new(connection));
    let mut look = tokio::time::interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stopping = false;
    loop {
        tokio::select! {
            biased;
            // What breaks here is the caller's end: it is told nowhere else either.
            _ = connection.as_mut() => return,
            _ = stopped.wait_for(|stopped| *stopped), if !stopping => {
                stopping = true;
                connection.as_mut().future().graceful_shutdown();
            }
            _ = look.tick() => {
                if progress.is_over(Instant::now()) {
                    return;
                }
            }
        }
    }
}

/// How far a connection is. Times are milliseconds after `start`, plus one; zero is never.
#[derive(Debug)]
struct Progress {
    start: Instant,
    /// Since when it waits for a head to begin.
    idle: AtomicU64,
    /// Since when a head is arriving.
    head: AtomicU64,
    /// Since when the caller takes nothing.
    stalled: AtomicU64,
}

impl Progress {
    fn new(start: Instant) -> Self {
        let (idle, head, stalled) = (AtomicU64::new(1), AtomicU64::new(0), AtomicU64::new(0));
        Self { start, idle, head, stalled }
    }

    fn at(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.start).as_millis() as u64 + 1
    }

    /// The first bytes of a head came, if one was waited for.
    fn read(&self) {
        if self.idle.load(Ordering::Relaxed) != 0 {
            self.idle.store(0, Ordering::Relaxed);
            self.head.store(self.at(Instant::now()), Ordering::Relaxed);
        }
    }

    /// The caller took something of its answer, or nothing.
    fn wrote(&self, something: bool) {
        match (something, self.stalled.load(Ordering::Relaxed)) {
            (true, 0) => {}
            (true, _) => {
                self.stalled.store(0, Ordering::Relaxed);
                // The last of an answer is handed to hyper long before it is written.
                if self.idle.load(Ordering::Relaxed) != 0 {
                    self.idle.store(self.at(Instant::now()), Ordering::Relaxed);
                }
            }
            (false, 0) => self.stalled.store(self.at(Instant::now()), Ordering::Relaxed),
            (false, _) => {}
        }
    }

    /// Whether some patience is at its end.
    fn is_over(&self, now: Instant) -> bool {
        let over = |since: &AtomicU64, patience: Duration| {
            let since = since.load(Ordering::Relaxed);
            since != 0 && self.at(now) - since.min(self.at(now)) > patience.as_millis() as u64
        };
        over(&self.idle, IDLE) || over(&self.head, HEAD) || over(&self.stalled, STALLED)
    }
}

/// From a request's head to the end of its answer.
#[derive(Debug)]
struct Busy(Arc<Progress>);

impl Busy {
    fn begin(progress: &Arc<Progress>) -> Self {
        progress.head.store(0, Ordering::Relaxed);
        progress.idle.store(0, Ordering::Relaxed);
        Self(Arc::clone(progress))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.idle.store(self.0.at(Instant::now()), Ordering::Relaxed);
    }
}

/// A stream that notes its progress.
struct Watched<S> {
    stream: S,
    progress: Arc<Progress>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.progress.read();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.progress.wrote(written.is_ready());
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.progress.wrote(written.is_ready());
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use filectx_openapi::routes;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
    use tokio::task::JoinHandle;

    struct Caller {
        stream: DuplexStream,
        served: JoinHandle<()>,
        stop: watch::Sender<bool>,
    }

    /// A caller whose side of the connection holds `room` bytes that it did not take yet.
    fn connect(room: usize) -> Caller {
        let (stream, end) = tokio::io::duplex(room);
        let (stop, stopped) = watch::channel(false);
        let served = tokio::spawn(answer(crate::tests::door(), end, stopped));
        Caller { stream, served, stop }
    }

    impl Caller {
        async fn ask(&mut self, path: &str) {
            let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
            self.stream.write_all(head.as_bytes()).await.unwrap();
        }

        /// The health check's answer.
        async fn is_well(&mut self) -> bool {
            self.ask(routes::HEALTHZ).await;
            let mut text = Vec::new();
            while !text.ends_with(br#"{"status":"ok"}"#) {
                match self.stream.read_u8().await {
                    Ok(byte) => text.push(byte),
                    Err(_) => return false,
                }
            }
            true
        }

        /// After so many seconds the service ended the connection.
        async fn ended_after(self) -> u64 {
            let start = Instant::now();
            self.served.await.unwrap();
            start.elapsed().as_secs()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_has_to_arrive_in_time() {
        let mut caller = connect(1 << 20);
        caller.stream.write_all(b"GET /healthz HTTP/1.1\r\nhost:").await.unwrap();
        let seconds = caller.ended_after().await;
        assert!((10..=15).contains(&seconds), "{seconds}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_may_wait_long_for_its_next_request() {
        let mut caller = connect(1 << 20);
        for _ in 0..3 {
            assert!(caller.is_well().await);
            tokio::time::advance(Duration::from_secs(500)).await;
        }
        assert!(caller.is_well().await);
        let seconds = caller.ended_after().await;
        assert!((600..=605).contains(&seconds), "{seconds}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_has_to_be_taken() {
        let mut caller = connect(1000);
        caller.ask("/docs/swagger-ui-bundle.js").await;
        // A slow caller is not one that stands still.
        for _ in 0..20 {
            let mut some = [0; 1000];
            assert!(caller.stream.read(&mut some).await.unwrap() > 0);
            tokio::time::advance(Duration::from_secs(50)).await;
        }
        let seconds = caller.ended_after().await;
        assert!((10..=65).contains(&seconds), "{seconds}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_ends_what_waits_and_lets_finish_what_runs() {
        let mut idle = connect(1 << 20);
        assert!(idle.is_well().await);
        idle.stop.send_replace(true);
        assert_eq!(idle.ended_after().await, 0);

        let mut busy = connect(1000);
        busy.ask("/docs/swagger-ui-bundle.js").await;
        let mut text = vec![0; 1000];
        busy.stream.read_exact(&mut text).await.unwrap();
        busy.stop.send_replace(true);
        busy.stream.read_to_end(&mut text).await.unwrap();
        let head = String::from_utf8_lossy(&text[..500]).to_lowercase();
        let length =
            head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next()).unwrap();
        assert!(text.len() > length.parse().unwrap(), "the whole answer came");
        assert_eq!(busy.ended_after().await, 0);
    }

    #[tokio::test]
    async fn requests_may_follow_each_other_at_once() {
        let mut caller = connect(1 << 20);
        caller.ask(routes::HEALTHZ).await;
        assert!(caller.is_well().await);
    }
}
