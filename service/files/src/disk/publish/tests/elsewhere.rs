//! Publishing in other processes: on a full disk, on a mount point, as a user who may less, and killed again and again.
//! These tests run this very program again.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use filectx_openapi::{Code, WarningCode};

use super::*;
use crate::disk::random::random_name;

const INSIDE: &str = "FILECTX_TEST_INSIDE";

/// This program again, to run one test of this module alone; `INSIDE` tells it where.
fn again(test: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let name = format!("{}::{test}", module_path!().split_once("::").unwrap().1);
    command.args(["--exact", &name, "--nocapture", "--test-threads", "1"]).env(INSIDE, directory);
    command
}

/// [`again`] in a mount namespace of its own, after the shell commands `setup`; false where that cannot be.
fn again_with_mounts(test: &str, directory: &Path, setup: &str) -> bool {
    let program = again(test, directory);
    let script = format!("{setup} && exec \"$0\" \"$@\"");
    let mut unshared = Command::new("unshare");
    unshared.args(["-m", "sh", "-ec", &script]).arg(program.get_program()).args(program.get_args());
    unshared.env(INSIDE, directory).stdout(Stdio::null());
    let can = Command::new("unshare").args(["-m", "true"]).stderr(Stdio::null()).status();
    if !can.is_ok_and(|status| status.success()) {
        assert!(!required("root"), "mounts need root");
        return false;
    }
    assert!(unshared.status().unwrap().success(), "{test} failed inside");
    true
}

fn inside() -> Option<std::path::PathBuf> {
    std::env::var_os(INSIDE).map(Into::into)
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    let directory = tempfile::tempdir().unwrap();
    let setup = "mount -t tmpfs -o size=256k none \"$FILECTX_TEST_INSIDE\" && echo precious > \"$FILECTX_TEST_INSIDE/precious.txt\" && head -c 200k /dev/zero > \"$FILECTX_TEST_INSIDE/fill\"";
    again_with_mounts("inside_a_full_disk", directory.path(), setup);
}

#[test]
fn inside_a_full_disk() {
    let Some(directory) = inside() else { return };
    let world = World::at(&directory);
    let text = "0123456789abcde\n".repeat(65536);
    assert_eq!(world.write("precious.txt", &text).unwrap_err().code, Code::NoSpace);
    assert_eq!(world.write("new/deep/n.txt", &text).unwrap_err().code, Code::NoSpace);
    assert_eq!(world.edit("precious.txt", "precious", &text).unwrap_err().code, Code::NoSpace);
    let mut request = world.write_request("precious.txt", "");
    request.text_content = None;
    let mut stream = std::io::Read::take(std::io::repeat(b'x'), 1 << 20);
    assert_eq!(world.files.write_from(&request, &mut stream, &patient()).unwrap_err().code, Code::NoSpace);
    // In place, too: the room is taken before a byte is gone.
    let error = prepared_in_place(&world, "precious.txt", &text);
    assert_eq!(error, Err(Error::NoSpace));
    assert_eq!(
        (world.get("precious.txt"), world.names(".")),
        (b"precious\n".to_vec(), vec!["fill".to_owned(), "precious.txt".into()])
    );
    world.edit("precious.txt", "precious", "still fits").unwrap();
    what_finds_no_room_at_a_start_is_tried_again(&world, &text);
}

/// A write in place was cut off, and at the next start there is no room for the rest.
fn what_finds_no_room_at_a_start_is_tried_again(world: &World, text: &str) {
    let runtime = tempfile::tempdir().unwrap();
    let (copy, target) = (runtime.path().join(".filectx-1.tmp"), world.path("precious.txt"));
    let before = Identity::of(&rustix::fs::stat(&target).unwrap());
    std::fs::write(&copy, &text[..100 << 10]).unwrap();
    std::fs::write(&target, &text[..10]).unwrap();
    let journal = Journal::begin(runtime.path()).unwrap();
    journal.announce(&Announced::Temporary(copy.clone())).leave();
    journal.announce(&Announced::in_place(copy.clone(), target.clone(), &before)).leave();
    drop(journal);
    for _ in 0..2 {
        let swept = journal::sweep(runtime.path()).unwrap();
        assert_eq!((swept.pending, swept.completed), (vec![target.clone()], vec![]));
        assert!(copy.exists(), "the copy is all there is of the new content");
    }
    std::fs::remove_file(world.path("fill")).unwrap();
    assert_eq!(journal::sweep(runtime.path()).unwrap().completed, std::slice::from_ref(&target));
    assert_eq!(std::fs::read_to_string(&target).unwrap(), text[..100 << 10]);
    assert_eq!(std::fs::read_dir(runtime.path()).unwrap().count(), 0);
}

