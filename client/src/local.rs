//! The engine in this process, asked as a service is: without blocking the caller's thread, and for no longer than the
//! caller waits. Without the feature `local` there is none, and nothing of this can be called.

use filectx_openapi::{
    DeleteFileRequest, DeleteFileResponse, EditFileRequest, EditFileResponse, FindPathsRequest,
    FindPathsResponse, FindTextRequest, FindTextResponse, ListDirectoryRequest, ListDirectoryResponse,
    ReadFileContextRequest, ReadFileContextResponse, WriteFileRequest, WriteFileResponse,
};

use crate::Error;

#[cfg(feature = "local")]
pub use with_engine::Local;
#[cfg(not(feature = "local"))]
pub use without_engine::Local;

/// One method an operation: its name, request, answer, and how long it may take.
macro_rules! operations {
    ($operation:ident) => {
        $operation!(list, ListDirectoryRequest, ListDirectoryResponse, |_| None);
        $operation!(find_text, FindTextRequest, FindTextResponse, |request| request.deadline_ms);
        $operation!(find_paths, FindPathsRequest, FindPathsResponse, |request| request.deadline_ms);
        $operation!(edit, EditFileRequest, EditFileResponse, |_| None);
        $operation!(write, WriteFileRequest, WriteFileResponse, |_| None);
        $operation!(delete, DeleteFileRequest, DeleteFileResponse, |_| None);
    };
}

#[cfg(feature = "local")]
mod with_engine {
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use filectx_files::{Cancel, Delivery, Files, respond};
    use filectx_openapi::{ItemError, Problem};

    #[allow(clippy::wildcard_imports, reason = "the nouns above, in both halves")]
    use super::*;

    /// The engine in this process.
    #[derive(Clone, Debug)]
    pub struct Local(Arc<Files>);

    macro_rules! on_engine {
        ($name:ident, $request:ty, $answer:ty, $deadline:expr) => {
            pub(crate) async fn $name(&self, request: &$request) -> Result<$answer, Error> {
                let deadline: fn(&$request) -> Option<u64> = $deadline;
                let (cancel, request) = (self.cancel(deadline(request)), request.clone());
                self.work(cancel, move |files, cancel| files.$name(&request, cancel)).await
            }
        };
    }

    impl Local {
        /// This engine.
        pub fn new(files: Arc<Files>) -> Self {
            Self(files)
        }

        pub(crate) async fn read(
            &self,
            request: &ReadFileContextRequest,
        ) -> Result<ReadFileContextResponse, Error> {
            let batch = self.0.read_batch(request.clone(), Delivery::Json).map_err(refused)?;
            self.work(batch.cancel().clone(), move |_, _| Ok(respond(batch.drive(&|_| {})))).await
        }

        operations!(on_engine);

        fn cancel(&self, deadline_ms: Option<u64>) -> Cancel {
            let most = self.0.limits().deadline_ms;
            Cancel::after(Duration::from_millis(deadline_ms.unwrap_or(most).min(most)))
        }

        /// Works on a thread that may block. When the caller gives up, the work has ended before that is done.
        async fn work<T: Send + 'static>(
            &self,
            cancel: Cancel,
            work: impl FnOnce(&Files, &Cancel) -> Result<T, ItemError> + Send + 'static,
        ) -> Result<T, Error> {
            let (end, ended) = channel::<()>();
            let (files, held) = (Arc::clone(&self.0), cancel.clone());
            let task = tokio::task::spawn_blocking(move || {
                // Dropped at the end, however that comes, also when the work never begins.
                let _end = end;
                work(&files, &held)
            });
            let unseen = Unseen { cancel, ended, task: task.abort_handle() };
            let result = task.await;
            drop(unseen);
            match result {
                Ok(result) => result.map_err(refused),
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                Err(_) => Err(Error::Cancelled),
            }
        }
    }

    /// Work that must not go on unseen.
    struct Unseen {
        cancel: Cancel,
        ended: Receiver<()>,
        task: tokio::task::AbortHandle,
    }

    impl Drop for Unseen {
        fn drop(&mut self) {
            self.cancel.cancel();
            self.task.abort();
            // Nothing is ever sent: this returns when the work has ended.
            let _ = self.ended.recv();
        }
    }

    fn refused(error: ItemError) -> Error {
        Error::Refused(Box::new(Problem::new(error, "")))
    }
}

#[cfg(not(feature = "local"))]
mod without_engine {
    #[allow(clippy::wildcard_imports, reason = "the nouns above, in both halves")]
    use super::*;

    /// There is no engine in this process.
    #[derive(Clone, Copy, Debug)]
    pub enum Local {}

    macro_rules! on_nothing {
        ($name:ident, $request:ty, $answer:ty, $deadline:expr) => {
            pub(crate) async fn $name(&self, _request: &$request) -> Result<$answer, Error> {
                match *self {}
            }
        };
    }

    impl Local {
        on_nothing!(read, ReadFileContextRequest, ReadFileContextResponse, |_| None);
        operations!(on_nothing);
    }
}
