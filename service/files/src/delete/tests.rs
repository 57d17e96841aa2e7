//! Deletes: what goes, and what never does.

use std::os::unix::fs::symlink;
use std::process::Command;

use filectx_openapi::Code;

use crate::disk::identity::hash_revision;
use crate::tests::{World, patient};

#[test]
fn files_and_links_go() {
    let world = World::new();
    world.put("a", "1").put("b", "2");
    symlink("b", world.path("l")).unwrap();
    symlink("gone", world.path("d")).unwrap();
    for name in ["a", "l", "d"] {
        let answer = world.files.delete(&world.delete_request(name), &patient()).unwrap();
        assert_eq!((answer.path.as_str(), answer.deleted), (world.path(name).to_str().unwrap(), true));
    }
    assert_eq!(world.names("."), ["b"]);
}

#[test]
fn what_is_never_deleted() {
    let world = World::new();
    world.put("d/x", "").put("f", "");
    std::fs::create_dir(world.path("empty")).unwrap();
    symlink("d", world.path("ld")).unwrap();
    symlink("f", world.path("lf")).unwrap();
    Command::new("mkfifo").arg(world.path("pipe")).status().unwrap();
    let before = world.names(".");
    for (path, expected) in [
        ("d", Code::IsDirectory),
        ("empty", Code::IsDirectory),
        ("d/", Code::IsDirectory),
        ("ld/", Code::IsDirectory),
        ("d/..", Code::IsDirectory),
        ("f/", Code::NotADirectory),
        ("lf/", Code::NotADirectory),
        ("f/x", Code::NotADirectory),
        ("none", Code::NotFound),
        ("none/", Code::NotFound),
        ("p/q/none", Code::NotFound),
        ("pipe", Code::NotRegularFile),
    ] {
        let error = world.files.delete(&world.delete_request(path), &patient()).unwrap_err();
        assert_eq!(error.code, expected, "{path}");
    }
    assert_eq!(world.names("."), before);
    // A link to a directory is a link.
    world.files.delete(&world.delete_request("ld"), &patient()).unwrap();
    assert!(world.path("d/x").exists());
}

#[test]
fn revisions_guard() {
    let world = World::new();
    world.put("a", "1").put("b", "2");
    symlink("b", world.path("l")).unwrap();
    symlink("gone", world.path("dangling")).unwrap();
    let delete = |path: &str, revision: String| {
        let mut request = world.delete_request(path);
        request.expected_revision = Some(revision);
        world.files.delete(&request, &patient())
    };
    let error = delete("a", "stale".into()).unwrap_err();
    assert_eq!((error.code, error.data.revision), (Code::RevisionMismatch, Some(hash_revision(b"1"))));
    assert_eq!(delete("none", "x".into()).unwrap_err().code, Code::NotFound);
    let error = delete("dangling", "x".into()).unwrap_err();
    assert_eq!((error.code, error.data.revision), (Code::RevisionMismatch, Some(hash_revision(b"gone"))));
    delete("a", hash_revision(b"1")).unwrap();
    // A link's revision is that of what it leads to, as a read tells it.
    delete("l", hash_revision(b"2")).unwrap();
    assert_eq!(world.names("."), ["b", "dangling"]);
}
