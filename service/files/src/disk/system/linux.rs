//! The Linux way.

use std::ffi::OsStr;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, Mode, OFlags, RenameFlags, ResolveFlags, SeekFrom, StatxAttributes,
    StatxFlags,
};
use rustix::io::Errno;

use crate::disk::beneath::{From, Links};
use crate::disk::roots::to_path;

/// How often the kernel is asked again when it was disturbed.
const RACES: u32 = 8;

/// What opens a descriptor that only names what it leads to.
pub(in crate::disk) const NAME_ONLY: OFlags = OFlags::PATH;

/// Whether the kernel keeps opens within bounds by itself: since Linux 5.6, unless a container filters the call.
pub(in crate::disk) fn opens_by_kernel() -> bool {
    open_by_kernel(From::Slash, Path::new("/"), OFlags::PATH | OFlags::CLOEXEC, Links::Refused).is_ok()
}

/// Opens in one call, within bounds: `ELOOP` at a link that is refused, `EXDEV` where the way leads out.
pub(in crate::disk) fn open_by_kernel(
    from: From<'_>,
    path: &Path,
    flags: OFlags,
    links: Links,
) -> Result<OwnedFd, Errno> {
    let (dir, bounds) = match from {
        From::Slash => (CWD, ResolveFlags::empty()),
        From::Below(dir) => (dir, ResolveFlags::BENEATH),
    };
    let links = match links {
        Links::Refused => ResolveFlags::NO_SYMLINKS,
        Links::Followed => ResolveFlags::empty(),
    };
    // EAGAIN: something was renamed on the way of a `..`; EINTR: a signal came.
    let mut tries = 0;
    loop {
        match rustix::fs::openat2(dir, path, flags, Mode::empty(), bounds | links) {
            Err(Errno::AGAIN | Errno::INTR) if tries < RACES => tries += 1,
            other => return other,
        }
    }
}

/// Where an open file really lies, as the system tells it.
pub(in crate::disk) fn path_of(fd: impl AsFd) -> Option<PathBuf> {
    let link = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    let path = to_path(rustix::fs::readlinkat(CWD, link, Vec::new()).ok()?.as_bytes());
    path.is_absolute().then_some(path)
}

/// Exchanges two names in one step.
pub(in crate::disk) fn swap(dir: &OwnedFd, one: &OsStr, other: &OsStr) -> Result<(), Errno> {
    rustix::fs::renameat_with(dir, one, dir, other, RenameFlags::EXCHANGE)
}

/// Renames in one step, unless the new name is taken (`EEXIST`).
pub(in crate::disk) fn rename_no_replace(
    from_dir: &OwnedFd,
    from: &OsStr,
    dir: &OwnedFd,
    to: &OsStr,
) -> Result<(), Errno> {
    rustix::fs::renameat_with(from_dir, from, dir, to, RenameFlags::NOREPLACE)
}

/// A new file in `dir` that has no name yet.
pub(in crate::disk) fn nameless(dir: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    rustix::fs::openat(dir, ".", flags, Mode::from_raw_mode(0o666))
}

/// Gives a file without a name this one, unless it is taken.
pub(in crate::disk) fn link_nameless(file: &OwnedFd, dir: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    match rustix::fs::linkat(CWD, own, dir, name, AtFlags::SYMLINK_FOLLOW) {
        // Without /proc; needs a capability on older kernels.
        Err(Errno::NOENT) => rustix::fs::linkat(file, "", dir, name, AtFlags::EMPTY_PATH),
        other => other,
    }
}

/// Whether the directory is append-only (`chattr +a`): it takes a temporary, and never gives it up.
pub(in crate::disk) fn keeps_all_names(dir: &OwnedFd) -> bool {
    rustix::fs::statx(dir, "", AtFlags::EMPTY_PATH, StatxFlags::TYPE)
        .is_ok_and(|stat| stat.stx_attributes.contains(StatxAttributes::APPEND))
}

/// Makes what was written last.
pub(in crate::disk) fn sync(file: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::fs::fsync(file)
}

/// Takes the room that `length` bytes need, where the file system can.
pub(in crate::disk) fn take_room(target: &OwnedFd, length: u64) -> Result<(), Errno> {
    if length == 0 {
        return Ok(());
    }
    match rustix::fs::fallocate(target, FallocateFlags::KEEP_SIZE, 0, length) {
        Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => Err(errno),
        _ => Ok(()),
    }
}

/// The first byte from `offset` on that is not in a hole, or `size`.
pub(in crate::disk) fn data_from(fd: &OwnedFd, offset: u64, size: u64) -> u64 {
    match rustix::fs::seek(fd, SeekFrom::Data(offset)) {
        Ok(data) => data.min(size),
        Err(Errno::NXIO) => size,
        // A file system without holes.
        Err(_) => offset,
    }
}

/// Whether the file lies on a system whose files are made when they are read.
pub(in crate::disk) fn is_generated(fd: &OwnedFd) -> bool {
    // proc, sysfs, debugfs, tracefs, securityfs, configfs, cgroup, cgroup2.
    const MAGICS: &[i64] =
        &[0x9fa0, 0x6265_6572, 0x6462_6720, 0x7472_6163, 0x7363_6673, 0x6265_6570, 0x27_e0eb, 0x6367_7270];
    #[allow(clippy::unnecessary_cast, reason = "the field's type differs between machines")]
    rustix::fs::fstatfs(fd).is_ok_and(|fs| MAGICS.contains(&(fs.f_type as i64)))
}
