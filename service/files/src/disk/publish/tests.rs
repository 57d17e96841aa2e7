//! Publishing under fire: changes of others in the smallest gap, writes in place, leftovers, racers.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, Instant};

use filectx_openapi::Code;

use super::*;
use crate::disk::identity::hash_revision;
use crate::disk::journal;
use crate::disk::system::swap;
use crate::disk::temporary::Purpose;
use crate::tests::{World, patient, required};

/// Holds `name`, prepares `content` as if to replace it, and lets `act` do the rest.
fn prepared<T>(
    world: &World,
    name: &str,
    content: &[u8],
    act: impl FnOnce(&Held<'_>, &mut Temporary<'_>) -> T,
) -> T {
    let cancel = patient();
    let disk = world.files.disk(&cancel);
    let at = world.files.fences().locate(world.path(name).to_str(), None, None, "").unwrap();
    let held = disk.hold(&at, Last::Followed).unwrap();
    let mut temporary = Temporary::create(&held.place, Purpose::Replacement, disk.journal).unwrap();
    crate::disk::fill::fill_with(&temporary.file, content, &cancel).unwrap();
    act(&held, &mut temporary)
}

fn exchange(world: &World, meanwhile: impl FnOnce()) -> Result<(), Error> {
    prepared(world, "f", b"ours\n", |held, temporary| {
        meanwhile();
        let old = held.existing.as_ref().unwrap();
        held.exchange(temporary, old, Seen::Bytes(b"read\n")).map_err(|refused| match refused {
            Refused::Here => Error::Internal,
            Refused::Failed(error) => error,
        })
    })
}

#[test]
fn an_exchange_takes_the_place_and_leaves_nothing() {
    let world = World::new();
    world.put("f", "read\n");
    exchange(&world, || ()).unwrap();
    assert_eq!((world.get("f"), world.names(".")), (b"ours\n".to_vec(), vec!["f".to_owned()]));
}

#[test]
fn what_changed_in_the_gap_goes_back() {
    type Change = fn(&World);
    let changes: &[(&str, Change)] = &[
        ("rewritten", |world| std::fs::write(world.path("f"), "theirs\n").unwrap()),
        ("replaced", |world| {
            std::fs::write(world.path("g"), "theirs\n").unwrap();
            std::fs::rename(world.path("g"), world.path("f")).unwrap();
        }),
        ("same size, same time", |world| {
            let before = std::fs::metadata(world.path("f")).unwrap().modified().unwrap();
            std::fs::write(world.path("f"), "rEAD\n").unwrap();
            std::fs::File::options().write(true).open(world.path("f")).unwrap().set_modified(before).unwrap();
        }),
        ("mode", |world| {
            std::fs::set_permissions(world.path("f"), std::fs::Permissions::from_mode(0o600)).unwrap();
        }),
        ("a directory instead", |world| {
            std::fs::remove_file(world.path("f")).unwrap();
            std::fs::create_dir(world.path("f")).unwrap();
        }),
    ];
    for (what, change) in changes {
        let world = World::new();
        world.put("f", "read\n");
        let mut after = None;
        let error = exchange(&world, || {
            change(&world);
            let meta = std::fs::metadata(world.path("f")).unwrap();
            after = Some((meta.ino(), meta.mode(), std::fs::read(world.path("f")).ok()));
        });
        assert_eq!(error, Err(Error::ChangedConcurrently), "{what}");
        let meta = std::fs::metadata(world.path("f")).unwrap();
        assert_eq!(Some((meta.ino(), meta.mode(), std::fs::read(world.path("f")).ok())), after, "{what}");
        assert_eq!(world.names("."), ["f"], "{what}");
    }
    let world = World::new();
    world.put("f", "read\n");
    let error = exchange(&world, || std::fs::remove_file(world.path("f")).unwrap());
    assert_eq!(error, Err(Error::ChangedConcurrently));
    assert!(world.names(".").is_empty());
}

