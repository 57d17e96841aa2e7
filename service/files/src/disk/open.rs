//! Opening: the one way from a [`Located`] path to a descriptor. Never blocks on what is no regular file, never leaves
//! the roots, judges deny rules by where the file really lies, and says why when it fails.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use filectx_openapi::EntryType;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use unicode_normalization::UnicodeNormalization;

use super::identity::Identity;
use super::resolve::{Resolution, resolve};
use super::roots::{Fences, Located, Root, normalised, to_path};
use crate::Error;

/// How often an open is tried again when the tree moves under it.
const RACES: u32 = 8;
/// The largest directory that is searched for a name that looks alike.
const SIBLINGS: usize = 20_000;

/// An open file or directory.
#[derive(Debug)]
pub struct Opened {
    /// The descriptor.
    pub fd: OwnedFd,
    /// Who it is.
    pub identity: Identity,
    /// Where it really lies, when a link was followed.
    pub real_path: Option<PathBuf>,
}

impl Fences {
    /// Opens a regular file for reading.
    pub fn open_file(&self, at: &Located) -> Result<Opened, Error> {
        let opened = self.open(at, OFlags::RDONLY).map_err(|error| self.explain(at, error))?;
        match opened.identity.kind() {
            EntryType::File => Ok(opened),
            EntryType::Directory => Err(Error::IsDirectory),
            kind => Err(Error::NotRegularFile { kind }),
        }
    }

    /// Opens a directory for reading.
    pub fn open_directory(&self, at: &Located) -> Result<Opened, Error> {
        self.open(at, OFlags::RDONLY | OFlags::DIRECTORY).map_err(|error| self.explain(at, error))
    }

    /// Who is at `at`, links followed: its identity, without opening it.
    pub fn look(&self, at: &Located) -> Result<Identity, Error> {
        Ok(self.open(at, DONT_OPEN)?.identity)
    }

    /// Where `at` really lies, links followed, without opening it.
    pub(crate) fn real_path(&self, at: &Located) -> Option<PathBuf> {
        let opened = self.open(at, DONT_OPEN).ok()?;
        path_of(&opened.fd).or_else(|| Some(normalised(at.joined())))
    }

    fn open(&self, at: &Located, flags: OFlags) -> Result<Opened, Error> {
        // openat2 takes no flag that would mean nothing to a descriptor that only names.
        let careful =
            if flags.contains(DONT_OPEN) { OFlags::empty() } else { OFlags::NONBLOCK | OFlags::NOCTTY };
        let flags = flags | careful | OFlags::CLOEXEC;
        let (fd, followed) = match self.open_fenced(at, flags) {
            // A socket, a device without a driver: who is it?
            Err(Error::Io { errno: Errno::NXIO | Errno::NODEV | Errno::OPNOTSUPP })
                if !flags.contains(DONT_OPEN) =>
            {
                return Err(Error::NotRegularFile { kind: self.look(at)?.kind() });
            }
            other => other?,
        };
        let identity = Identity::of(&rustix::fs::fstat(&fd)?);
        let real_path = if followed || self.judges_real_paths() { path_of(&fd) } else { None };
        if let Some(real) = &real_path
            && self.denies(real)
        {
            return Err(Error::DeniedByPolicy);
        }
        if self.denies(at.joined()) {
            return Err(Error::DeniedByPolicy);
        }
        let followed = followed && real_path.as_deref() != Some(&normalised(at.joined()));
        Ok(Opened { fd, identity, real_path: real_path.filter(|_| followed) })
    }

    /// The descriptor, and whether a link may have been followed on the way.
    fn open_fenced(&self, at: &Located, flags: OFlags) -> Result<(OwnedFd, bool), Error> {
        if !self.roots.is_empty() {
            return self.open_in_roots(at.joined(), flags);
        }
        let opened = if self.openat2 {
            match open_beneath(CWD, at.joined(), flags, Links::Refused, Bounds::None) {
                Ok(fd) => return Ok((fd, false)),
                Err(Errno::LOOP) => open_beneath(CWD, at.joined(), flags, Links::Followed, Bounds::None),
                Err(errno) => Err(errno),
            }
        } else {
            rustix::fs::openat(CWD, at.joined(), flags, Mode::empty())
        };
        match opened {
            Ok(fd) => Ok((fd, true)),
            Err(errno) => Err(self.denied_or(at.joined(), errno)),
        }
    }

