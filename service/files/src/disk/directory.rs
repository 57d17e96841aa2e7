//! One open directory: its names as they come, and what each of them is, by `lstat`.

use std::os::unix::ffi::OsStrExt;

use filectx_openapi::EntryType;
use rustix::fs::{AtFlags, Dir, DirEntry};
use rustix::io::Errno;

use super::identity::{Identity, entry_type};
use super::open::Opened;
use super::roots::{Fences, Located, to_path};
use super::system::path_of;
use crate::Error;

/// A directory that is open.
pub(crate) struct Directory<'a> {
    fences: &'a Fences,
    at: &'a Located,
    opened: Opened,
    names: Dir,
    current: Option<DirEntry>,
    /// Where it really lies; asked only where deny rules are.
    real: Option<Vec<u8>>,
}

/// What a name is.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) kind: EntryType,
    /// Its data, where it can be looked at.
    pub(crate) identity: Option<Identity>,
    /// Of links: their text, and what they lead to.
    pub(crate) link: Option<(Vec<u8>, Result<EntryType, Error>)>,
}

impl<'a> Directory<'a> {
    pub(crate) fn open(fences: &'a Fences, at: &'a Located) -> Result<Self, Error> {
        let opened = fences.open_directory(at)?;
        let names = Dir::read_from(&opened.fd)?;
        let real = fences.judges_real_paths().then(|| path_of(&opened.fd)).flatten();
        let real = real.map(|real| real.as_os_str().as_bytes().to_vec());
        Ok(Self { fences, at, opened, names, current: None, real })
    }

    /// The next name and what the directory says it is, in the directory's order; not `.`, `..` and what is denied.
    pub(crate) fn next_name(&mut self) -> Option<Result<(&[u8], EntryType), Error>> {
        loop {
            let entry = match self.names.read()? {
                Ok(entry) => entry,
                Err(errno) => return Some(Err(errno.into())),
            };
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." && !self.denies(name) {
                let entry = self.current.insert(entry);
                return Some(Ok((entry.file_name().to_bytes(), entry_type(entry.file_type()))));
            }
        }
    }

    /// Whether a deny rule covers the entry called `name`.
    fn denies(&self, name: &[u8]) -> bool {
        let Some(real) = &self.real else { return false };
        let real = [real, &b"/"[..], name].concat();
        let joined = self.fences.located_below(self.at, name);
        self.fences.denies(joined.joined()) || self.fences.denies(&to_path(&real))
    }

    /// What the entry called `name` is; `None`: it is there no more. Of an entry that cannot be looked at (in a directory
    /// without `x`, on a mount that is dead) only the kind is known, as `kind`.
    pub(crate) fn look(&self, name: &[u8], kind: EntryType) -> Option<Listed> {
        let identity = match rustix::fs::statat(&self.opened.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Identity::of(&stat)),
            Err(Errno::NOENT) => return None,
            Err(errno) => Err(errno),
        };
        let kind = identity.as_ref().map_or(kind, Identity::kind);
        let link = (kind == EntryType::Symlink).then(|| self.follow(name));
        Some(Listed { kind, identity: identity.ok(), link })
    }

    fn follow(&self, name: &[u8]) -> (Vec<u8>, Result<EntryType, Error>) {
        let text = rustix::fs::readlinkat(&self.opened.fd, name, Vec::new());
        let text = text.map_or_else(|_| Vec::new(), |text| text.into_bytes());
        let target = self.fences.look(&self.fences.located_below(self.at, name));
        (text, target.map(|identity| identity.kind()))
    }
}