#[test]
fn the_newest_wins_when_ours_was_seen_before_it_went_back() {
    let world = World::new();
    world.put("f", "read\n");
    prepared(&world, "f", b"ours\n", |held, temporary| {
        // The state after an exchange that brought out what nobody had read; meanwhile ours was built on.
        let name = temporary.name().unwrap().to_owned();
        std::fs::write(world.path("f"), "theirs\n").unwrap();
        let ours = Identity::of(&rustix::fs::fstat(&temporary.file).unwrap());
        swap(&held.place.dir, &name, &held.place.name).unwrap();
        let theirs = identity_at(&held.place.dir, &name);
        std::fs::write(world.path("f"), "newest\n").unwrap();
        // What is in the temporary's place is ours, but rewritten: not as it was put there.
        let error = held.swap_back(temporary, &name, &ours, theirs);
        assert_eq!(error, Error::ChangedConcurrently);
    });
    assert_eq!((world.get("f"), world.names(".")), (b"newest\n".to_vec(), vec!["f".to_owned()]));
}

#[test]
fn written_in_place_where_nothing_else_is_possible() {
    let world = World::new();
    for (old, new) in [("one\n", "a longer text\n"), ("a longer text\n", "x"), ("x", "")] {
        world.put("f", old);
        std::fs::set_permissions(world.path("f"), std::fs::Permissions::from_mode(0o6755)).unwrap();
        let inode = std::fs::metadata(world.path("f")).unwrap().ino();
        let published = prepared(&world, "f", new.as_bytes(), |held, temporary| {
            // As if it lay on another file system.
            temporary.beside = false;
            held.replace(temporary, Seen::Bytes(old.as_bytes()), None).unwrap()
        });
        assert!(!published.atomic && published.warnings.is_empty());
        assert_eq!((world.get("f"), world.names(".")), (new.as_bytes().to_vec(), vec!["f".to_owned()]));
        let after = std::fs::metadata(world.path("f")).unwrap();
        assert_eq!((after.ino(), after.mode() & 0o7777), (inode, 0o6755));
    }
}

#[test]
fn a_directory_that_never_gives_up_a_name_gets_no_temporary() {
    let world = World::new();
    world.put("d/f", "one\n");
    let chattr = |flag: &str| {
        let done = std::process::Command::new("chattr").arg(flag).arg(world.path("d")).output();
        done.is_ok_and(|output| output.status.success())
    };
    if !chattr("+a") {
        assert!(!required("chattr"), "no attributes can be set here");
        return;
    }
    let (edited, written) = (world.edit("d/f", "one", "two"), world.write("d/new", "x"));
    let names = world.names("d");
    assert!(chattr("-a"), "the directory can go again");
    assert!(!edited.unwrap().atomic && written.unwrap().created);
    assert_eq!((world.get("d/f"), names), (b"two\n".to_vec(), vec!["f".to_owned(), "new".into()]));
}

#[test]
fn a_write_in_place_that_was_cut_off_is_completed() {
    let world = World::new();
    let runtime = tempfile::tempdir().unwrap();
    let (copy, target) = (world.path(".filectx-1.tmp"), world.path("f"));
    let cases = [
        // What the kill left, what the next start makes of it.
        ("untouched", "old old old\n", "old old old\n", false),
        ("half", "new old old\n", "new\n", true),
        ("longer", "new\nold old\n", "new\n", true),
    ];
    for (what, left, expected, completed) in cases {
        world.put("f", "old old old\n").put(".filectx-1.tmp", "new\n");
        let before = Identity::of(&rustix::fs::stat(&target).unwrap());
        let journal = Journal::begin(runtime.path()).unwrap();
        journal.announce(&Announced::in_place(copy.clone(), target.clone(), &before)).leave();
        drop(journal);
        if left != "old old old\n" {
            // As a write in place does: the same inode, another time.
            std::fs::write(&target, left).unwrap();
        }
        let swept = journal::sweep(runtime.path()).unwrap();
        assert_eq!(swept.completed.len(), usize::from(completed), "{what}");
        assert_eq!(
            (world.get("f"), world.names(".")),
            (expected.as_bytes().to_vec(), vec!["f".to_owned()]),
            "{what}"
        );
        assert_eq!(std::fs::read_dir(runtime.path()).unwrap().count(), 0);
    }
    // Someone replaced the file since: it is theirs.
    world.put("f", "old\n").put(".filectx-1.tmp", "new\n");
    let before = Identity::of(&rustix::fs::stat(&target).unwrap());
    let journal = Journal::begin(runtime.path()).unwrap();
    journal.announce(&Announced::in_place(copy, target, &before)).leave();
    drop(journal);
    world.put("g", "theirs\n");
    std::fs::rename(world.path("g"), world.path("f")).unwrap();
    journal::sweep(runtime.path()).unwrap();
    assert_eq!((world.get("f"), world.names(".")), (b"theirs\n".to_vec(), vec!["f".to_owned()]));
}

