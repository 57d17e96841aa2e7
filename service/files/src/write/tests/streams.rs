//! Contents that come as a stream: whole or not at all, and not past what happened meanwhile.

use std::io::Read;

use filectx_openapi::{Code, Limits};

use crate::FenceConfig;
use crate::disk::identity::hash_revision;
use crate::tests::{World, patient};

#[test]
fn a_stream_is_written_whole_or_not_at_all() {
    let limits = Limits { max_write_bytes: 3 << 20, ..Limits::default() };
    let world = World::with(|_| FenceConfig::default(), limits);
    let mut request = world.write_request("d/s", "");
    request.text_content = None;
    let mut content = std::io::repeat(b'x').take(3 << 20);
    let answer = world.files.write_from(&request, &mut content, &patient()).unwrap();
    assert_eq!((answer.bytes_written, answer.created, answer.created_directories.len()), (3 << 20, true, 1));
    let error = world.files.write_from(&request, &mut std::io::repeat(b'y'), &patient()).unwrap_err();
    assert_eq!((error.code, error.data.limit), (Code::RequestTooLarge, Some(3 << 20)));
    struct Breaks;
    impl Read for Breaks {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::ConnectionReset.into())
        }
    }
    let mut broken = b"half".chain(Breaks);
    let mut elsewhere = world.write_request("e/f/g", "");
    elsewhere.text_content = None;
    assert!(world.files.write_from(&elsewhere, &mut broken, &patient()).is_err());
    assert!(world.files.write_from(&request, &mut b"half".chain(Breaks), &patient()).is_err());
    assert_eq!(
        (world.get("d/s").len(), world.names("d"), world.names(".")),
        (3 << 20, vec!["s".to_owned()], vec!["d".to_owned()])
    );
    // A content of its own and one in the request contradict each other.
    request.text_content = Some("x".into());
    let error = world.files.write_from(&request, &mut std::io::empty(), &patient()).unwrap_err();
    assert_eq!(error.data.pointer.as_deref(), Some("/text_content"));
}

#[test]
fn a_stream_that_was_overtaken_is_refused() {
    let world = World::new();
    world.put("f", "old");
    let mut request = world.write_request("f", "");
    (request.text_content, request.expected_revision) = (None, Some(hash_revision(b"old")));
    struct Overtakes<'a>(&'a World, bool);
    impl Read for Overtakes<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            // While it comes, the file is not held: another may write it.
            self.0.write("f", "newer").unwrap();
            buffer[0] = b'x';
            Ok(usize::from(!std::mem::replace(&mut self.1, true)))
        }
    }
    let error = world.files.write_from(&request, &mut Overtakes(&world, false), &patient()).unwrap_err();
    assert_eq!((error.code, error.data.revision), (Code::RevisionMismatch, Some(hash_revision(b"newer"))));
    assert_eq!((world.get("f"), world.names(".")), (b"newer".to_vec(), vec!["f".to_owned()]));
}