    /// The fence comes before existence: a path that would really lie in a denied place is denied, there or not.
    fn denied_or(&self, path: &Path, errno: Errno) -> Error {
        if self.judges_real_paths() && (self.denies(path) || self.denies(&resolve(path).real)) {
            return Error::DeniedByPolicy;
        }
        errno.into()
    }

    fn open_in_roots(&self, path: &Path, flags: OFlags) -> Result<(OwnedFd, bool), Error> {
        if let Some((root, rest)) = self.root_of(path) {
            match open_beneath(&root.dir, &rest, flags, Links::Refused, Bounds::Beneath) {
                Ok(fd) => return Ok((fd, false)),
                Err(Errno::LOOP) => {
                    match open_beneath(&root.dir, &rest, flags, Links::Followed, Bounds::Beneath) {
                        Ok(fd) => return Ok((fd, true)),
                        Err(Errno::XDEV) => {}
                        Err(errno) => return Err(self.denied_or(path, errno)),
                    }
                }
                Err(Errno::XDEV) => {}
                Err(errno) => return Err(self.denied_or(path, errno)),
            }
        }
        // It leaves the root on its way (an absolute link, `..`, a link outside that leads in): where does it end?
        for _ in 0..RACES {
            let resolution = resolve(path);
            let Some((root, rest)) = self.root_of_real(&resolution.real) else {
                return Err(Error::OutsideRoots);
            };
            if self.denies(path) || self.denies(&resolution.real) {
                return Err(Error::DeniedByPolicy);
            }
            match self.open_resolved(&root, &rest, flags, &resolution) {
                Err(Errno::XDEV | Errno::LOOP) if resolution.error.is_none() => {}
                Err(errno) => return Err(errno.into()),
                Ok(fd) => return Ok((fd, true)),
            }
        }
        Err(Error::OutsideRoots)
    }

    fn open_resolved(
        &self,
        root: &Root,
        rest: &Path,
        flags: OFlags,
        how: &Resolution,
    ) -> Result<OwnedFd, Errno> {
        match how.error {
            Some(errno) => Err(errno),
            None => open_beneath(&root.dir, rest, flags, Links::Refused, Bounds::Beneath),
        }
    }

    /// Adds what helps to a failure: the part that is no directory, a name that looks alike.
    pub(crate) fn explain(&self, at: &Located, error: Error) -> Error {
        match error {
            Error::NotFound { sibling: None } => self.missing(at),
            Error::Io { errno: Errno::NOTDIR } => Error::NotADirectory { component: self.no_directory(at) },
            error => error,
        }
    }

    /// The first part of the path that is there and is no directory.
    fn no_directory(&self, at: &Located) -> Vec<u8> {
        let path = at.joined().as_os_str().as_bytes();
        let is_none = |prefix: &[u8]| {
            self.look(&self.located_prefix(prefix)).is_ok_and(|id| id.kind() != EntryType::Directory)
        };
        prefixes(path)
            .find(|prefix| is_none(prefix))
            .unwrap_or(path.strip_suffix(b"/").unwrap_or(path))
            .to_vec()
    }

    /// What is known of the first missing part: that it is a link, or that a name looks alike.
    fn missing(&self, at: &Located) -> Error {
        let path = at.joined().as_os_str().as_bytes();
        let is_missing =
            |prefix: &&[u8]| matches!(self.look(&self.located_prefix(prefix)), Err(Error::NotFound { .. }));
        let Some(missing) = prefixes(path).find(is_missing) else { return Error::NotFound { sibling: None } };
        match rustix::fs::readlinkat(CWD, to_path(missing), Vec::new()) {
            Ok(target) => Error::DanglingLink { link: missing.to_vec(), target: target.into_bytes() },
            Err(_) => Error::NotFound { sibling: self.look_alike(missing) },
        }
    }

