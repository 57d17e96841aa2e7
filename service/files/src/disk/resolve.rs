//! Where a path really leads, by its links alone: used to judge paths that the kernel's own check refuses or cannot
//! open. What it says is only a guess until an open without links confirms it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::CWD;
use rustix::io::Errno;

/// How many links a path may lead through, as in Linux.
const LINKS: u32 = 40;

/// Where a path leads.
#[derive(Debug)]
pub(crate) struct Resolution {
    /// The path without links, `.` and `..`; behind a missing part the rest as it was written.
    pub(crate) real: PathBuf,
    /// Why it leads nowhere.
    pub(crate) error: Option<Errno>,
}

/// Follows the links of the absolute `path`.
pub(crate) fn resolve(path: &Path) -> Resolution {
    let mut left: VecDeque<OsString> = parts(path);
    let (mut real, mut links, mut error) = (PathBuf::from("/"), 0, None);
    while let Some(part) = left.pop_front() {
        if part.as_bytes() == b".." {
            real.pop();
            continue;
        }
        real.push(&part);
        if error.is_some() {
            continue;
        }
        match rustix::fs::readlinkat(CWD, &real, Vec::new()) {
            Ok(target) => {
                links += 1;
                if links > LINKS {
                    return Resolution { real, error: Some(Errno::LOOP) };
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
            Err(errno) => error = Some(errno),
        }
    }
    Resolution { real, error }
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
