//! The read verb on real files: budgets in request order, threads, deadlines, files of every kind.

use std::path::Path;
use std::sync::Arc;

use filectx_openapi::{ByteRange, Code, FileRequest, LimitName, Limits, LineRange, ReadFileContextRequest};
use proptest::prelude::*;

use super::{Delivery, Outcome, respond};
use crate::{FenceConfig, Files};

fn files(limits: Limits) -> Arc<Files> {
    Arc::new(Files::new(&FenceConfig { home: "/".into(), ..FenceConfig::default() }, limits).unwrap())
}

fn request(dir: &Path, names: &[&str]) -> ReadFileContextRequest {
    let files =
        names.iter().map(|name| FileRequest { path: Some((*name).to_owned()), ..FileRequest::default() });
    ReadFileContextRequest {
        files: files.collect(),
        cwd: Some(dir.to_str().unwrap().to_owned()),
        ..ReadFileContextRequest::default()
    }
}

fn tree(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, content) in files {
        std::fs::write(dir.path().join(name), content).unwrap();
    }
    dir
}

/// Index and text, or code, of each outcome.
fn brief(response: &filectx_openapi::ReadFileContextResponse) -> Vec<(u64, String)> {
    let read =
        response.file_contexts.iter().map(|c| (c.request_index, c.text_content.clone().unwrap_or_default()));
    let failed = response.failed_files.iter().map(|f| (f.request_index, f.error.code.as_str().to_owned()));
    let mut all: Vec<_> = read.chain(failed).collect();
    all.sort_by_key(|(index, _)| *index);
    all
}

#[test]
fn every_file_has_its_outcome() {
    let dir = tree(&[("a", b"first\n"), ("b", b"\x01\x02\x03\x04"), ("c", b"last")]);
    std::fs::create_dir(dir.path().join("d")).unwrap();
    std::os::unix::fs::symlink("self", dir.path().join("self")).unwrap();
    let response = files(Limits::default())
        .read(request(dir.path(), &["a", "gone", "d", "a/x", "self", "b", "c"]))
        .unwrap();
    let expected = ["first\n", "not_found", "is_directory", "not_a_directory", "link_loop", "", "last"];
    assert_eq!(brief(&response), (0u64..).zip(expected.map(str::to_owned)).collect::<Vec<_>>());
}

#[test]
fn special_files_are_named_and_never_block() {
    let dir = tree(&[]);
    let fifo = dir.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", dir.path().join("zero")).unwrap();
    let response = files(Limits::default()).read(request(dir.path(), &["fifo", "socket", "zero"])).unwrap();
    let kinds: Vec<_> =
        response.failed_files.iter().map(|f| (f.error.code.clone(), f.error.data.kind)).collect();
    use filectx_openapi::EntryType::{CharDevice, Fifo, Socket};
    assert_eq!(kinds, [Fifo, Socket, CharDevice].map(|kind| (Code::NotRegularFile, Some(kind))));
}

#[test]
fn files_whose_size_lies_are_read_to_their_end() {
    let mut request = request(Path::new("/proc/self"), &["status"]);
    request.files[0].line_ranges = vec![LineRange { start: 1, end: Some(1) }];
    let response = files(Limits::default()).read(request).unwrap();
    let context = &response.file_contexts[0];
    assert!(context.text_content.as_deref().unwrap().starts_with("Name:"), "{context:?}");
    assert!(context.line_count.unwrap() > 5 && context.changed_during_read.is_none());
}

#[test]
fn a_link_is_told_by_where_it_leads() {
    let dir = tree(&[("real", b"x\n")]);
    std::os::unix::fs::symlink("real", dir.path().join("link")).unwrap();
    let response = files(Limits::default()).read(request(dir.path(), &["link", "real", "./real"])).unwrap();
    let real = dir.path().canonicalize().unwrap().join("real");
    let told: Vec<_> = response.file_contexts.iter().map(|c| c.real_path.clone()).collect();
    assert_eq!(told, [Some(real.to_str().unwrap().to_owned()), None, None]);
}

#[test]
fn the_deadline_answers_for_what_is_not_read() {
    let dir = tree(&[("a", b"a\n")]);
    let engine = files(Limits::default());
    let batch = engine.read_batch(request(dir.path(), &["a", "a"]), Delivery::Json).unwrap();
    batch.expire();
    // A thread that comes later changes nothing any more.
    batch.work();
    let taken = batch.take();
    assert!(taken.done);
    let codes: Vec<_> = taken
        .outcomes
        .iter()
        .map(|o| matches!(o, Outcome::Failed(f) if f.error.code == Code::DeadlineExceeded))
        .collect();
    assert_eq!(codes, [true, true]);
}

