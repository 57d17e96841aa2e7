//! Changes through a running service: many at once, against a racer, on a full disk, and when an answer gets lost.
#![allow(clippy::panic, reason = "a test fails by a panic")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use filectx_client::{Client, Content, Error, Target, Token};
use filectx_files::disk::identity::hash_revision;
use filectx_openapi::{Code, EditFileRequest, WriteFileRequest};
use filectx_tests::programs::Service;
use filectx_tests::require;
use serde_json::json;

fn client_at(url: &str, service: &Service) -> Client {
    let target = Target::from_url(url).expect("a URL");
    Client::builder(target).token(Token::new(&service.token).expect("a token")).build().expect("a client")
}

fn client_of(service: &Service) -> Client {
    client_at(service.url(), service)
}

fn edit(path: &Path, old: &str, new: &str) -> EditFileRequest {
    let edits = json!([{"old_text": old, "new_text": new}]);
    serde_json::from_value(json!({"path": path, "edits": edits})).expect("a request")
}

fn write(path: &Path, text: Option<&str>) -> WriteFileRequest {
    serde_json::from_value(json!({"path": path, "text_content": text})).expect("a request")
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("the directory is readable").flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().into_string().expect("a plain name")).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_edits_at_once_all_survive() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("slots");
    let text = |word: &str| (0..100).map(|n| format!("slot {n:02} {word}\n")).collect::<String>();
    std::fs::write(&file, text("free")).expect("a file");
    std::os::unix::fs::symlink("slots", dir.path().join("alias")).expect("a link");
    let service = Service::start(&[]);
    let client = client_of(&service);
    let edits: Vec<_> = (0..100)
        .map(|n| {
            let (client, path) = (client.clone(), dir.path().join(["slots", "alias"][n % 2]));
            tokio::spawn(async move {
                let word = |word| format!("slot {n:02} {word}\n");
                client.edit(&edit(&path, &word("free"), &word("taken"))).await
            })
        })
        .collect();
    for edit in edits {
        edit.await.expect("no panic").expect("every edit succeeds");
    }
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), text("taken"));
    assert_eq!(names(dir.path()), ["alias", "slots"]);
}

/// The racer's version `n`, which edits change in one place. It fits into a page, so that whoever reads sees all of a
/// version or nothing: what a reader may see of a longer one while it is written is the racer's affair.
fn version(n: usize, slot: &str) -> String {
    format!("racer {n}\n{slot}\n") + &format!("line of {n}\n").repeat(200)
}