/// Writes in place from a copy that lies elsewhere.
fn prepared_in_place(world: &World, name: &str, content: &str) -> Result<bool, Error> {
    let cancel = patient();
    let disk = world.files.disk(&cancel);
    let at = world.files.fences().locate(world.path(name).to_str(), None, None, "").unwrap();
    let held = disk.hold(&at, Last::Followed).unwrap();
    let mut copy = Temporary::elsewhere(disk.journal).unwrap();
    crate::disk::fill::fill_with(&copy.file, content.as_bytes(), &cancel).unwrap();
    held.replace(&mut copy, Seen::Identity, disk.journal).map(|published| published.atomic)
}

#[test]
fn a_mount_point_is_written_in_place() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("source.yaml"), "mounted: 1\n").unwrap();
    std::fs::write(directory.path().join("target.yaml"), "hidden\n").unwrap();
    let setup = "mount --bind \"$FILECTX_TEST_INSIDE/source.yaml\" \"$FILECTX_TEST_INSIDE/target.yaml\"";
    if again_with_mounts("inside_a_mount", directory.path(), setup) {
        assert_eq!(std::fs::read(directory.path().join("source.yaml")).unwrap(), b"mounted: 3\n");
        assert_eq!(std::fs::read(directory.path().join("target.yaml")).unwrap(), b"hidden\n");
    }
}

#[test]
fn inside_a_mount() {
    let Some(directory) = inside() else { return };
    let world = World::at(&directory);
    let answer = world.edit("target.yaml", "mounted: 1", "mounted: 2").unwrap();
    assert!(!answer.atomic);
    assert_eq!(answer.revision, hash_revision(b"mounted: 2\n"));
    assert!(!world.write("target.yaml", "mounted: 3\n").unwrap().atomic);
    assert_eq!(world.names("."), ["source.yaml", "target.yaml"]);
}

#[test]
fn an_overlay_that_copies_up_is_no_change_of_others() {
    let directory = tempfile::tempdir().unwrap();
    let setup = "cd \"$FILECTX_TEST_INSIDE\"; mkdir low up all; mount -t tmpfs none low; mount -t tmpfs none up; \
                 mkdir up/files up/work; for name in edited written deleted large; do echo one > low/$name; done; \
                 head -c 9M /dev/zero | tr '\\0' x >> low/large; \
                 mount -t overlay -o lowerdir=low,upperdir=up/files,workdir=up/work none all";
    again_with_mounts("inside_an_overlay", directory.path(), setup);
}

#[test]
fn inside_an_overlay() {
    let Some(directory) = inside() else { return };
    let world = World::at(&directory.join("all"));
    // The layers lie on different file systems: a file is copied up by its first change.
    world.edit("edited", "one", "two").unwrap();
    world.edit("large", "one\n", "two\n").unwrap();
    assert!(world.write("written", "two\n").unwrap().atomic);
    let mut request = world.delete_request("deleted");
    request.expected_revision = Some(hash_revision(b"one\n"));
    world.files.delete(&request, &patient()).unwrap();
    assert_eq!((world.get("edited"), world.get("written")), (b"two\n".to_vec(), b"two\n".to_vec()));
    assert_eq!(world.names("."), ["edited", "large", "written"]);
}

#[test]
fn a_read_only_mount_refuses() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("f"), "one\n").unwrap();
    let setup = "mount --bind \"$FILECTX_TEST_INSIDE\" \"$FILECTX_TEST_INSIDE\" && \
                 mount -o remount,ro,bind \"$FILECTX_TEST_INSIDE\"";
    again_with_mounts("inside_a_read_only_mount", directory.path(), setup);
}

