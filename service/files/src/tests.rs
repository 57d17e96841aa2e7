//! What the engine's tests share: an engine on a directory of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use filectx_openapi::{
    DeleteFileRequest, Edit, EditFileRequest, EditFileResponse, ItemError, Limits, LineBreaks, LineEndings,
    WriteFileRequest, WriteFileResponse,
};

use crate::{Cancel, FenceConfig, Files};

/// An engine and the directory that its requests are relative to.
pub(crate) struct World {
    pub(crate) files: Files,
    root: PathBuf,
    #[allow(dead_code, reason = "held for its drop")]
    directory: Option<tempfile::TempDir>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::fenced(|_| FenceConfig::default())
    }

    /// Fences that depend on the directory.
    pub(crate) fn fenced(fences: impl FnOnce(&Path) -> FenceConfig) -> Self {
        Self::with(fences, Limits::default())
    }

    pub(crate) fn with(fences: impl FnOnce(&Path) -> FenceConfig, limits: Limits) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::new(&fences(directory.path()), limits).unwrap();
        Self { files, root: directory.path().to_owned(), directory: Some(directory) }
    }

    /// In a directory that is there.
    pub(crate) fn at(root: &Path) -> Self {
        let files = Files::new(&FenceConfig::default(), Limits::default()).unwrap();
        Self { files, root: root.to_owned(), directory: None }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn get(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// The names in a directory.
    pub(crate) fn names(&self, name: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(name)).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(crate) fn edit_request(&self, path: &str, edits: &[(&str, &str)]) -> EditFileRequest {
        let edit = |(old, new): &(&str, &str)| Edit {
            old_text: (*old).into(),
            new_text: (*new).into(),
            line_hint: None,
            replace_all: false,
        };
        EditFileRequest {
            path: Some(path.into()),
            path_base64: None,
            cwd: Some(self.root().to_str().unwrap().into()),
            edits: edits.iter().map(edit).collect(),
            expected_revision: None,
            line_endings: LineEndings::Adapt,
            line_breaks: LineBreaks::Newline,
            dry_run: false,
        }
    }

    pub(crate) fn edit(&self, path: &str, old: &str, new: &str) -> Result<EditFileResponse, ItemError> {
        self.files.edit(&self.edit_request(path, &[(old, new)]), &patient())
    }

    pub(crate) fn write_request(&self, path: &str, text: &str) -> WriteFileRequest {
        WriteFileRequest {
            path: Some(path.into()),
            path_base64: None,
            cwd: Some(self.root().to_str().unwrap().into()),
            text_content: Some(text.into()),
            binary_content: None,
            expected_revision: None,
            create_only: false,
            create_parents: true,
            mode: None,
        }
    }

    pub(crate) fn write(&self, path: &str, text: &str) -> Result<WriteFileResponse, ItemError> {
        self.files.write(&self.write_request(path, text), &patient())
    }

    pub(crate) fn delete_request(&self, path: &str) -> DeleteFileRequest {
        DeleteFileRequest {
            path: Some(path.into()),
            path_base64: None,
            cwd: Some(self.root().to_str().unwrap().into()),
            expected_revision: None,
        }
    }
}

/// Time enough.
pub(crate) fn patient() -> Cancel {
    Cancel::after(Duration::from_secs(60))
}

/// Whether a test that needs `what` (`root`, `patch`) is to fail where it is not there. It says so where it skips.
pub(crate) fn required(what: &str) -> bool {
    let named = std::env::var("TESTS_REQUIRE").unwrap_or_default();
    let required = named.split([',', ' ']).any(|name| name == what);
    if !required {
        eprintln!("skipped: this test needs {what}, which TESTS_REQUIRE does not name");
    }
    required
}
