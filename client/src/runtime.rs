//! The runtime directory of this user, where services keep tokens and every process that changes files its journal.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// `$XDG_RUNTIME_DIR/filectx`, else `/tmp/filectx-UID`.
pub fn directory(xdg: Option<OsString>) -> PathBuf {
    let xdg = xdg.map(PathBuf::from).filter(|path| path.is_absolute() && path.is_dir());
    match xdg {
        Some(directory) => directory.join("filectx"),
        None => PathBuf::from(format!("/tmp/filectx-{}", own_uid())),
    }
}

/// Whether the directory is this user's alone; it is made if it is missing. A link is not followed: where all may
/// write, it could be another user's.
pub fn is_private(directory: &Path) -> bool {
    let _ = fs::DirBuilder::new().mode(0o700).create(directory);
    let Ok(metadata) = fs::symlink_metadata(directory) else { return false };
    metadata.is_dir() && metadata.uid() == own_uid() && metadata.mode() & 0o077 == 0
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_a_directory_of_this_user_alone_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let made = dir.path().join("made");
        assert!(is_private(&made));
        assert_eq!(fs::metadata(&made).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&made, fs::Permissions::from_mode(0o750)).unwrap();
        assert!(!is_private(&made));
        fs::set_permissions(&made, fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::symlink(&made, dir.path().join("link")).unwrap();
        assert!(!is_private(&dir.path().join("link")));
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(!is_private(&dir.path().join("file")));
        assert!(!is_private(&dir.path().join("none/there")));
    }

    #[test]
    fn the_directory_is_named_by_the_environment() {
        let dir = tempfile::tempdir().unwrap();
        let named = directory(Some(dir.path().into()));
        assert_eq!(named, dir.path().join("filectx"));
        for odd in [None, Some("relative".into()), Some(dir.path().join("gone").into())] {
            let fallback = directory(odd);
            assert!(fallback.to_str().unwrap().starts_with("/tmp/filectx-"), "{fallback:?}");
        }
    }
}
