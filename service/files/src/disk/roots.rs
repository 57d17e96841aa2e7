//! The fences: which paths a request may name at all. Every path of a request becomes a [`Located`] here, and only a
//! `Located` can be opened; where roots are set, it is held inside them in the step that opens (`open.rs`).

use std::borrow::Cow;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use filectx_openapi::Base64;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags};

use super::beneath::Opener;
use super::system::NAME_ONLY;
use crate::Error;

/// The longest path that Linux takes, without its end mark.
pub(crate) const PATH_BYTES: usize = 4095;
/// The longest name in a path.
const NAME_BYTES: usize = 255;

/// How the engine is fenced in.
#[derive(Clone, Debug, Default)]
pub struct FenceConfig {
    /// Directories that every operation is confined to; empty = all that the user may reach.
    pub roots: Vec<PathBuf>,
    /// Gitignore-style patterns of what is denied, against absolute paths.
    pub deny: Vec<String>,
    /// Refuses every change.
    pub read_only: bool,
    /// What `~` stands for.
    pub home: PathBuf,
    /// Keeps within bounds step by step also where the kernel would: what macOS and old kernels do, for tests.
    pub by_steps: bool,
}

/// A fence that cannot be put up.
#[derive(Debug, thiserror::Error)]
pub enum FenceError {
    /// A root is no directory that can be opened.
    #[error("--root {}: {source}; name a directory that the service's user may open", path.display())]
    Root {
        /// The root as given.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A root is relative.
    #[error("--root {}: a root is an absolute path", path.display())]
    RelativeRoot {
        /// The root as given.
        path: PathBuf,
    },
    /// A deny pattern is no glob.
    #[error("--deny {pattern}: {source}")]
    Deny {
        /// The pattern as given.
        pattern: String,
        /// What is wrong with it.
        source: ignore::Error,
    },
}

/// A directory that requests are confined to, held open from the start.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) given: PathBuf,
    pub(crate) real: PathBuf,
    pub(crate) dir: OwnedFd,
}

/// The fences of one engine.
#[derive(Debug)]
pub struct Fences {
    pub(crate) roots: Vec<Arc<Root>>,
    deny: Option<Gitignore>,
    read_only: bool,
    home: PathBuf,
    pub(crate) opener: Opener,
}

/// A path that a request may name: joined, free of what no path can hold, and not lexically denied. Only this opens.
#[derive(Clone, Debug)]
pub struct Located {
    joined: PathBuf,
}

impl Located {
    /// The joined path, as answers carry it.
    pub fn joined(&self) -> &Path {
        &self.joined
    }

    /// Whether the path ends in a slash, and so names a directory.
    pub fn names_directory(&self) -> bool {
        self.joined.as_os_str().as_bytes().ends_with(b"/")
    }

    /// Whether the path can only name a directory: it ends in a slash, `.` or `..`.
    pub(crate) fn must_be_directory(&self) -> bool {
        let path = self.joined.as_os_str().as_bytes();
        [&b"/"[..], b"/.", b"/.."].iter().any(|end| path.ends_with(end))
    }
}

/// A path that could not be located, with the form to show.
#[derive(Debug)]
pub struct Unlocated {
    /// The joined path, or the path as it was sent.
    pub shown: PathBuf,
    /// Why.
    pub error: Error,
}

impl Fences {
    /// Puts the fences up: opens the roots, compiles the patterns.
    pub fn new(config: &FenceConfig) -> Result<Self, FenceError> {
        let roots =
            config.roots.iter().map(|path| Root::open(path).map(Arc::new)).collect::<Result<_, _>>()?;
        let deny = if config.deny.is_empty() { None } else { Some(compile_deny(&config.deny)?) };
        let (read_only, home) = (config.read_only, config.home.clone());
        let opener = if config.by_steps { Opener::Steps } else { Opener::here() };
        Ok(Self { roots, deny, read_only, home, opener })
    }

    /// The roots as given.
    pub fn roots(&self) -> impl Iterator<Item = &Path> {
        self.roots.iter().map(|root| root.given.as_path())
    }

