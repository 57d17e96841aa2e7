//! Writes: new files, replaced ones and what they keep, streams, refusals.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use filectx_openapi::{Base64, Code, ItemError, WarningCode, WriteFileResponse};
use proptest::prelude::*;

use crate::disk::identity::hash_revision;
use crate::tests::{World, patient, required};

fn code(answer: Result<WriteFileResponse, ItemError>) -> Code {
    answer.unwrap_err().code
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// What the umask leaves of 0666, told by a file of our own.
fn default_mode(world: &World) -> u32 {
    world.put("by-others", "");
    let mode = mode(&world.path("by-others"));
    std::fs::remove_file(world.path("by-others")).unwrap();
    mode
}

#[test]
fn a_new_file() {
    let world = World::new();
    let default = default_mode(&world);
    let answer = world.write("n.txt", "a\r\nb").unwrap();
    let expected = WriteFileResponse {
        path: world.path("n.txt").to_str().unwrap().into(),
        path_base64: None,
        real_path: None,
        revision: hash_revision(b"a\r\nb"),
        previous_revision: None,
        created: true,
        bytes_written: 4,
        created_directories: vec![],
        atomic: true,
        warnings: vec![],
    };
    assert_eq!(answer, expected);
    assert_eq!((world.get("n.txt"), mode(&world.path("n.txt"))), (b"a\r\nb".to_vec(), default));
    let mut request = world.write_request("exec", "x");
    request.mode = Some("0751".into());
    world.files.write(&request, &patient()).unwrap();
    assert_eq!(mode(&world.path("exec")), 0o751);
    // The mode is for new files.
    request.mode = Some("0600".into());
    world.files.write(&request, &patient()).unwrap();
    assert_eq!(mode(&world.path("exec")), 0o751);
    assert_eq!(world.names("."), ["exec", "n.txt"]);
}

#[test]
fn a_replaced_file_keeps_what_is_not_content() {
    let world = World::new();
    for bits in [0o755, 0o600, 0o664, 0o2755, 0o4711, 0o222] {
        world.put("f", "v1\n");
        if rustix::process::geteuid().is_root() {
            // Someone else's stays someone else's.
            std::os::unix::fs::chown(world.path("f"), Some(65534), Some(12345)).unwrap();
        }
        set_mode(&world.path("f"), bits);
        let before = std::fs::metadata(world.path("f")).unwrap();
        let answer = world.write("f", "v2\n").unwrap();
        assert_eq!((answer.created, answer.warnings.len()), (false, 0), "{answer:?}");
        let after = std::fs::metadata(world.path("f")).unwrap();
        assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
        assert_eq!(world.get("f"), b"v2\n");
        std::fs::remove_file(world.path("f")).unwrap();
    }
}

#[test]
fn extended_attributes_are_kept() {
    let world = World::new();
    world.put("f", "v1\n");
    let file = std::fs::File::open(world.path("f")).unwrap();
    if rustix::fs::fsetxattr(&file, "user.origin", b"keep me", rustix::fs::XattrFlags::empty()).is_err() {
        assert!(!required("xattr"), "this file system keeps no extended attributes");
        return;
    }
    // An ACL of an entry for one more user.
    let acl = [
        &2_u32.to_le_bytes()[..],
        &acl_entry(1, 6, u32::MAX),
        &acl_entry(2, 4, 12345),
        &acl_entry(4, 4, u32::MAX),
        &acl_entry(0x10, 4, u32::MAX),
        &acl_entry(0x20, 0, u32::MAX),
    ]
    .concat();
    let has_acl =
        rustix::fs::fsetxattr(&file, "system.posix_acl_access", &acl, rustix::fs::XattrFlags::empty())
            .is_ok();
    let answer = world.write("f", "v2\n").unwrap();
    assert!(answer.warnings.is_empty(), "{:?}", answer.warnings);
    let file = std::fs::File::open(world.path("f")).unwrap();
    let value = |name: &str| {
        let mut value = vec![0; 256];
        let length = rustix::fs::fgetxattr(&file, name, value.as_mut_slice()).unwrap();
        value.truncate(length);
        value
    };
    assert_eq!(value("user.origin"), b"keep me");
    if has_acl {
        assert_eq!(value("system.posix_acl_access"), acl);
    }
}

fn acl_entry(tag: u16, permissions: u16, id: u32) -> Vec<u8> {
    [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
}

#[test]
fn a_directory_s_default_acl_does_not_reach_a_replaced_file() {
    let world = World::new();
    world.put("d/f", "v1\n");
    let acl = [
        &2_u32.to_le_bytes()[..],
        &acl_entry(1, 6, u32::MAX),
        &acl_entry(2, 6, 12345),
        &acl_entry(4, 4, u32::MAX),
        &acl_entry(0x10, 6, u32::MAX),
        &acl_entry(0x20, 0, u32::MAX),
    ]
    .concat();
    let directory = std::fs::File::open(world.path("d")).unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    if rustix::fs::fsetxattr(&directory, "system.posix_acl_default", &acl, flags).is_err() {
        assert!(!required("xattr"), "this file system keeps no ACL");
        return;
    }
    set_mode(&world.path("d/f"), 0o640);
    world.write("d/f", "v2\n").unwrap();
    let file = std::fs::File::open(world.path("d/f")).unwrap();
    assert!(rustix::fs::fgetxattr(&file, "system.posix_acl_access", &mut [0_u8; 256]).is_err());
    assert_eq!(mode(&world.path("d/f")), 0o640);
    // A new one takes it, as every new file there does.
    world.write("d/new", "x").unwrap();
    let file = std::fs::File::open(world.path("d/new")).unwrap();
    assert!(rustix::fs::fgetxattr(&file, "system.posix_acl_access", &mut [0_u8; 256]).is_ok());
}

#[test]
fn links_stay_and_their_target_is_written() {
    let world = World::new();
    world.put("store/rc", "1\n").put("elsewhere/x", "");
    symlink("store/rc", world.path("rc")).unwrap();
    symlink("rc", world.path("rc2")).unwrap();
    symlink("../store/rc", world.path("elsewhere/rc")).unwrap();
    symlink("not_yet.txt", world.path("soon")).unwrap();
    symlink("round", world.path("round")).unwrap();
    for (link, text) in [("rc2", "2\n"), ("elsewhere/rc", "3\n")] {
        let answer = world.write(link, text).unwrap();
        assert_eq!(answer.real_path.as_deref(), world.path("store/rc").to_str());
        assert_eq!(world.get("store/rc"), text.as_bytes());
    }
    assert!(world.write("soon", "x\n").unwrap().created);
    assert_eq!(world.get("not_yet.txt"), b"x\n");
    assert_eq!(code(world.write("round", "x")), Code::LinkLoop);
    for link in ["rc", "rc2", "elsewhere/rc", "soon", "round"] {
        assert!(std::fs::symlink_metadata(world.path(link)).unwrap().is_symlink(), "{link}");
    }
    assert_eq!(
        (world.names("store"), world.names("elsewhere")),
        (vec!["rc".into()], vec!["rc".to_owned(), "x".into()])
    );
}

#[test]
fn hard_links_are_split_and_told() {
    let world = World::new();
    world.put("a", "1\n");
    std::fs::hard_link(world.path("a"), world.path("b")).unwrap();
    let answer = world.write("a", "2\n").unwrap();
    assert_eq!(answer.warnings[0].code, WarningCode::HardLinkSplit);
    assert_eq!((world.get("a"), world.get("b")), (b"2\n".to_vec(), b"1\n".to_vec()));
    assert!(world.write("a", "3\n").unwrap().warnings.is_empty());
}

#[test]
fn what_a_reader_would_miss_is_told() {
    let world = World::new();
    world.put("crlf", "a\r\nb\r\n").put("bom", "\u{feff}a\n");
    let codes = |answer: WriteFileResponse| answer.warnings.into_iter().map(|w| w.code).collect::<Vec<_>>();
    assert_eq!(codes(world.write("crlf", "a\nb\n").unwrap()), [WarningCode::LineEndingsChanged]);
    assert_eq!(codes(world.write("bom", "a\n").unwrap()), [WarningCode::BomRemoved]);
}

#[test]
fn parents_are_made_and_told() {
    let world = World::new();
    let answer = world.write("new/deep/er/x.txt", "x").unwrap();
    let made: Vec<_> = ["new", "new/deep", "new/deep/er"]
        .iter()
        .map(|name| world.path(name).to_str().unwrap().to_owned())
        .collect();
    assert_eq!(answer.created_directories, made);
    let answer = world.write("new//deep/./two/y.txt", "y").unwrap();
    assert_eq!(answer.created_directories.len(), 1);
    assert!(answer.created_directories[0].ends_with("two"));
    let mut request = world.write_request("other/x", "x");
    request.create_parents = false;
    assert_eq!(code(world.files.write(&request, &patient())), Code::NotFound);
    assert!(!world.path("other").exists());
}

#[test]
fn refusals_leave_nothing() {
    let world = World::new();
    world.put("block", "i am a file\n").put("have/x", "").put("ro", "x");
    set_mode(&world.path("ro"), 0o444);
    Command::new("mkfifo").arg(world.path("pipe")).status().unwrap();
    let before = world.names(".");
    for (path, expected) in [
        ("block/x.txt", Code::NotADirectory),
        ("have", Code::IsDirectory),
        ("have/", Code::IsDirectory),
        ("none/", Code::IsDirectory),
        ("have/.", Code::IsDirectory),
        ("block/", Code::IsDirectory),
        ("", Code::InvalidPath),
        ("nul\0.txt", Code::InvalidPath),
        ("none/../x", Code::NotFound),
        ("ro", Code::PermissionDenied),
        ("pipe", Code::NotRegularFile),
        (&("p/q/".to_owned() + &"n".repeat(256)), Code::InvalidPath),
    ] {
        assert_eq!(code(world.write(path, "x")), expected, "{path}");
        assert_eq!(world.names("."), before, "{path}");
    }
}

#[test]
fn requests_that_contradict_themselves() {
    let world = World::new();
    let base = world.write_request("x", "a");
    let pointer = |request| {
        let error = world.files.write(&request, &patient()).unwrap_err();
        assert_eq!(error.code, Code::InvalidRequest);
        error.data.pointer.unwrap()
    };
    let mut request = base.clone();
    request.binary_content = Some(Base64(b"a".to_vec()));
    assert_eq!(pointer(request), "/binary_content");
    let mut request = base.clone();
    request.text_content = None;
    assert_eq!(pointer(request), "/text_content");
    for mode in ["755", "rwx", "00755", "0888", "+755", ""] {
        let mut request = base.clone();
        request.mode = Some(mode.into());
        assert_eq!(pointer(request), "/mode", "{mode}");
    }
    let mut request = base;
    (request.create_only, request.expected_revision) = (true, Some("x".into()));
    assert_eq!(pointer(request), "/create_only");
    assert!(world.names(".").is_empty());
}

#[test]
fn preconditions() {
    let world = World::new();
    world.put("n", "old\n");
    let mut request = world.write_request("n", "new\n");
    request.create_only = true;
    let error = world.files.write(&request, &patient()).unwrap_err();
    assert_eq!((error.code, error.data.revision), (Code::AlreadyExists, Some(hash_revision(b"old\n"))));
    let mut request = world.write_request("n", "new\n");
    request.expected_revision = Some(hash_revision(b"old\n"));
    let answer = world.files.write(&request, &patient()).unwrap();
    assert_eq!(answer.previous_revision, request.expected_revision);
    let error = world.files.write(&request, &patient()).unwrap_err();
    assert_eq!((error.code, error.data.revision), (Code::RevisionMismatch, Some(answer.revision)));
    let mut request = world.write_request("p/q/none", "new\n");
    request.expected_revision = Some("abc".into());
    assert_eq!(code(world.files.write(&request, &patient())), Code::NotFound);
    assert_eq!(world.names("."), ["n"]);
}

#[test]
fn of_those_who_create_at_once_one_wins() {
    let world = World::new();
    let won: usize = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..20)
            .map(|n| {
                let world = &world;
                scope.spawn(move || {
                    let mut request = world.write_request("d/n.txt", &format!("{n}\n"));
                    request.create_only = true;
                    usize::from(world.files.write(&request, &patient()).is_ok())
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    assert_eq!(won, 1);
    assert_eq!(world.names("d"), ["n.txt"]);
}

#[test]
fn those_who_write_at_once_all_succeed() {
    let world = World::new();
    let whole = |n: u64| format!("{n}\n").repeat(10_000);
    std::thread::scope(|scope| {
        for n in 0..8 {
            let world = &world;
            scope.spawn(move || world.write("new/f.txt", &whole(n)).unwrap());
        }
    });
    let content = String::from_utf8(world.get("new/f.txt")).unwrap();
    assert!((0..8).any(|n| content == whole(n)));
}

#[test]
fn the_longest_names_and_paths() {
    let world = World::new();
    let name = "n".repeat(255);
    world.write(&name, "one\n").unwrap();
    world.edit(&name, "one", "two").unwrap();
    assert_eq!((world.get(&name), world.names(".")), (b"two\n".to_vec(), vec![name.clone()]));
    // As deep as a path reaches (4,095 bytes), then a byte more.
    let left = 4095 - world.root().as_os_str().len() - 1;
    let deep = ("d".repeat(99) + "/").repeat(left / 100);
    let path = deep.clone() + &"f".repeat(left - deep.len());
    assert!(world.write(&path, "one\n").unwrap().created);
    world.edit(&path, "one", "two").unwrap();
    let answer = world.write(&path, "three\n").unwrap();
    assert!(answer.atomic && !answer.created);
    assert_eq!(world.get(&path), b"three\n");
    let error = world.write(&(path.clone() + "f"), "x").unwrap_err();
    assert_eq!(error.code, Code::InvalidPath);
    world.files.delete(&world.delete_request(&path), &patient()).unwrap();
}

#[test]
fn names_that_are_no_text() {
    let world = World::new();
    let mut request = world.write_request("", "n");
    (request.path, request.path_base64) = (None, Some(Base64::encode(b"n\xff/w\xfe")));
    let answer = world.files.write(&request, &patient()).unwrap();
    assert!(answer.path_base64.is_some() && answer.created);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn what_is_published_is_read_again(first in proptest::collection::vec(any::<u8>(), 0..2000), second in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let world = World::new();
        let mut request = world.write_request("f", "");
        for content in [first, second] {
            (request.text_content, request.binary_content) = (None, Some(Base64(content.clone())));
            let answer = world.files.write(&request, &patient()).unwrap();
            prop_assert_eq!(&answer.revision, &hash_revision(&content));
            prop_assert_eq!(world.get("f"), content);
        }
    }
}

mod streams;