#[test]
fn what_succeeds_against_a_racer_is_there_or_was_overwritten_later() {
    const SUCCESSES: usize = 30;
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("f");
    std::fs::write(&file, version(0, "slot=free")).expect("a file");
    let service = Service::start(&[]);
    let client = client_of(&service);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    // Held by the racer while it writes, and here to look; never by the service.
    let (looking, ended) = (Mutex::new(()), AtomicBool::new(false));
    let look = || {
        let _stopped = looking.lock().unwrap_or_else(PoisonError::into_inner);
        std::fs::read_to_string(&file).expect("the file")
    };
    let number = |text: &str| -> usize {
        let first = text.lines().next().and_then(|line| line.strip_prefix("racer "));
        first.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("no version: {text:.200}"))
    };
    std::thread::scope(|scope| {
        // Ended also by a panic in here.
        let _end = OnDrop(|| ended.store(true, Ordering::SeqCst));
        scope.spawn(|| {
            for n in 1.. {
                let writing = looking.lock().unwrap_or_else(PoisonError::into_inner);
                // As an editor without a temporary does: cut to nothing, then written.
                std::fs::write(&file, version(n, "slot=free")).expect("the racer writes");
                drop(writing);
                // Now and then it leaves time for an edit, and never at the same point of it.
                let pause = Instant::now() + Duration::from_micros(n as u64 * 7_919 % 10_000);
                while Instant::now() < pause {
                    std::thread::yield_now();
                }
                if ended.load(Ordering::SeqCst) {
                    return;
                }
            }
        });
        let (mut successes, mut refusals) = (0, 0);
        let end = Instant::now() + Duration::from_secs(40);
        while successes < SUCCESSES && Instant::now() < end {
            let seen = number(&look());
            let answer = runtime.block_on(client.edit(&edit(&file, "slot=free", "slot=taken")));
            let now = look();
            let found = number(&now);
            let taken = now == version(found, "slot=taken");
            assert!(taken || now == version(found, "slot=free"), "half of something: {now:.200}");
            match answer {
                Ok(answer) => {
                    successes += 1;
                    let made =
                        |n: &usize| hash_revision(version(*n, "slot=taken").as_bytes()) == answer.revision;
                    let edited = (seen..found + 1).find(made).expect("a version of the racer's was edited");
                    assert!(found > edited || taken, "the edit of {edited} is lost");
                }
                Err(Error::Refused(problem)) => {
                    refusals += 1;
                    let codes = [Code::ChangedConcurrently, Code::NoMatch];
                    assert!(codes.contains(&problem.code), "{problem:?}");
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(successes, SUCCESSES, "{refusals} were refused");
        assert!(refusals > 0, "the racer never met an edit");
    });
    assert_eq!(names(dir.path()), ["f"]);
}

struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[tokio::test]
async fn a_full_disk_leaves_the_old_file_and_nothing_else() {
    let dir = tempfile::tempdir().expect("a directory");
    if !require::mounts() {
        return;
    }
    // A small disk that only the service sees, nearly full.
    let script = "mount -t tmpfs -o size=1m none \"$0\"; cd \"$0\"; echo precious > precious.txt; \
                  head -c 700k /dev/zero > fill; cd /; exec \"$@\"";
    let root = dir.path().to_str().expect("a plain name");
    let service = Service::start_by(&["unshare", "-m", "sh", "-ec", script, root], &[]);
    let client = client_of(&service);
    let text = "0123456789abcde\n".repeat(64 << 10);
    let (precious, new) = (dir.path().join("precious.txt"), dir.path().join("new/deep/n.txt"));
    let content = || Content::from(text.clone().into_bytes());
    let mut refusals = vec![
        client.edit(&edit(&precious, "precious", &text)).await.map(drop),
        client.write(&write(&precious, Some(&text))).await.map(drop),
        client.write(&write(&new, Some(&text))).await.map(drop),
        client.write_from(&write(&precious, None), content()).await.map(drop),
        client.write_from(&write(&new, None), content()).await.map(drop),
    ];
    let listed = json!({"path": root});
    let listed = client.list(&serde_json::from_value(listed).expect("a request")).await.expect("a list");
    assert_eq!(
        listed.entries.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(),
        ["fill", "precious.txt"]
    );
    let read = json!({"files": [{"path": precious}]});
    let read = client.read(&serde_json::from_value(read).expect("a request")).await.expect("an answer");
    assert_eq!(read.file_contexts[0].text_content.as_deref(), Some("precious\n"));
    for refused in refusals.drain(..) {
        let Err(Error::Refused(problem)) = refused else { panic!("{refused:?}") };
        assert_eq!((problem.code, problem.status), (Code::NoSpace, 507));
    }
    // What fits still does.
    client.edit(&edit(&precious, "precious", "still precious")).await.expect("there is room for this");
}

/// Takes one connection after the other to `service` and back; of the first answer to a change nothing arrives.
struct Thief {
    url: String,
    stolen: Arc<AtomicUsize>,
}

impl Thief {
    fn new(service: &Service) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (stolen, address) =
            (Arc::new(AtomicUsize::new(0)), service.url().trim_start_matches("http://").to_owned());
        let count = Arc::clone(&stolen);
        std::thread::spawn(move || {
            while let Ok((caller, _)) = listener.accept() {
                let (count, address) = (Arc::clone(&count), address.clone());
                std::thread::spawn(move || relay(&caller, &address, &count));
            }
        });
        Self { url, stolen }
    }
}

fn relay(caller: &TcpStream, address: &str, stolen: &AtomicUsize) -> Option<()> {
    let service = TcpStream::connect(address).ok()?;
    let changes = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut bytes = [0; 16 << 10];
            loop {
                let read = (&mut &*caller).read(&mut bytes).unwrap_or(0);
                // The head of a request comes in one piece.
                if bytes[..read].starts_with(b"POST /v1/edit-file") {
                    changes.store(true, Ordering::SeqCst);
                }
                if read == 0 || (&mut &service).write_all(&bytes[..read]).is_err() {
                    return service.shutdown(Shutdown::Both);
                }
            }
        });
        let mut bytes = [0; 16 << 10];
        loop {
            let read = (&mut &service).read(&mut bytes).unwrap_or(0);
            if changes.load(Ordering::SeqCst) && stolen.fetch_add(1, Ordering::SeqCst) == 0 {
                // The change is done: its answer is here. It goes no further.
                let _ = service.shutdown(Shutdown::Both);
                return caller.shutdown(Shutdown::Both);
            }
            if read == 0 || (&mut &*caller).write_all(&bytes[..read]).is_err() {
                let _ = service.shutdown(Shutdown::Both);
                return caller.shutdown(Shutdown::Both);
            }
        }
    })
    .ok()
}

#[tokio::test]
async fn an_answer_that_got_lost_is_asked_for_again_and_nothing_happens_twice() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("f");
    std::fs::write(&file, "a\n").expect("a file");
    let service = Service::start(&[]);
    let thief = Thief::new(&service);
    // Done twice, it would have found nothing to replace, or replaced twice.
    let answer =
        client_at(&thief.url, &service).edit(&edit(&file, "a", "aa")).await.expect("what became of it");
    assert!(thief.stolen.load(Ordering::SeqCst) > 1, "no answer was stolen");
    assert_eq!(
        (answer.line_count, std::fs::read_to_string(&file).expect("the file")),
        (1, "aa\n".to_owned())
    );
}
