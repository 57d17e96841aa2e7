//! What tests of sessions share: a runtime, a session that means the host, and short requests.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use filectx_client::hosts::HostManager;
use filectx_client::session::{Served, Session, SessionType};
use filectx_openapi::{EditFileRequest, FileRequest, ReadFileContextRequest, ReadFileContextResponse};
use serde_json::json;

/// Runs `work` to its end on a runtime of its own.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

/// A session that means the host `host` of this manager.
pub fn on_host(manager: &HostManager) -> Session {
    let kind = SessionType::Remote { host_id: Some("host".into()) };
    Session::new(kind, Arc::new(manager.clone()), None)
}

/// A read of one file.
pub fn reading(path: &Path) -> ReadFileContextRequest {
    let path = Some(path.to_str().expect("UTF-8").to_owned());
    ReadFileContextRequest {
        files: vec![FileRequest { path, ..FileRequest::default() }],
        ..ReadFileContextRequest::default()
    }
}

/// An edit of one file.
pub fn editing(path: &Path, old: &str, new: &str) -> EditFileRequest {
    serde_json::from_value(json!({"path": path, "edits": [{"old_text": old, "new_text": new}]}))
        .expect("a request")
}

/// The text of the one file that was read.
#[track_caller]
pub fn text(answer: &Served<ReadFileContextResponse>) -> &str {
    answer.answer.file_contexts[0].text_content.as_deref().expect("a text")
}