#[test]
fn a_sweep_touches_nothing_but_what_is_ours() {
    let world = World::new();
    let runtime = tempfile::tempdir().unwrap();
    world
        .put("precious", "x")
        .put(".filectx-2.tmp", "y")
        .put("d/.filectx-3.tmp/x", "")
        .put("aside/.filectx-4.tmp", "z");
    std::os::unix::fs::symlink("d", world.path("ld")).unwrap();
    let journal = Journal::begin(runtime.path()).unwrap();
    for announced in [
        Announced::Temporary(world.path("precious")),
        Announced::Temporary(world.path(".filectx-2.tmp")),
        Announced::Temporary(world.path("d/.filectx-3.tmp")),
        Announced::Temporary(world.path("ld/.filectx-3.tmp")),
        Announced::Directory(world.path("d")),
        Announced::Aside(world.path("aside/.filectx-4.tmp"), world.path("aside/back")),
    ] {
        journal.announce(&announced).leave();
    }
    drop(journal);
    let swept = journal::sweep(runtime.path()).unwrap();
    assert_eq!(
        (swept.removed, swept.restored),
        (vec![world.path(".filectx-2.tmp")], vec![world.path("aside/back")])
    );
    assert_eq!(world.names("."), ["aside", "d", "ld", "precious"]);
    assert_eq!(world.get("aside/back"), b"z");
}

#[test]
fn a_racer_who_rewrites_in_place_never_makes_half_a_file() {
    let world = World::new();
    let version = |n: u64| format!("racer {n}\nslot=0\n").repeat(1) + &format!("line of {n}\n").repeat(200);
    world.put("f", version(0));
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (mut done, mut refused) = (0_u32, 0_u32);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                n += 1;
                std::fs::write(world.path("f"), version(n)).unwrap();
            }
        });
        let until = Instant::now() + Duration::from_secs(20);
        while done < 30 && Instant::now() < until {
            match world.edit("f", "slot=0", "slot=1") {
                Ok(answer) => {
                    done += 1;
                    let now = String::from_utf8(world.get("f")).unwrap();
                    if hash_revision(now.as_bytes()) == answer.revision {
                        let n = now.lines().next().unwrap().strip_prefix("racer ").unwrap().parse().unwrap();
                        assert_eq!(now, version(n).replace("slot=0", "slot=1"));
                    } else {
                        // The racer's, whole or as far as it has come.
                        let n =
                            now.lines().next().and_then(|line| line.strip_prefix("racer ")).unwrap_or("0");
                        assert!(version(n.parse().unwrap_or(0)).starts_with(&now), "{now}");
                    }
                }
                Err(error) => {
                    refused += 1;
                    assert!(matches!(error.code, Code::ChangedConcurrently | Code::NoMatch), "{error:?}");
                }
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(done > 0, "no edit got through, {refused} refused");
    assert_eq!(world.names("."), ["f"]);
}

mod elsewhere;
