//! Where a path really leads, by its links alone: used to judge paths that the kernel's own check refuses or cannot
//! open. What it says is only a guess until an open without links confirms it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::CWD;
use rustix::io::Errno;

/// How many links a path may lead through, as in Linux.
pub(super) const LINKS: u32 = 40;

/// Where a path leads.
#[derive(Debug)]
pub(crate) struct Resolution {
    /// The path without links, `.` and `..`; behind a missing part the rest as it was written.
    pub(crate) real: PathBuf,
    /// Why it leads nowhere.
    pub(crate) error: Option<Errno>,
    /// How much of `real` is there: all of it where there is no error, else what lies before the missing part.
    pub(crate) found: PathBuf,
    /// Whether a `..` comes behind a missing part: the system would not go back up from there.
    pub(crate) climbs: bool,
}

/// Follows the links of the absolute `path`.
pub(crate) fn resolve(path: &Path) -> Resolution {
    let mut left: VecDeque<OsString> = parts(path);
    let (mut real, mut links, mut climbs) = (PathBuf::from("/"), 0, false);
    let mut failed: Option<(Errno, PathBuf)> = None;
    while let Some(part) = left.pop_front() {
        if part.as_bytes() == b".." {
            climbs |= failed.is_some();
            real.pop();
            continue;
        }
        real.push(&part);
        if failed.is_some() {
            continue;
        }
        match rustix::fs::readlinkat(CWD, &real, Vec::new()) {
            Ok(target) => {
                links += 1;
                if links > LINKS {
                    return Resolution { found: real.clone(), real, error: Some(Errno::LOOP), climbs };
                }
                let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                real.pop();
                if target.is_absolute() {
                    real = PathBuf::from("/");
                }
                for part in parts(&target).into_iter().rev() {
                    left.push_front(part);
                }
            }
            // It is there and no link.
            Err(Errno::INVAL) => {}
            Err(errno) => failed = Some((errno, real.parent().unwrap_or(Path::new("/")).to_owned())),
        }
    }
    let (error, found) = match failed {
        Some((errno, found)) => (Some(errno), found),
        None => (None, real.clone()),
    };
    Resolution { real, error, found, climbs }
}

fn parts(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect()
}
