//! What is told about requests: their ids, one line each, and how many are under way. Never contents, never a token,
//! never a path that was only looked at.

mod sink;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use filectx_openapi::{Code, routes};
use http::{HeaderValue, Method, StatusCode};

use crate::answer::{Counts, Facts};
use crate::config::LogFormat;
pub use sink::Sink;

/// Sends log lines to stderr, until the sink that it returns is dropped. Once in a process.
pub fn init(format: LogFormat) -> Sink {
    let sink = Sink::new(io::stderr());
    let lines = tracing_subscriber::fmt().with_writer(sink.clone()).with_target(false);
    // A log that is set already (a test's, an embedder's) stays.
    let _ = match format {
        LogFormat::Text => tracing::subscriber::set_global_default(lines.finish()),
        LogFormat::Json => tracing::subscriber::set_global_default(lines.json().flatten_event(true).finish()),
    };
    sink
}

/// Makes the ids of requests that come without one: the run's id and a number.
#[derive(Debug)]
pub(crate) struct RequestIds {
    run: String,
    next: AtomicU64,
}

impl RequestIds {
    pub(crate) fn new(instance_id: &str) -> Self {
        Self { run: instance_id.to_owned(), next: AtomicU64::new(1) }
    }

    /// The caller's id where it is well formed (1 to 128 visible ASCII characters), else a new one.
    pub(crate) fn id_of(&self, sent: Option<&HeaderValue>) -> HeaderValue {
        let well_formed = |id: &&HeaderValue| {
            (1..=128).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic)
        };
        if let Some(id) = sent.filter(well_formed) {
            return id.clone();
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // Hex digits and a hyphen are a header's value.
        HeaderValue::try_from(format!("{}-{number}", self.run))
            .unwrap_or_else(|_| HeaderValue::from_static("-"))
    }
}

/// Requests under way, and when the last one ended: what the idle timeout goes by.
#[derive(Debug)]
pub(crate) struct Activity {
    start: Instant,
    under_way: AtomicU64,
    /// Milliseconds after `start`.
    last_end: AtomicU64,
}

impl Default for Activity {
    fn default() -> Self {
        Self { start: Instant::now(), under_way: AtomicU64::new(0), last_end: AtomicU64::new(0) }
    }
}

impl Activity {
    /// For how long nothing has been under way.
    pub(crate) fn idle_for(&self) -> Duration {
        if self.under_way.load(Ordering::Acquire) > 0 {
            return Duration::ZERO;
        }
        self.start.elapsed().saturating_sub(Duration::from_millis(self.last_end.load(Ordering::Acquire)))
    }

    /// How many requests are under way.
    pub(crate) fn under_way(&self) -> u64 {
        self.under_way.load(Ordering::Acquire)
    }
}

/// One request, from its head to the end of its answer's body. Its line is written when it is dropped, however it ends.
#[derive(Debug)]
pub(crate) struct Record {
    activity: Arc<Activity>,
    started: Instant,
    pub(crate) id: HeaderValue,
    operation: &'static str,
    /// `None` until there is an answer: a caller that hung up before gets none.
    pub(crate) status: Option<StatusCode>,
    pub(crate) code: Option<Code>,
    pub(crate) facts: Facts,
    pub(crate) bytes: u64,
    /// Whether the body was handed over to its end.
    pub(crate) complete: bool,
}

impl Record {
    pub(crate) fn begin(activity: &Arc<Activity>, id: HeaderValue, method: &Method, path: &str) -> Self {
        activity.under_way.fetch_add(1, Ordering::AcqRel);
        Self {
            activity: Arc::clone(activity),
            started: Instant::now(),
            id,
            operation: operation(method, path),
            status: None,
            code: None,
            facts: Facts::default(),
            bytes: 0,
            complete: false,
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let end = self.activity.start.elapsed().as_millis() as u64;
        self.activity.last_end.store(end, Ordering::Release);
        self.activity.under_way.fetch_sub(1, Ordering::AcqRel);
        let facts = &self.facts;
        let counted = facts.counted.as_ref().map(Counts::get);
        tracing::info!(
            request_id = self.id.to_str().unwrap_or_default(),
            operation = self.operation,
            status = self.status.map(|status| status.as_u16()),
            code = self.code.as_ref().map(Code::as_str),
            items = facts.items.or(counted.map(|(items, _)| items)),
            failed = facts.failed.or(counted.map(|(_, failed)| failed)),
            path = facts.path.as_deref(),
            revision = facts.revision.as_deref(),
            previous_revision = facts.previous_revision.as_deref(),
            bytes = self.bytes,
            ms = self.started.elapsed().as_micros() as f64 / 1000.0,
            hung_up = (!self.complete).then_some(true),
            "request"
        );
    }
}

/// The operation's name, which is the last part of its route; what is no route has no name, as it may hold anything.
fn operation(method: &Method, path: &str) -> &'static str {
    const NAMED: [(&str, &str); 10] = [
        (routes::READ_FILE_CONTEXT, "read-file-context"),
        (routes::LIST_DIRECTORY, "list-directory"),
        (routes::FIND_TEXT, "find-text"),
        (routes::FIND_PATHS, "find-paths"),
        (routes::EDIT_FILE, "edit-file"),
        (routes::WRITE_FILE, "write-file"),
        (routes::DELETE_FILE, "delete-file"),
        (routes::INFO, "info"),
        (routes::HEALTHZ, "healthz"),
        (routes::OPENAPI_JSON, "openapi"),
    ];
    match NAMED.iter().find(|(route, _)| *route == path) {
        Some((_, name)) => name,
        None if path.starts_with(routes::DOCS) && *method == Method::GET => "docs",
        None => "-",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callers_id_is_kept_where_it_is_well_formed() {
        let ids = RequestIds::new("run");
        let long = "x".repeat(128);
        for good in ["req-42", "~!", &long] {
            assert_eq!(ids.id_of(Some(&HeaderValue::from_str(good).unwrap())), good);
        }
        let too_long = "x".repeat(129);
        for bad in ["", "a b", "a\tb", &too_long] {
            let id = ids.id_of(Some(&HeaderValue::from_str(bad).unwrap()));
            assert!(id.to_str().unwrap().starts_with("run-"), "{bad:?}");
        }
        let latin = HeaderValue::from_bytes(b"\xe9").unwrap();
        assert_ne!(ids.id_of(Some(&latin)), latin);
        assert_ne!(ids.id_of(None), ids.id_of(None));
    }

    #[test]
    fn a_request_under_way_is_no_idleness() {
        let activity = Arc::new(Activity::default());
        let record = Record::begin(&activity, HeaderValue::from_static("x"), &Method::GET, "/");
        assert_eq!((activity.under_way(), activity.idle_for()), (1, Duration::ZERO));
        drop(record);
        assert_eq!(activity.under_way(), 0);
    }

    #[test]
    fn only_routes_have_names() {
        assert_eq!(operation(&Method::POST, routes::FIND_TEXT), "find-text");
        assert_eq!(operation(&Method::GET, "/docs/swagger-ui.css"), "docs");
        assert_eq!(operation(&Method::GET, "/secret"), "-");
    }
}