    /// Whether every change is refused.
    pub fn read_only(&self) -> bool {
        self.read_only
    }

    /// What `~` stands for.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Whether a path has to be judged by where it really lies.
    pub(crate) fn judges_real_paths(&self) -> bool {
        self.deny.is_some()
    }

    /// Whether everything that the user may reach is allowed.
    pub(crate) fn are_open(&self) -> bool {
        self.roots.is_empty() && self.deny.is_none()
    }

    /// Fails on a service that changes nothing.
    pub fn check_writable(&self) -> Result<(), Error> {
        if self.read_only { Err(Error::ReadOnly) } else { Ok(()) }
    }

    /// Whether a deny rule covers the absolute `path` or a directory above it. A rule for directories (`name/`) covers
    /// files of that name too: whether something is there must not show.
    pub fn denies(&self, path: &Path) -> bool {
        let Some(deny) = &self.deny else { return false };
        let normal = normalised(path);
        normal != Path::new("/") && deny.matched_path_or_any_parents(&normal, true).is_ignore()
    }

    /// Takes a request's path in: exactly one of `path` and `path_base64`, joined to `cwd` when relative. `pointer` is
    /// the JSON pointer of the object that holds the fields.
    pub fn locate(
        &self,
        path: Option<&str>,
        path_base64: Option<&str>,
        cwd: Option<&str>,
        pointer: &str,
    ) -> Result<Located, Unlocated> {
        let sent = path_bytes(path, path_base64, pointer)
            .map_err(|error| Unlocated { shown: PathBuf::from(path.unwrap_or_default()), error })?;
        self.locate_bytes(&sent, cwd)
    }

    /// [`locate`](Self::locate) for a path whose bytes are known.
    pub fn locate_bytes(&self, sent: &[u8], cwd: Option<&str>) -> Result<Located, Unlocated> {
        let unlocated = |shown: &[u8], error| Unlocated { shown: to_path(shown), error };
        if sent.is_empty() {
            return Err(unlocated(sent, Error::InvalidPath { detail: "it is empty".into() }));
        }
        let joined = match (sent, cwd) {
            (b"~", _) => self.home.as_os_str().as_bytes().to_vec(),
            ([b'~', b'/', rest @ ..], _) => join(self.home.as_os_str().as_bytes(), rest),
            ([b'/', ..], _) => sent.to_vec(),
            (_, Some(cwd)) => join(cwd.as_bytes(), sent),
            (_, None) => {
                let detail = "it is relative, and the request has no cwd; send an absolute path or a cwd";
                return Err(unlocated(sent, Error::InvalidPath { detail: detail.into() }));
            }
        };
        check_bytes(&joined).map_err(|error| unlocated(&joined, error))?;
        let joined = PathBuf::from(std::ffi::OsString::from_vec(joined));
        // With roots set, only the step that opens knows what is outside; deny comes after roots there (`open.rs`).
        if self.roots.is_empty() && self.denies(&joined) {
            return Err(Unlocated { shown: joined, error: Error::DeniedByPolicy });
        }
        Ok(Located { joined })
    }

    /// A path that the walk of a directory met: `dir` joined with `name`.
    pub(crate) fn located_below(&self, dir: &Located, name: &[u8]) -> Located {
        Located { joined: to_path(&join(dir.joined.as_os_str().as_bytes(), name)) }
    }

    /// The prefix of a located path, as a located path of its own.
    pub(crate) fn located_prefix(&self, prefix: &[u8]) -> Located {
        Located { joined: to_path(prefix) }
    }

    /// The root that lexically holds `path`, with what is left of it below; the innermost of several.
    pub(crate) fn root_of(&self, path: &Path) -> Option<(Arc<Root>, PathBuf)> {
        self.best_root(path, |root| &root.given).or_else(|| self.best_root(path, |root| &root.real))
    }

    /// The root below which the real path `path` lies.
    pub(crate) fn root_of_real(&self, path: &Path) -> Option<(Arc<Root>, PathBuf)> {
        self.best_root(path, |root| &root.real)
    }

