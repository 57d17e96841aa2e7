//! Paths as a request takes them: text, or exact bytes where they are not UTF-8; relative ones with the directory that
//! they are relative to.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use filectx_openapi::Base64;

use super::backend::Backend;

/// A path in a request: `path` or `path_base64`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WirePath {
    pub(crate) path: Option<String>,
    pub(crate) path_base64: Option<String>,
}

/// What relative paths are relative to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cwd {
    /// For the request.
    pub(crate) cwd: Option<String>,
    /// Where the directory's name is not UTF-8, no request can hold it: paths are joined here.
    join: Option<PathBuf>,
}

impl Cwd {
    /// `--cwd`, else the process's directory when its files are meant. A service has its own directories: there is none
    /// that would be right for a relative path.
    pub(crate) fn new(given: Option<&str>, backend: &Backend) -> Self {
        if !backend.is_embedded() {
            return Self { cwd: given.map(Into::into), join: None };
        }
        // Without a directory (it was deleted), absolute paths still work.
        let here = std::env::current_dir().ok();
        let directory = match given {
            // The contract wants it absolute; a person at a shell need not.
            Some(given) => Some(here.unwrap_or_default().join(given)),
            None => here,
        };
        match directory {
            Some(directory) if directory.to_str().is_none() => Self { cwd: None, join: Some(directory) },
            Some(directory) => Self { cwd: directory.to_str().map(Into::into), join: None },
            None => Self::default(),
        }
    }

    /// The path with these bytes, for a request.
    pub(crate) fn wire(&self, path: &[u8]) -> WirePath {
        let path = match &self.join {
            Some(directory) if !path.starts_with(b"/") && !path.starts_with(b"~") => {
                directory.join(Path::new(std::ffi::OsStr::from_bytes(path))).into_os_string()
            }
            _ => std::ffi::OsStr::from_bytes(path).to_owned(),
        };
        match path.to_str() {
            Some(text) => WirePath { path: Some(text.to_owned()), path_base64: None },
            None => WirePath { path: None, path_base64: Some(Base64::encode(path.as_bytes())) },
        }
    }
}
