//! What of a file is not its content: mode, owner, extended attributes, ACL. Carried over to the file that takes its
//! place before anyone sees that, or said to be lost.

use filectx_openapi::{Warning, WarningCode};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{Gid, Mode, RawMode, Uid, XattrFlags};
use rustix::io::Errno;

use super::identity::Identity;
use super::place::Existing;

const PERMISSIONS: u32 = 0o7777;
const SET_UID: u32 = 0o4000;
const SET_GID: u32 = 0o2000;
/// Made by the system from the content, or by a policy for the place: not for us to copy.
const NOT_OURS: &[&[u8]] = &[b"security.ima", b"security.evm"];

/// Gives `new` what `old` has besides its content.
pub(crate) fn carry_over(old: &Existing, new: impl AsFd) -> Result<Vec<Warning>, Errno> {
    let new = new.as_fd();
    let mut warnings = Vec::new();
    let mode = keep_owner(&old.identity, new, &mut warnings)?;
    // Before the mode: the permission bits of an ACL are the mode's group bits.
    keep_xattrs(old, new, &mut warnings)?;
    let now = Identity::of(&rustix::fs::fstat(new)?);
    if now.mode & PERMISSIONS != mode {
        rustix::fs::fchmod(new, Mode::from_raw_mode(mode as RawMode))?;
    }
    Ok(warnings)
}

/// Sets the permission bits of a new file.
pub(crate) fn set_mode(file: impl AsFd, mode: u32) -> Result<(), Errno> {
    rustix::fs::fchmod(file, Mode::from_raw_mode((mode & PERMISSIONS) as RawMode))
}

/// Owner and group as far as this user may; the mode that goes with them.
fn keep_owner(old: &Identity, new: BorrowedFd<'_>, warnings: &mut Vec<Warning>) -> Result<u32, Errno> {
    let mut now = Identity::of(&rustix::fs::fstat(new)?);
    if (now.uid, now.gid) != (old.uid, old.gid) {
        let (uid, gid) = (Some(Uid::from_raw(old.uid)), Some(Gid::from_raw(old.gid)));
        if rustix::fs::fchown(new, uid, gid).is_err() && now.gid != old.gid {
            // The group alone may be given to one's own groups.
            let _ = rustix::fs::fchown(new, None, gid);
        }
        now = Identity::of(&rustix::fs::fstat(new)?);
    }
    let mut mode = old.mode & PERMISSIONS;
    if (now.uid, now.gid) == (old.uid, old.gid) {
        return Ok(mode);
    }
    // A program must not get another's rights by an edit.
    if now.uid != old.uid {
        mode &= !SET_UID;
    }
    if now.gid != old.gid {
        mode &= !SET_GID;
    }
    let bits = if mode == old.mode & PERMISSIONS { "" } else { ", nor its set-id bits" };
    warnings.push(Warning {
        code: WarningCode::OwnerNotKept,
        message: format!(
            "the file belonged to {}:{} and now belongs to {}:{}: the service's user may not give it back{bits}",
            old.uid, old.gid, now.uid, now.gid
        ),
    });
    Ok(mode)
}

fn keep_xattrs(old: &Existing, new: BorrowedFd<'_>, warnings: &mut Vec<Warning>) -> Result<(), Errno> {
    let Some(source) = &old.fd else {
        let message = "the file may not be read, so its extended attributes could not be copied";
        warnings.push(Warning { code: WarningCode::XattrNotKept, message: message.into() });
        return Ok(());
    };
    let wanted = names(source.as_fd())?;
    let mut lost = Vec::new();
    // What the directory's defaults gave to the new file and the old one did not have.
    for name in names(new)?.into_iter().filter(|name| !wanted.contains(name) && is_ours(name)) {
        if rustix::fs::fremovexattr(new, name.as_slice()).is_err() && !name.starts_with(b"security.") {
            lost.push(name);
        }
    }
    for name in wanted.into_iter().filter(|name| is_ours(name)) {
        let value = value(source.as_fd(), &name)?;
        // A label that is there already by policy need not be set.
        let same = || self::value(new, &name).is_ok_and(|now| now == value);
        if rustix::fs::fsetxattr(new, name.as_slice(), &value, XattrFlags::empty()).is_err() && !same() {
            lost.push(name);
        }
    }
    if !lost.is_empty() {
        let names: Vec<_> = lost.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        warnings.push(Warning {
            code: WarningCode::XattrNotKept,
            message: format!("these extended attributes could not be kept: {}", names.join(", ")),
        });
    }
    Ok(())
}

fn is_ours(name: &[u8]) -> bool {
    !NOT_OURS.contains(&name)
}

fn names(file: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>, Errno> {
    let list = grown(|buffer| rustix::fs::flistxattr(file, buffer), || rustix::fs::flistxattr_query(file));
    match list {
        Ok(list) => Ok(list.split(|&b| b == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect()),
        // A file system without them.
        Err(Errno::NOTSUP | Errno::NOSYS) => Ok(Vec::new()),
        Err(errno) => Err(errno),
    }
}

fn value(file: BorrowedFd<'_>, name: &[u8]) -> Result<Vec<u8>, Errno> {
    grown(|buffer| rustix::fs::fgetxattr(file, name, buffer), || rustix::fs::fgetxattr_query(file, name))
}

/// Reads what may grow between asking for its size and reading it.
fn grown(
    read: impl Fn(&mut [u8]) -> Result<usize, Errno>,
    size: impl Fn() -> Result<usize, Errno>,
) -> Result<Vec<u8>, Errno> {
    loop {
        let mut buffer = vec![0; size()?];
        if buffer.is_empty() {
            return Ok(buffer);
        }
        match read(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            Err(Errno::RANGE) => {}
            Err(errno) => return Err(errno),
        }
    }
}