    /// The one name beside `missing` that equals it after NFKC and blank folding.
    fn look_alike(&self, missing: &[u8]) -> Option<Vec<u8>> {
        let cut = missing.iter().rposition(|&b| b == b'/')?;
        let dir = self.located_prefix(if cut == 0 { b"/" } else { &missing[..cut] });
        let wanted = folded(std::str::from_utf8(&missing[cut + 1..]).ok()?);
        let opened = self.open(&dir, OFlags::RDONLY | OFlags::DIRECTORY).ok()?;
        let mut found: Option<Vec<u8>> = None;
        for (seen, entry) in rustix::fs::Dir::new(opened.fd).ok()?.enumerate() {
            let entry = entry.ok()?;
            let name = entry.file_name().to_bytes();
            if seen > SIBLINGS {
                return None;
            }
            let alike = std::str::from_utf8(name).is_ok_and(|text| folded(text) == wanted);
            if alike
                && !self.denies(self.located_below(&dir, name).joined())
                && found.replace(name.to_vec()).is_some()
            {
                return None;
            }
        }
        found
    }
}

/// `/a`, `/a/b`, `/a/b/c` of `/a/b/c`, without slashes at their ends.
fn prefixes(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = (1..=path.len()).filter(|&end| end == path.len() || path[end] == b'/');
    ends.map(|end| &path[..end]).filter(|prefix| !prefix.ends_with(b"/"))
}

fn folded(name: &str) -> String {
    if name.is_ascii() {
        return name.replace(|c: char| c.is_ascii_whitespace(), " ");
    }
    name.nfkc().map(|c| if c.is_whitespace() { ' ' } else { c }).collect()
}

/// Flags of a descriptor that only names a file, where the system has such.
#[cfg(target_os = "linux")]
const DONT_OPEN: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const DONT_OPEN: OFlags = OFlags::SYNC;

/// Whether links are followed on the way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// No: `ELOOP` at the first.
    Refused,
    /// Yes.
    Followed,
}

/// Whether the way may leave the directory that it starts from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bounds {
    /// It may.
    None,
    /// `EXDEV` when it would.
    Beneath,
}

#[cfg(target_os = "linux")]
pub(crate) fn open_beneath(
    dir: impl AsFd,
    path: &Path,
    flags: OFlags,
    links: Links,
    bounds: Bounds,
) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let mut resolve = ResolveFlags::empty();
    if links == Links::Refused {
        resolve |= ResolveFlags::NO_SYMLINKS;
    }
    if bounds == Bounds::Beneath {
        resolve |= ResolveFlags::BENEATH;
    }
    let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o666) } else { Mode::empty() };
    // EAGAIN: something was renamed on the way of a `..`; EINTR: a signal came.
    let mut tries = 0;
    loop {
        match rustix::fs::openat2(dir.as_fd(), path, flags, mode, resolve) {
            Err(Errno::AGAIN | Errno::INTR) if tries < RACES => tries += 1,
            other => return other,
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn open_beneath(
    dir: impl AsFd,
    path: &Path,
    flags: OFlags,
    _: Links,
    bounds: Bounds,
) -> Result<OwnedFd, Errno> {
    // Roots are refused at the start where there is no openat2.
    if bounds == Bounds::Beneath {
        return Err(Errno::NOSYS);
    }
    rustix::fs::openat(dir, path, flags, Mode::empty())
}

#[cfg(target_os = "linux")]
pub(crate) fn has_openat2() -> bool {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    open_beneath(CWD, Path::new("/"), flags, Links::Refused, Bounds::None).is_ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn has_openat2() -> bool {
    false
}

/// Where an open file really lies, as the system tells it.
#[cfg(target_os = "linux")]
pub(crate) fn path_of(fd: impl AsFd) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;
    let link = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    let path = to_path(rustix::fs::readlinkat(CWD, link, Vec::new()).ok()?.as_bytes());
    path.is_absolute().then_some(path)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn path_of(fd: impl AsFd) -> Option<PathBuf> {
    #[cfg(target_vendor = "apple")]
    return rustix::fs::getpath(fd).ok().map(|path| to_path(path.as_bytes()));
    #[cfg(not(target_vendor = "apple"))]
    {
        let _ = fd;
        None
    }
}

#[cfg(test)]
mod tests;