    fn best_root(&self, path: &Path, of: impl Fn(&Root) -> &PathBuf) -> Option<(Arc<Root>, PathBuf)> {
        let inside = self.roots.iter().filter(|root| path.starts_with(of(root)));
        let root = inside.max_by_key(|root| of(root).components().count())?;
        let mut rest = path.strip_prefix(of(root)).ok()?.as_os_str().as_bytes().to_vec();
        if rest.is_empty() {
            rest.push(b'.');
        }
        // `strip_prefix` forgets the slash that names a directory.
        if path.as_os_str().as_bytes().ends_with(b"/") && !rest.ends_with(b"/") {
            rest.push(b'/');
        }
        Some((Arc::clone(root), to_path(&rest)))
    }
}

impl Root {
    fn open(path: &Path) -> Result<Self, FenceError> {
        if !path.is_absolute() {
            return Err(FenceError::RelativeRoot { path: path.to_owned() });
        }
        let failed = |source| FenceError::Root { path: path.to_owned(), source };
        let flags = NAME_ONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir =
            rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?;
        #[allow(clippy::disallowed_methods, reason = "a root is judged once, by where it really lies")]
        let real = std::fs::canonicalize(path).map_err(failed)?;
        Ok(Self { given: normalised(path), real, dir })
    }
}

fn compile_deny(patterns: &[String]) -> Result<Gitignore, FenceError> {
    let failed = |pattern: &str, source| FenceError::Deny { pattern: pattern.to_owned(), source };
    let mut builder = GitignoreBuilder::new("/");
    for pattern in patterns {
        builder.add_line(None, pattern).map_err(|error| failed(pattern, error))?;
    }
    builder.build().map_err(|error| failed("", error))
}

/// The bytes of a path that was sent in one of its two forms.
pub(crate) fn path_bytes<'a>(
    path: Option<&'a str>,
    base64: Option<&str>,
    pointer: &str,
) -> Result<Cow<'a, [u8]>, Error> {
    match (path, base64) {
        (Some(path), None) => Ok(path.as_bytes().into()),
        (None, Some(text)) => Base64::decode(text).map(Cow::Owned).ok_or_else(|| {
            Error::invalid_request(format!("{pointer}/path_base64"), "not base64 (standard alphabet, padded)")
        }),
        (Some(_), Some(_)) => Err(Error::invalid_request(
            format!("{pointer}/path_base64"),
            "path is there too; send one of the two",
        )),
        (None, None) => {
            Err(Error::invalid_request(format!("{pointer}/path"), "missing; send path, or path_base64"))
        }
    }
}

/// Fails on a `cwd` that is relative or no path at all.
pub fn check_cwd(cwd: Option<&str>) -> Result<(), Error> {
    match cwd {
        Some(cwd) if !cwd.starts_with('/') => {
            Err(Error::invalid_request("/cwd", "relative; a cwd is an absolute path"))
        }
        Some(cwd) if cwd.contains('\0') => Err(Error::invalid_request("/cwd", "it holds a NUL character")),
        _ => Ok(()),
    }
}

fn check_bytes(path: &[u8]) -> Result<(), Error> {
    let invalid = |detail: String| Err(Error::InvalidPath { detail });
    if path.contains(&0) {
        return invalid("it holds a NUL byte".into());
    }
    if path.len() > PATH_BYTES {
        return invalid(format!("it is {} bytes long; the system takes {PATH_BYTES}", path.len()));
    }
    match path.split(|&b| b == b'/').find(|name| name.len() > NAME_BYTES) {
        Some(name) => {
            invalid(format!("a name in it is {} bytes long; the system takes {NAME_BYTES}", name.len()))
        }
        None => Ok(()),
    }
}

fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let mut joined = dir.to_vec();
    if !joined.ends_with(b"/") {
        joined.push(b'/');
    }
    joined.extend_from_slice(name);
    joined
}

pub(crate) fn to_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsString::from_vec(bytes.to_vec()))
}

/// An absolute path without `.`, `..` and doubled slashes, by its text alone.
pub(crate) fn normalised(path: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => {
                out.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    out
}
