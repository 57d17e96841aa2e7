//! The engine of filectx: its verbs on files, for the service and for a client in process.
//!
//! Synchronous, without HTTP and without a log: it returns. Algorithms (`bytes/`, `image/`) know bytes, verbs
//! (`read.rs`, ...) know the contract's nouns, effects (`disk/`) touch the disk.

pub mod buffers;
pub mod bytes;
mod cancel;
mod delete;
pub mod disk;
mod edit;
mod error;
mod find;
pub mod image;
mod list;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use filectx_openapi::Limits;

pub use cancel::{Cancel, CancelOnDrop};
pub use disk::journal::Swept;
pub use disk::roots::{FenceConfig, FenceError, Fences, Located, Unlocated};
pub use error::{Error, escaped};
pub use read::{Delivery, Outcome, ReadBatch, Stored, Taken, respond};

/// The engine: its fences and limits. Everything it needs comes in here; share it in an `Arc`.
#[derive(Debug)]
pub struct Files {
    fences: Fences,
    limits: Limits,
    buffers: Arc<buffers::Buffers>,
    images: image::ImagePool,
    cores: usize,
    locks: disk::locks::Locks,
    journal: std::sync::OnceLock<disk::journal::Journal>,
}

impl Files {
    /// An engine within these fences and limits.
    pub fn new(fences: &FenceConfig, limits: Limits) -> Result<Self, FenceError> {
        let buffers = buffers::Buffers::new(limits.max_buffered_bytes);
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let images = image::ImagePool::new(&limits, cores);
        let (locks, journal) = (disk::locks::Locks::default(), std::sync::OnceLock::new());
        Ok(Self { fences: Fences::new(fences)?, limits, buffers, images, cores, locks, journal })
    }

    /// Settles what killed processes left behind, as told in `runtime_directory` (which belongs to this user alone),
    /// and announces this engine's publishes there from now on, for who comes after.
    pub fn keep_journal(&self, runtime_directory: &Path) -> std::io::Result<Swept> {
        let swept = disk::journal::sweep(runtime_directory)?;
        let journal = disk::journal::Journal::begin(runtime_directory)?;
        // A second one would be of no use: the first stays.
        let _ = self.journal.set(journal);
        Ok(swept)
    }

    /// The fences in force.
    pub fn fences(&self) -> &Fences {
        &self.fences
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The memory that all batches share.
    pub(crate) fn buffers(&self) -> &Arc<buffers::Buffers> {
        &self.buffers
    }

    /// What a change of the disk works with.
    pub(crate) fn disk<'a>(&'a self, cancel: &'a Cancel) -> disk::publish::Disk<'a> {
        let Self { fences, locks, journal, .. } = self;
        disk::publish::Disk { fences, locks, journal: journal.get(), cancel }
    }

    /// The memory and threads that all decodes of images share.
    pub(crate) fn images(&self) -> &image::ImagePool {
        &self.images
    }

    /// How many threads can run at once.
    pub(crate) fn cores(&self) -> usize {
        self.cores
    }
}

/// The home of this process's user: `HOME`, else what `/etc/passwd` says (a static binary has no other way), else `/`.
pub fn home_directory() -> PathBuf {
    if let Some(home) = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute()) {
        return home;
    }
    let uid = rustix::process::getuid().as_raw().to_string();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let fields = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let own = fields.filter(|fields| fields.get(2) == Some(&uid.as_str()));
    own.filter_map(|fields| fields.get(5).map(PathBuf::from))
        .find(|home| home.is_absolute())
        .unwrap_or("/".into())
}
