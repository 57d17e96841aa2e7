//! The file that new content goes to before it takes its place: beside the target, or, where the directory takes no
//! new file, in the runtime directory. Nobody else opens it; it goes again unless it was published.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::journal::{Announced, Entry, Journal, temporary_name};
use super::place::Place;
use super::system;

/// How often another name is tried.
const NAMES: u32 = 16;

/// A temporary file.
#[derive(Debug)]
pub(crate) struct Temporary<'a> {
    /// The file, open for reading and writing.
    pub(crate) file: OwnedFd,
    /// Whether it lies in the target's directory, from where it can take the target's place.
    pub(crate) beside: bool,
    dir: OwnedFd,
    dir_path: PathBuf,
    /// `None` while it has no name.
    name: Option<OsString>,
    entry: Option<Entry<'a>>,
    journal: Option<&'a Journal>,
}

/// What a temporary is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A new file: created with what the umask and the directory give to one, nameless where that can be.
    New,
    /// To take the place of an existing one: nobody may read it until it has that one's mode.
    Replacement,
}

impl<'a> Temporary<'a> {
    /// A temporary for the target at `place`.
    pub(crate) fn create(
        place: &Place,
        purpose: Purpose,
        journal: Option<&'a Journal>,
    ) -> Result<Self, Errno> {
        let beside = match purpose {
            Purpose::New => Self::nameless(place, journal)
                .or_else(|_| Self::named(place.dir.try_clone(), &place.dir_path, 0o666, journal)),
            Purpose::Replacement if system::keeps_all_names(&place.dir) => Err(Errno::PERM),
            Purpose::Replacement => Self::named(place.dir.try_clone(), &place.dir_path, 0o600, journal),
        };
        match beside {
            // A directory that takes no new file; the file in it may still be written in place.
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::NOENT)
                if purpose == Purpose::Replacement =>
            {
                Self::elsewhere(journal).map_err(|_| Errno::ACCESS)
            }
            other => other,
        }
    }

    fn nameless(place: &Place, journal: Option<&'a Journal>) -> Result<Self, Errno> {
        let file = system::nameless(&place.dir)?;
        let dir = place.dir.try_clone().map_err(|_| Errno::MFILE)?;
        let dir_path = place.dir_path.clone();
        Ok(Self { file, beside: true, dir, dir_path, name: None, entry: None, journal })
    }

    fn named(
        dir: std::io::Result<OwnedFd>,
        dir_path: &Path,
        mode: u32,
        journal: Option<&'a Journal>,
    ) -> Result<Self, Errno> {
        let dir = dir.map_err(|_| Errno::MFILE)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..NAMES {
            let name = temporary_name();
            let entry = journal.map(|journal| journal.announce(&Announced::Temporary(dir_path.join(&name))));
            match rustix::fs::openat(&dir, &name, flags, Mode::from_raw_mode(mode as rustix::fs::RawMode)) {
                Ok(file) => {
                    let dir_path = dir_path.to_owned();
                    return Ok(Self { file, beside: true, dir, dir_path, name: Some(name), entry, journal });
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::EXIST)
    }

    /// In the runtime directory, or where the system keeps temporary files.
    pub(crate) fn elsewhere(journal: Option<&'a Journal>) -> Result<Self, Errno> {
        let fallback = std::env::temp_dir();
        let path = journal.map_or(fallback.as_path(), Journal::directory_for_copies);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        let mut temporary = Self::named(Ok(dir), path, 0o600, journal)?;
        temporary.beside = false;
        Ok(temporary)
    }

    /// Its name in the directory; given now if it had none.
    pub(crate) fn name(&mut self) -> Result<&OsStr, Errno> {
        if self.name.is_none() {
            let name = temporary_name();
            let path = self.dir_path.join(&name);
            self.entry = self.journal.map(|journal| journal.announce(&Announced::Temporary(path)));
            system::link_nameless(&self.file, &self.dir, &name)?;
            self.name = Some(name);
        }
        self.name.as_deref().ok_or(Errno::NOENT)
    }

    /// Where it lies, if it has a name.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        self.name.as_ref().map(|name| self.dir_path.join(name))
    }

    /// Gives it the name `name`, which nobody may have yet.
    pub(crate) fn take_new_name(&mut self, name: &OsStr) -> Result<(), Errno> {
        let Some(own) = &self.name else { return system::link_nameless(&self.file, &self.dir, name) };
        super::exchange::rename_new(&self.dir, own, &self.dir, name)?;
        self.forget();
        Ok(())
    }

    /// Nothing of ours lies under its name any more: it is published, or what is there is someone else's and stays.
    pub(crate) fn forget(&mut self) {
        self.name = None;
        self.entry = None;
    }

    /// It stays, with its entry in the journal, for the next start to deal with.
    pub(crate) fn leave(&mut self) {
        self.name = None;
        if let Some(entry) = self.entry.take() {
            entry.leave();
        }
    }

    /// Removes what lies under its name: itself, or what it took the place of.
    pub(crate) fn remove(&mut self) -> Result<(), Errno> {
        let Some(name) = self.name.take() else { return Ok(()) };
        let removed = rustix::fs::unlinkat(&self.dir, name, AtFlags::empty());
        self.entry = None;
        removed
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}
