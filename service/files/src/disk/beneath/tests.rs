//! The kernel's way and the way by steps are one: for every path through a tree that is made to mislead they lead to the
//! same thing, or fail for the same reason. And while others move what lies on the way, none leads out.

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use rustix::fd::AsFd;

use super::*;

const PARTS: &[&str] =
    &["d", "e", "f", "..", ".", "", "up", "out", "in", "loop", "gone", "slash", "deep", "none", "dots"];

/// A jail `j` in a directory, with links of every kind.
fn tree() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let jail = dir.path().join("j");
    std::fs::create_dir_all(jail.join("d/e/d/e")).unwrap();
    std::fs::create_dir_all(dir.path().join("d/e")).unwrap();
    for file in ["f", "d/f", "d/e/f", "d/e/d/e/f"] {
        std::fs::write(jail.join(file), file).unwrap();
        let _ = std::fs::write(dir.path().join(file), "outside");
    }
    for place in ["", "d/", "d/e/"] {
        let absolute = dir.path().to_str().unwrap();
        for (link, target) in [
            ("up", ".."),
            ("out", "../../.."),
            ("in", "d/e"),
            ("loop", "loop/x"),
            ("gone", "none"),
            ("slash", absolute),
            ("deep", "d/../in/./"),
            ("dots", "d/."),
        ] {
            symlink(target, jail.join(place).join(link)).unwrap();
        }
    }
    dir
}

type Told = Result<(u64, u64, bool), Errno>;

fn told(reached: Result<Reached, Errno>) -> Told {
    reached.map(|reached| (reached.identity.dev, reached.identity.ino, reached.followed))
}

fn opened(path: &str) -> Aim {
    let directory = if path.len().is_multiple_of(3) { OFlags::DIRECTORY } else { OFlags::empty() };
    Aim::Open(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | directory)
}

/// Both ways of `path`, below the jail and from `/`.
fn both(dir: &Path, path: &str) -> Vec<(Told, Told)> {
    let jail = rustix::fs::open(dir.join("j"), system::NAME_ONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
    let absolute = format!("{}/j/{path}", dir.display());
    let froms = [(From::Below(jail.as_fd()), path), (From::Slash, absolute.as_str())];
    let aims = [opened(path), Aim::Look];
    let mut pairs = Vec::new();
    for (from, path) in froms.into_iter().filter(|(_, path)| !path.is_empty()) {
        for (aim, links) in aims.iter().flat_map(|&aim| [(aim, Links::Refused), (aim, Links::Followed)]) {
            let path = Path::new(path);
            pairs.push((told(by_kernel(from, path, aim, links)), told(steps::reach(from, path, aim, links))));
        }
    }
    pairs
}

/// Whether there is a kernel to compare with.
fn comparable() -> bool {
    let there = Opener::here() == Opener::Kernel;
    assert!(there || !crate::tests::required("openat2"), "this kernel has no openat2, or a filter hides it");
    there
}

proptest! {
    #[test]
    fn steps_lead_where_the_kernel_leads(
        paths in prop::collection::vec(prop::collection::vec(prop::sample::select(PARTS), 1..9), 1..30)
    ) {
        if !comparable() {
            return Ok(());
        }
        let dir = tree();
        let dir = dir.path().canonicalize().unwrap();
        for path in paths.iter().map(|parts| parts.join("/")).filter(|path| !path.starts_with('/')) {
            for (kernel, steps) in both(&dir, &path) {
                prop_assert_eq!(kernel, steps, "{}", path);
            }
        }
    }
}

#[test]
fn a_long_chain_of_links_ends_where_the_kernel_ends_it() {
    if !comparable() {
        return;
    }
    let dir = tree();
    let dir = dir.path().canonicalize().unwrap();
    for n in 1..60 {
        let target = if n == 1 { "f".to_owned() } else { format!("chain{}", n - 1) };
        symlink(target, dir.join("j").join(format!("chain{n}"))).unwrap();
    }
    for n in 1..60 {
        for (kernel, steps) in both(&dir, &format!("chain{n}")) {
            assert_eq!(kernel, steps, "{n}");
        }
    }
}

#[test]
fn a_closed_directory_is_passed_as_the_kernel_passes_it() {
    use std::os::unix::fs::PermissionsExt;
    if !comparable() {
        return;
    }
    let dir = tree();
    let dir = dir.path().canonicalize().unwrap();
    for mode in [0o000, 0o100, 0o400, 0o500, 0o700] {
        std::fs::set_permissions(dir.join("j/d"), std::fs::Permissions::from_mode(mode)).unwrap();
        for path in ["d", "d/", "d/f", "d/e/f", "d/none", "d/../f"] {
            for (kernel, steps) in both(&dir, path) {
                assert_eq!(kernel, steps, "{mode:o} {path}");
            }
        }
    }
    std::fs::set_permissions(dir.join("j/d"), std::fs::Permissions::from_mode(0o700)).unwrap();
}

/// Ends who looks at it when it is dropped.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn nothing_leads_out_while_others_move_what_lies_on_the_way() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::create_dir_all(at("jail/a/b")).unwrap();
    std::fs::create_dir_all(at("out/b")).unwrap();
    std::fs::write(at("jail/a/b/f"), "").unwrap();
    std::fs::write(at("jail/f"), "").unwrap();
    for outside in ["out/b/f", "out/f", "f"] {
        std::fs::write(at(outside), "secret").unwrap();
    }
    symlink("../out", at("jail/link")).unwrap();
    let jail = rustix::fs::open(at("jail"), system::NAME_ONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // `a` is a directory, a link that leads out, and a directory that lies outside, by turns.
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                std::fs::rename(at("jail/a"), at("moved")).unwrap();
                std::fs::rename(at("jail/link"), at("jail/a")).unwrap();
                std::fs::rename(at("jail/a"), at("jail/link")).unwrap();
                std::fs::rename(at("moved"), at("jail/a")).unwrap();
            }
        });
        // Also by a panic: the other must not go on then.
        let _end = End(&done);
        let mut reached = [0; 2];
        for round in 0..20_000 {
            let path = Path::new(["a/b/f", "a/b/../b/f", "a/../f", "a/b/../../f"][round % 4]);
            for aim in [opened("f"), Aim::Look] {
                if let Ok(found) = steps::reach(From::Below(jail.as_fd()), path, aim, Links::Followed) {
                    assert_eq!(found.identity.size, 0, "{} led out", path.display());
                    reached[round % 2] += 1;
                }
            }
        }
        assert!(reached.iter().all(|&n| n > 0), "{reached:?}");
    });
}
