//! The way of systems other than Linux, in the first place macOS. What a system lacks says so by `ENOSYS`, and the
//! caller has another way; what would only be less exact is named at its function.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::disk::beneath::{From, Links};

/// What opens a directory that is only passed through. `O_EXEC` of macOS's `<fcntl.h>`: it may be searched and needs not
/// be readable; a kernel that does not know the flag yet opens for reading instead.
#[cfg(target_vendor = "apple")]
pub(in crate::disk) const NAME_ONLY: OFlags = OFlags::from_bits_retain(0x4000_0000);
#[cfg(not(target_vendor = "apple"))]
pub(in crate::disk) const NAME_ONLY: OFlags = OFlags::RDONLY;

/// No kernel but Linux's is asked to keep opens within bounds. (`O_NOFOLLOW_ANY` and `O_RESOLVE_BENEATH` of macOS would
/// not do: a version that is too old for them ignores them and says nothing.)
pub(in crate::disk) fn opens_by_kernel() -> bool {
    false
}

pub(in crate::disk) fn open_by_kernel(_: From<'_>, _: &Path, _: OFlags, _: Links) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

/// Where an open file really lies, as the system tells it: names as they are written on the disk, whatever case was asked.
pub(in crate::disk) fn path_of(fd: impl AsFd) -> Option<PathBuf> {
    #[cfg(target_vendor = "apple")]
    return rustix::fs::getpath(fd).ok().map(|path| crate::disk::roots::to_path(path.as_bytes()));
    #[cfg(not(target_vendor = "apple"))]
    {
        let _ = fd;
        None
    }
}

/// Exchanges two names in one step: APFS can.
pub(in crate::disk) fn swap(dir: &OwnedFd, one: &OsStr, other: &OsStr) -> Result<(), Errno> {
    #[cfg(target_vendor = "apple")]
    return rustix::fs::renameat_with(dir, one, dir, other, rustix::fs::RenameFlags::EXCHANGE);
    #[cfg(not(target_vendor = "apple"))]
    {
        let _ = (dir, one, other);
        Err(Errno::NOSYS)
    }
}

/// Renames in one step, unless the new name is taken (`EEXIST`).
pub(in crate::disk) fn rename_no_replace(
    from_dir: &OwnedFd,
    from: &OsStr,
    dir: &OwnedFd,
    to: &OsStr,
) -> Result<(), Errno> {
    #[cfg(target_vendor = "apple")]
    return rustix::fs::renameat_with(from_dir, from, dir, to, rustix::fs::RenameFlags::NOREPLACE);
    #[cfg(not(target_vendor = "apple"))]
    {
        let _ = (from_dir, from, dir, to);
        Err(Errno::NOSYS)
    }
}

/// Every new file has a name here.
pub(in crate::disk) fn nameless(_: &OwnedFd) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

pub(in crate::disk) fn link_nameless(_: &OwnedFd, _: &OwnedFd, _: &OsStr) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

/// Whether the directory is append-only (`chflags uappnd`, `sappnd`): it takes a temporary, and never gives it up.
pub(in crate::disk) fn keeps_all_names(dir: &OwnedFd) -> bool {
    // UF_APPEND and SF_APPEND of `<sys/stat.h>`.
    #[cfg(target_vendor = "apple")]
    return rustix::fs::fstat(dir).is_ok_and(|stat| stat.st_flags & (0x4 | 0x4_0000) != 0);
    #[cfg(not(target_vendor = "apple"))]
    {
        let _ = dir;
        false
    }
}

/// Makes what was written last. `fsync` of macOS leaves it in the drive's own memory.
pub(in crate::disk) fn sync(file: BorrowedFd<'_>) -> Result<(), Errno> {
    #[cfg(target_vendor = "apple")]
    match rustix::fs::fcntl_fullfsync(file) {
        // A file system, mostly of a network, that knows only the other.
        Err(Errno::NOTSUP | Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL) => {}
        other => return other,
    }
    rustix::fs::fsync(file)
}

/// No room is taken in advance: where the disk gets full in the middle of a write in place, the old content is put back.
pub(in crate::disk) fn take_room(_: &OwnedFd, _: u64) -> Result<(), Errno> {
    Ok(())
}

/// Holes are read like zeros of any file: what APFS says of them is not to be relied on while a file is being written.
pub(in crate::disk) fn data_from(_: &OwnedFd, offset: u64, _: u64) -> u64 {
    offset
}

/// There are no files here that are made when they are read.
pub(in crate::disk) fn is_generated(_: &OwnedFd) -> bool {
    false
}