#[test]
fn a_stuck_file_holds_up_no_other() {
    let dir = tree(&[("a", b"a\n"), ("b", b"b\n")]);
    let engine = files(Limits::default());
    let batch = engine.read_batch(request(dir.path(), &["a", "b"]), Delivery::Json).unwrap();
    // A worker took the first file and never comes back: only the second is left to others.
    batch.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    assert!(batch.begin(0));
    batch.work();
    assert!(!batch.take().done);
    batch.expire();
    let response = respond(batch.take().outcomes);
    assert_eq!(brief(&response), [(0, "deadline_exceeded".into()), (1, "b\n".into())]);
}

#[test]
fn wishes_for_bytes_are_named_when_they_cut() {
    let dir = tree(&[("a", &b"123456789\n".repeat(10))]);
    let limits = Limits { max_json_file_bytes: 50, max_file_bytes: 20, ..Limits::default() };
    let mut wish = request(dir.path(), &["a"]);
    wish.max_file_bytes = Some(1000);
    let response = files(limits).read(wish).unwrap();
    let cut = response.file_contexts[0].truncation.unwrap();
    assert_eq!((cut.limit, cut.next_line), (LimitName::MaxJsonFileBytes, Some(6)));
}

#[test]
fn a_window_of_a_huge_file_needs_no_memory_for_the_rest() {
    let dir = tree(&[]);
    let path = dir.path().join("huge");
    std::fs::write(&path, b"line\n".repeat(2000)).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    let mut wish = request(dir.path(), &["huge", "huge"]);
    wish.count_lines = Some(false);
    wish.files[0].line_ranges = vec![LineRange { start: 1999, end: Some(2000) }];
    wish.files[1].byte_range = Some(ByteRange { offset: 9995, length: Some(5) });
    let response = files(Limits::default()).read(wish).unwrap();
    assert_eq!(brief(&response), [(0, "line\nline\n".into()), (1, "line\n".into())]);
    assert!(response.file_contexts[0].line_count.is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However many threads: the answer is that of reading one file after the other, within every budget.
    #[test]
    fn concurrent_is_sequential(
        contents in proptest::collection::vec("[ab\\n\u{6c34}]{0,24}", 1..12),
        picks in proptest::collection::vec((any::<prop::sample::Index>(), 0u64..4, 1u64..4), 1..20),
        file_budget in 1u64..30, batch_budget in 0u64..100,
    ) {
        let names: Vec<String> = (0..contents.len()).map(|i| format!("f{i}")).collect();
        let all: Vec<(&str, &[u8])> = names.iter().map(String::as_str).zip(contents.iter().map(String::as_bytes)).collect();
        let dir = tree(&all);
        let engine = files(Limits::default());
        let picked: Vec<&str> = picks.iter().map(|(pick, ..)| names[pick.index(names.len())].as_str()).collect();
        let mut wish = request(dir.path(), &picked);
        (wish.max_file_bytes, wish.max_batch_bytes) = (Some(file_budget), Some(batch_budget));
        for (file, (_, start, len)) in wish.files.iter_mut().zip(&picks) {
            if *start > 0 {
                file.line_ranges = vec![LineRange { start: *start, end: Some(start + len) }, LineRange { start: start + len + 1, end: None }];
            }
        }
        let one = engine.read_batch(wish.clone(), Delivery::Json).unwrap();
        one.work();
        let one = one.take().outcomes;
        let many = engine.read_batch(wish, Delivery::Json).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| many.work());
            }
        });
        let many = many.take().outcomes;
        prop_assert_eq!(&one, &many);
        let response = respond(many);
        let bytes = |c: &filectx_openapi::FileContext| c.text_content.as_ref().map_or(0, String::len) as u64;
        prop_assert!(response.file_contexts.iter().map(bytes).sum::<u64>() <= batch_budget);
        for index in 0..picks.len() as u64 {
            let of_file = response.file_contexts.iter().filter(|c| c.request_index == index);
            prop_assert!(of_file.map(bytes).sum::<u64>() <= file_budget);
        }
    }

    /// Consecutive byte ranges of any file join to it.
    #[test]
    fn byte_ranges_join(content in "[a\\n\u{e9}\u{6c34}\u{1f9ca}]{1,40}", step in 1u64..9) {
        let dir = tree(&[("f", content.as_bytes())]);
        let engine = files(Limits::default());
        let mut joined = String::new();
        for offset in (0..content.len() as u64).step_by(step as usize) {
            let mut wish = request(dir.path(), &["f"]);
            wish.files[0].byte_range = Some(ByteRange { offset, length: Some(step) });
            joined += engine.read(wish).unwrap().file_contexts[0].text_content.as_deref().unwrap();
        }
        // The last range may end inside the last character only where it ends before the file does.
        prop_assert_eq!(joined, content);
    }
}
