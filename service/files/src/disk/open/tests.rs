//! Opening against trees made to mislead: links, fences, names that look alike.

use super::*;
use crate::FenceConfig;

/// The fences as the kernel keeps them, where it can, and as they are kept step by step.
fn fences(roots: &[&Path], deny: &[&str]) -> [Fences; 2] {
    let config = |by_steps| FenceConfig {
        roots: roots.iter().map(|root| root.to_path_buf()).collect(),
        deny: deny.iter().map(|&glob| glob.to_owned()).collect(),
        home: "/".into(),
        by_steps,
        ..FenceConfig::default()
    };
    [false, true].map(|by_steps| Fences::new(&config(by_steps)).unwrap())
}

fn open(fences: &Fences, cwd: &Path, path: &str) -> Result<Opened, Error> {
    let located = fences.locate(Some(path), None, cwd.to_str(), "").map_err(|unlocated| unlocated.error)?;
    fences.open_file(&located)
}

/// `jail/ok`, links in it, and what lies outside.
fn jail() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::create_dir_all(at("jail/sub")).unwrap();
    std::fs::create_dir_all(at("jail_evil")).unwrap();
    std::fs::write(at("jail/ok"), "inside").unwrap();
    std::fs::write(at("jail_evil/secret"), "outside").unwrap();
    for (link, target) in [
        ("jail/out", Path::new("../jail_evil/secret")),
        ("jail/out_dir", Path::new("../jail_evil")),
        ("jail/dangling_out", Path::new("../jail_evil/none")),
        ("jail/loop", Path::new("loop")),
        ("jail/good", Path::new("ok")),
        ("jail/sub/absolute", &at("jail/ok")),
        ("way_in", &at("jail")),
    ] {
        std::os::unix::fs::symlink(target, at(link)).unwrap();
    }
    dir
}

#[test]
fn roots_hold_whether_something_is_there_or_not() {
    let dir = jail();
    let root = dir.path().join("jail");
    for fences in fences(&[&root], &[]) {
        check_jail(&fences, dir.path(), &root);
    }
}

fn check_jail(fences: &Fences, above: &Path, root: &Path) {
    for path in [
        "../jail_evil/secret",
        "../jail_evil/none",
        "../none/none",
        "out",
        "out_dir/secret",
        "out_dir/none",
        "dangling_out",
        "/etc/passwd",
        "/no/such",
        "sub/../../top",
        "sub//..//..//top",
    ] {
        assert_eq!(open(fences, root, path).err(), Some(Error::OutsideRoots), "{path} {:?}", fences.opener);
    }
    for path in ["ok", "./ok", "sub/../ok", "good", "sub/absolute", "../jail/ok"] {
        assert!(
            open(fences, root, path).is_ok(),
            "{path}: {:?} {:?}",
            open(fences, root, path),
            fences.opener
        );
    }
    assert!(open(fences, above, "way_in/ok").is_ok());
    assert_eq!(open(fences, root, "loop").err(), Some(Error::LinkLoop));
    assert_eq!(open(fences, root, "none").err(), Some(Error::NotFound { sibling: None }));
}

#[test]
fn what_is_denied_is_denied_by_any_way() {
    let dir = jail();
    let deny = &["jail_evil", "*.pem"];
    for fences in [vec![], vec![dir.path()]].iter().flat_map(|roots| fences(roots, deny)) {
        for path in [
            "jail_evil/secret",
            "jail_evil/none",
            "jail/out",
            "jail/out_dir/none",
            "jail/x.pem",
            "jail/../jail_evil/secret",
        ] {
            assert_eq!(
                open(&fences, dir.path(), path).err(),
                Some(Error::DeniedByPolicy),
                "{path} {fences:?}"
            );
        }
        assert!(open(&fences, dir.path(), "jail/ok").is_ok());
    }
}

#[test]
fn failures_name_what_helps() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("Bild\u{a0}2.txt"), "").unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let sibling = Some("Bild\u{a0}2.txt".as_bytes().to_vec());
    let expected = |sibling| Some(Error::NotFound { sibling });
    for fences in fences(&[], &[]) {
        assert_eq!(open(&fences, dir.path(), "Bild 2.txt").err(), expected(sibling.clone()));
    }
    std::fs::write(dir.path().join("Bild\u{202f}2.txt"), "").unwrap();
    let component = dir.path().join("file").as_os_str().as_bytes().to_vec();
    for fences in fences(&[], &[]) {
        assert_eq!(open(&fences, dir.path(), "Bild 2.txt").err(), expected(None));
        for path in ["file/x", "file/"] {
            let expected = Error::NotADirectory { component: component.clone() };
            assert_eq!(open(&fences, dir.path(), path).err(), Some(expected));
        }
    }
}

#[test]
fn a_link_that_leads_nowhere_is_no_name_that_looks_alike() {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("gone", dir.path().join("link")).unwrap();
    let link = dir.path().join("link").as_os_str().as_bytes().to_vec();
    for (fences, path) in ["link", "link/below"].iter().flat_map(|path| fences(&[], &[]).map(|f| (f, path))) {
        let expected = Error::DanglingLink { link: link.clone(), target: b"gone".to_vec() };
        assert_eq!(open(&fences, dir.path(), path).err(), Some(expected));
    }
}
