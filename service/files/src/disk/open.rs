//! Opening: the one way from a [`Located`] path to a descriptor. Never blocks on what is no regular file, never leaves
//! the roots, judges deny rules by where the file really lies, and says why when it fails. How the way is kept within
//! bounds is `beneath.rs`'s.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use filectx_openapi::EntryType;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, OFlags};
use rustix::io::Errno;
use unicode_normalization::UnicodeNormalization;

use super::beneath::{Aim, From, Links, Reached};
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
        Ok(self.reach(at, Aim::Look)?.0.identity)
    }

    /// Where `at` really lies, links followed, without opening it.
    pub(crate) fn real_path(&self, at: &Located) -> Option<PathBuf> {
        let (reached, _) = self.reach(at, Aim::Look).ok()?;
        reached.path().or_else(|| Some(normalised(at.joined())))
    }

    fn open(&self, at: &Located, flags: OFlags) -> Result<Opened, Error> {
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let (reached, real_path) = match self.reach(at, Aim::Open(flags)) {
            // A socket, a device without a driver: who is it?
            Err(Error::Io { errno: Errno::NXIO | Errno::NODEV | Errno::OPNOTSUPP }) => {
                return Err(Error::NotRegularFile { kind: self.look(at)?.kind() });
            }
            other => other?,
        };
        Ok(Opened { identity: reached.identity, real_path, fd: reached.into_fd() })
    }

    /// What is at `at`, and where it really lies if a link was followed.
    fn reach(&self, at: &Located, aim: Aim) -> Result<(Reached, Option<PathBuf>), Error> {
        let reached = self.reach_fenced(at.joined(), aim)?;
        let real_path = if reached.followed || self.judges_real_paths() { reached.path() } else { None };
        if let Some(real) = &real_path
            && self.denies(real)
        {
            return Err(Error::DeniedByPolicy);
        }
        if self.denies(at.joined()) {
            return Err(Error::DeniedByPolicy);
        }
        let followed = reached.followed && real_path.as_deref() != Some(&normalised(at.joined()));
        Ok((reached, real_path.filter(|_| followed)))
    }

    fn reach_fenced(&self, path: &Path, aim: Aim) -> Result<Reached, Error> {
        if !self.roots.is_empty() {
            return self.reach_in_roots(path, aim);
        }
        let reached = self.opener.reach(From::Slash, path, aim, Links::Followed);
        reached.map_err(|errno| self.denied_or(path, errno))
    }

    /// The fence comes before existence: a path that would really lie in a denied place is denied, there or not.
    fn denied_or(&self, path: &Path, errno: Errno) -> Error {
        if self.judges_real_paths() && (self.denies(path) || self.denies(&resolve(path).real)) {
            return Error::DeniedByPolicy;
        }
        errno.into()
    }

    fn reach_in_roots(&self, path: &Path, aim: Aim) -> Result<Reached, Error> {
        if let Some((root, rest)) = self.root_of(path) {
            match self.opener.reach(From::Below(root.dir.as_fd()), &rest, aim, Links::Followed) {
                Err(Errno::XDEV) => {}
                reached => return reached.map_err(|errno| self.denied_or(path, errno)),
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
            match self.reach_resolved(&root, &rest, aim, &resolution) {
                Err(Errno::XDEV | Errno::LOOP) if resolution.error.is_none() => {}
                Err(errno) => return Err(errno.into()),
                Ok(reached) => return Ok(Reached { followed: true, ..reached }),
            }
        }
        Err(Error::OutsideRoots)
    }

    fn reach_resolved(&self, root: &Root, rest: &Path, aim: Aim, how: &Resolution) -> Result<Reached, Errno> {
        match how.error {
            Some(errno) => Err(errno),
            None => self.opener.reach(From::Below(root.dir.as_fd()), rest, aim, Links::Refused),
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

#[cfg(test)]
mod tests;
