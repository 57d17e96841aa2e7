//! The names in one directory, sorted, with what they are: two allocations, however many there are.

use filectx_openapi::EntryType;
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::identity::{Identity, entry_type};
use crate::{Cancel, Error};

/// How many entries are read before the caller is asked again.
const BREATH: usize = 512;

/// The names in a directory, in byte order, with what they are.
pub(super) struct Names {
    bytes: Vec<u8>,
    entries: Vec<(u32, u16, EntryType)>,
}

impl Names {
    pub(super) fn read(mut dir: rustix::fs::Dir, cancel: &Cancel) -> Result<Self, Error> {
        let (mut bytes, mut entries) = (Vec::new(), Vec::new());
        while let Some(entry) = dir.read() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let stat = rustix::fs::statat(dir.fd()?, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
                    stat.map_or(EntryType::File, |stat| Identity::of(&stat).kind())
                }
                kind => entry_type(kind),
            };
            let (Ok(start), Ok(len)) = (u32::try_from(bytes.len()), u16::try_from(name.len())) else {
                return Err(Error::Io { errno: Errno::OVERFLOW });
            };
            bytes.extend_from_slice(name);
            entries.push((start, len, kind));
            if entries.len() % BREATH == 0 {
                cancel.check()?;
            }
        }
        let name =
            |&(start, len, _): &(u32, u16, EntryType)| &bytes[start as usize..start as usize + len as usize];
        entries.sort_unstable_by(|a, b| name(a).cmp(name(b)));
        Ok(Self { bytes, entries })
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, index: usize) -> (&[u8], EntryType) {
        let (start, len, kind) = self.entries[index];
        (&self.bytes[start as usize..start as usize + len as usize], kind)
    }

    /// Where `name` stands, or would.
    pub(super) fn position(&self, name: &[u8]) -> usize {
        self.entries.partition_point(|&(start, len, _)| {
            &self.bytes[start as usize..start as usize + len as usize] < name
        })
    }

    pub(super) fn holds(&self, name: &[u8]) -> bool {
        let at = self.position(name);
        at < self.len() && self.get(at).0 == name
    }
}
