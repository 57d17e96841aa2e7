//! The read verb: a batch of files, each with its outcome, in request order.
//!
//! `plan.rs` settles the request's limits, `file.rs` reads one file within its own budget (`text.rs`, `binary.rs`,
//! `image.rs`), `settle.rs` gives out the batch's bytes in request order, `batch.rs` lets any number of threads work on it.

mod batch;
mod binary;
mod file;
mod image;
mod plan;
mod settle;
mod stored;
#[cfg(test)]
mod tests;
mod text;

use std::sync::Arc;

use filectx_openapi::{FailedFile, FileContext, ItemError, ReadFileContextRequest, ReadFileContextResponse};

pub use batch::{ReadBatch, Taken};
pub use plan::Delivery;
pub use stored::Stored;

use crate::Files;
use plan::Plan;

/// The outcome of a file, or of one range of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// What was read.
    Context(Box<FileContext>),
    /// What was read of a large binary, and its bytes on the disk. Only where the answer travels as a stream of parts.
    Stored(Box<FileContext>, Stored),
    /// Why nothing was read.
    Failed(Box<FailedFile>),
}

impl Files {
    /// Begins a batch. The request is checked as a whole; nothing is read before [`ReadBatch::work`].
    pub fn read_batch(
        self: &Arc<Self>,
        request: ReadFileContextRequest,
        delivery: Delivery,
    ) -> Result<Arc<ReadBatch>, ItemError> {
        let plan = Plan::new(request, self.limits(), delivery).map_err(|error| error.item("".as_ref()))?;
        Ok(Arc::new(ReadBatch::new(Arc::clone(self), plan, delivery)))
    }

    /// Reads a batch and waits for it: the whole verb, for callers in process.
    pub fn read(
        self: &Arc<Self>,
        request: ReadFileContextRequest,
    ) -> Result<ReadFileContextResponse, ItemError> {
        self.read_watched(request, &|_| {})
    }

    /// The same; `watch` is told now and then of how many files there is an outcome.
    pub fn read_watched(
        self: &Arc<Self>,
        request: ReadFileContextRequest,
        watch: &dyn Fn(u64),
    ) -> Result<ReadFileContextResponse, ItemError> {
        let batch = self.read_batch(request, Delivery::Json)?;
        Ok(respond(batch.drive(watch)))
    }
}

/// The outcomes as the contract's two lists.
pub fn respond(outcomes: Vec<Outcome>) -> ReadFileContextResponse {
    let mut response = ReadFileContextResponse::default();
    for outcome in outcomes {
        match outcome {
            Outcome::Context(context) | Outcome::Stored(context, _) => response.file_contexts.push(*context),
            Outcome::Failed(failed) => response.failed_files.push(*failed),
        }
    }
    response
}
