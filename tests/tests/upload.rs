//! A content that is larger than the memory that the service takes for it: a gigabyte as a form, from a file to a file.
#![allow(clippy::panic, clippy::print_stderr, reason = "a test fails by a panic and speaks on stderr")]

use std::io::Read;
use std::os::unix::fs::FileExt;

use filectx_client::{Client, Content, Error, Target, Token};
use filectx_openapi::{Code, WriteFileRequest};
use filectx_tests::bench::peak_kib;
use filectx_tests::programs::Service;
use serde_json::json;

/// How much is sent.
const SIZE: u64 = 1 << 30;

/// How far the service's memory may grow while it takes that in.
const GROWTH_KIB: u64 = 32 << 10;

#[tokio::test]
async fn a_large_content_streams_through_little_memory() {
    let dir = tempfile::tempdir().expect("a directory");
    let (source, target, small) =
        (dir.path().join("source"), dir.path().join("new/target"), dir.path().join("small"));
    let file = std::fs::File::create(&source).expect("a file");
    // A number in each block, and holes between, which take no room on the disk.
    for n in 0..SIZE >> 20 {
        file.write_all_at(&(n + 1).to_le_bytes(), (n << 20) + n).expect("a block");
    }
    file.set_len(SIZE).expect("a length");
    let service = Service::start(&["--limit", &format!("max_write_bytes={SIZE}")]);
    let token = Token::new(&service.token).expect("a token");
    let client = Client::builder(Target::from_url(service.url()).expect("a URL")).token(token).build();
    let client = client.expect("a client");
    let request =
        |path| -> WriteFileRequest { serde_json::from_value(json!({"path": path})).expect("a request") };
    let content = |length| Content::of_file(std::fs::File::open(&source).expect("the file"), 0, length);
    // A small one first: what every upload takes is no growth.
    client.write_from(&request(&small), content(1 << 20)).await.expect("it is written");
    let before = peak_kib(service.pid());
    let answer = client.write_from(&request(&target), content(SIZE)).await.expect("it is written");
    let growth = peak_kib(service.pid()) - before;
    eprintln!("{} MiB in, {before} KiB of memory before, {growth} KiB more at the peak", SIZE >> 20);
    assert_eq!((answer.bytes_written, answer.created), (SIZE, true));
    assert!(growth <= GROWTH_KIB, "the service's memory grew by {growth} KiB");
    assert!(same(&source, &target), "what was stored is not what was sent");
    // A byte more than the limit is refused, and the file stays as it is.
    file.set_len(SIZE + 1).expect("a byte");
    let refused = client.write_from(&request(&target), content(SIZE + 1)).await;
    let Err(Error::Refused(problem)) = refused else { panic!("{refused:?}") };
    assert_eq!((problem.code, problem.data.limit), (Code::RequestTooLarge, Some(SIZE)));
    assert_eq!(std::fs::metadata(&target).expect("the file").len(), SIZE);
    assert_eq!(std::fs::read_dir(dir.path().join("new")).expect("the directory").count(), 1);
}

/// Whether the file `copy` holds what `file` held when it was as long.
fn same(file: &std::path::Path, copy: &std::path::Path) -> bool {
    let open = |path| std::fs::File::open(path).expect("the file");
    let (mut file, mut copy) = (open(file), open(copy));
    let (mut one, mut other) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    for _ in 0..SIZE >> 20 {
        file.read_exact(&mut one).and_then(|()| copy.read_exact(&mut other)).expect("a block");
        if one != other {
            return false;
        }
    }
    copy.read(&mut other).expect("the end") == 0
}