#[test]
fn inside_a_read_only_mount() {
    let Some(directory) = inside() else { return };
    let world = World::at(&directory);
    assert_eq!(world.edit("f", "one", "two").unwrap_err().code, Code::PermissionDenied);
    for name in ["f", "new", "new/deep/er"] {
        assert_eq!(world.write(name, "two\n").unwrap_err().code, Code::PermissionDenied, "{name}");
    }
    let error = world.files.delete(&world.delete_request("f"), &patient()).unwrap_err();
    assert_eq!(error.code, Code::PermissionDenied);
    assert_eq!((world.get("f"), world.names(".")), (b"one\n".to_vec(), vec!["f".to_owned()]));
}

/// How other users fare: in a directory that is closed to them, with a file of someone else's.
#[test]
fn for_a_user_who_may_less() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    if !rustix::process::geteuid().is_root() {
        assert!(!required("root"), "another user needs root");
        return;
    }
    let put = |name: &str, mode: u32, owner: u32| {
        std::fs::write(path.join(name), "one\n").unwrap();
        std::os::unix::fs::chown(path.join(name), Some(owner), Some(owner)).unwrap();
        std::fs::set_permissions(path.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    for name in ["closed", "open", "sticky"] {
        std::fs::create_dir(path.join(name)).unwrap();
    }
    std::fs::set_permissions(path.join("sticky"), std::fs::Permissions::from_mode(0o1777)).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(path.join("open"), std::fs::Permissions::from_mode(0o777)).unwrap();
    put("closed/theirs", 0o666, 0);
    put("closed/locked", 0o644, 0);
    put("open/theirs", 0o666, 0);
    put("open/program", 0o4777, 0);
    put("open/own", 0o600, 65534);
    put("open/blind", 0o222, 0);
    put("sticky/theirs", 0o666, 0);
    put("sticky/own", 0o600, 65534);
    let program = again("inside_another_user", path);
    let setpriv = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(program.get_program())
        .args(program.get_args())
        .env(INSIDE, path)
        .stdout(Stdio::null())
        .status();
    match setpriv {
        Ok(status) => assert!(status.success(), "it failed inside"),
        Err(error) => assert!(!required("setpriv"), "{error}"),
    }
}

#[test]
fn inside_another_user() {
    let Some(directory) = inside() else { return };
    let world = World::at(&directory);
    let answer = world.edit("closed/theirs", "one", "two").unwrap();
    assert!(!answer.atomic && answer.warnings.is_empty(), "{answer:?}");
    assert_eq!(world.edit("closed/locked", "one", "two").unwrap_err().code, Code::PermissionDenied);
    assert_eq!(world.write("closed/new", "x").unwrap_err().code, Code::PermissionDenied);
    assert_eq!(world.write("closed/new/deep", "x").unwrap_err().code, Code::PermissionDenied);
    let answer = world.edit("open/theirs", "one", "two").unwrap();
    assert_eq!((answer.atomic, &answer.warnings[0].code), (true, &WarningCode::OwnerNotKept));
    // A program must not get this user's rights by an edit.
    let answer = world.write("open/program", "two\n").unwrap();
    assert_eq!(answer.warnings[0].code, WarningCode::OwnerNotKept);
    assert_eq!(std::fs::metadata(world.path("open/program")).unwrap().mode() & 0o7777, 0o777);
    assert!(world.edit("open/own", "one", "two").unwrap().warnings.is_empty());
    // What may be written and not read: its attributes and revision are unknown.
    assert_eq!(world.edit("open/blind", "one", "two").unwrap_err().code, Code::PermissionDenied);
    let answer = world.write("open/blind", "two\n").unwrap();
    assert_eq!(answer.previous_revision, None);
    assert!(answer.warnings.iter().any(|warning| warning.code == WarningCode::XattrNotKept));
    assert_eq!(std::fs::metadata(world.path("open/blind")).unwrap().mode() & 0o7777, 0o222);
    assert_eq!(world.names("closed"), ["locked", "theirs"]);
    // Where only its owner may replace a file, others who may write it do so in place.
    assert!(!world.edit("sticky/theirs", "one", "two").unwrap().atomic);
    assert!(world.edit("sticky/own", "one", "two").unwrap().atomic);
    let mut delete = world.delete_request("sticky/theirs");
    for revision in [None, Some(hash_revision(b"two\n"))] {
        delete.expected_revision = revision;
        let error = world.files.delete(&delete, &patient()).unwrap_err();
        assert_eq!(error.code, Code::PermissionDenied);
    }
    assert_eq!(
        (world.get("sticky/theirs"), world.names("sticky")),
        (b"two\n".to_vec(), vec!["own".into(), "theirs".to_owned()])
    );
}

/// A number below `most`.
fn random(most: u64) -> u64 {
    u64::from_str_radix(&random_name(), 16).unwrap() % most
}

const KILLS: u32 = 200;

#[test]
fn killed_at_any_moment_a_file_is_old_or_new() {
    let directory = tempfile::tempdir().unwrap();
    let (tree, runtime) = (directory.path().join("tree"), directory.path().join("runtime"));
    std::fs::create_dir(&tree).unwrap();
    std::fs::create_dir(&runtime).unwrap();
    for name in ["edited", "written", "in_place"] {
        std::fs::write(tree.join(name), whole(0)).unwrap();
    }
    let mut settled = journal::Swept::default();
    for _ in 0..KILLS {
        let mut child: Child =
            again("a_child_that_is_killed", directory.path()).stdout(Stdio::piped()).spawn().unwrap();
        // Once it is at work, after a few publishes and a moment more.
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let publishes = random(6);
        let begun = lines.by_ref().map_while(Result::ok).filter(|line| line.contains("published"));
        assert_eq!(
            begun.take(publishes as usize + 1).count() as u64,
            publishes + 1,
            "the child ended by itself"
        );
        let until = Instant::now() + Duration::from_micros(random(3_000));
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let swept = journal::sweep(&runtime).unwrap();
        settled.removed.extend(swept.removed);
        settled.completed.extend(swept.completed);
        for name in ["edited", "written", "in_place"] {
            let content = std::fs::read_to_string(tree.join(name)).unwrap();
            let n = content.lines().next().expect("a file is empty").parse().unwrap();
            assert!(content == whole(n), "{name} is neither old nor new");
        }
        let mut names: Vec<_> = std::fs::read_dir(&tree)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.retain(|name| !["edited", "in_place", "written", "made"].contains(&name.as_str()));
        assert!(names.is_empty(), "left behind: {names:?}");
        if tree.join("made").exists() {
            assert!(tree.join("made/deep/new").exists(), "a directory without its file stays");
            assert!(std::fs::read_to_string(tree.join("made/deep/new")).unwrap() == whole(1));
            assert_eq!(std::fs::read_dir(tree.join("made/deep")).unwrap().count(), 1);
            std::fs::remove_dir_all(tree.join("made")).unwrap();
        }
        assert_eq!(std::fs::read_dir(&runtime).unwrap().count(), 0, "a journal or a copy stays");
    }
    // Kills that never hit a publish would prove nothing.
    assert!(!settled.removed.is_empty(), "no kill left a temporary behind");
}

fn whole(n: u64) -> String {
    format!("{n}\n").repeat(20_000)
}

#[test]
fn a_child_that_is_killed() {
    let Some(directory) = inside() else { return };
    let world = World::at(&directory.join("tree"));
    world.files.keep_journal(&directory.join("runtime")).unwrap();
    let first = |name| {
        let content = String::from_utf8(world.get(name)).unwrap();
        content.lines().next().unwrap().parse::<u64>().unwrap()
    };
    let (mut edited, mut n) = (first("edited"), first("written").max(first("in_place")));
    loop {
        let (old, new) = (whole(edited), whole(edited + 1));
        world.edit("edited", &old, &new).unwrap();
        edited += 1;
        println!("published");
        n += 1;
        world.write("written", &whole(n)).unwrap();
        println!("published");
        prepared_in_place(&world, "in_place", &whole(n)).unwrap();
        println!("published");
        world.write("made/deep/new", &whole(1)).unwrap();
        println!("published");
    }
}
