//! Sessions: who answers for which, equal answers from here and there, the base of a diff, and work that ends with its caller.
#![allow(clippy::panic, reason = "a test fails by a panic")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use filectx_client::hosts::HostManager;
use filectx_client::session::{NoHosts, RemoteFile, ServedBy, Session, SessionType, ToolUser, Unattached};
use filectx_client::{Error, Local};
use filectx_files::{FenceConfig, Files};
use filectx_openapi::{
    Code, FileRequest, FindTextRequest, Limits, ListDirectoryRequest, ReadFileContextRequest,
};
use filectx_tests::sessions::{editing, on_host, reading, run, text};
use filectx_tests::sshd::{self, Host};
use serde_json::{Value, json};

fn local(home: &Path) -> Local {
    let fences = FenceConfig { home: home.to_owned(), ..FenceConfig::default() };
    Local::new(Arc::new(Files::new(&fences, Limits::default()).expect("an engine")))
}

#[test]
fn local_and_remote_give_equal_answers() {
    if !sshd::available() {
        return;
    }
    let host = Host::start("");
    let home = host.path("home");
    for (name, content) in [("a.txt", "one\ntwo\n"), ("b.rs", "fn one() {}\r\n"), ("empty", "")] {
        host.write(&format!("home/src/{name}"), content);
    }
    let source = home.join("src");
    let directory = source.to_str().expect("UTF-8");
    let files = ["a.txt", "b.rs", "empty", "gone"]
        .map(|name| FileRequest { path: Some(name.into()), ..FileRequest::default() });
    let read = ReadFileContextRequest {
        files: files.into(),
        cwd: Some(directory.into()),
        ..ReadFileContextRequest::default()
    };
    let list: ListDirectoryRequest = serde_json::from_value(json!({"path": directory})).expect("a request");
    let find: FindTextRequest =
        serde_json::from_value(json!({"pattern": "one", "paths": [directory]})).expect("a request");
    run(async {
        let manager = HostManager::new(host.place());
        manager.connect(host.options()).await.expect("connected");
        let there = on_host(&manager);
        let here = Session::new(SessionType::Local, Arc::new(NoHosts), Some(local(&home)));
        let mut answers: Vec<Vec<Value>> = Vec::new();
        for session in [&here, &there] {
            answers.push(vec![
                json!(session.read(&read).await.expect("an answer").answer),
                json!(session.list(&list).await.expect("an answer").answer),
                json!(session.find_text(&find).await.expect("an answer").answer),
            ]);
        }
        assert_eq!(answers[0], answers[1]);
        let wrong = editing(&source.join("a.txt"), "three", "four");
        let refusals = [here.edit(&wrong).await, there.edit(&wrong).await].map(|answer| match answer {
            Err(Error::Refused(problem)) => {
                (problem.code.clone(), problem.detail.clone(), problem.hint.clone())
            }
            other => panic!("{other:?}"),
        });
        assert_eq!(refusals[0], refusals[1]);
        for session in [&here, &there] {
            let path = source.join("a.txt");
            let path = path.to_str().expect("UTF-8");
            let RemoteFile::Found { content, revision } = session.read_remote_file(path).await else {
                panic!("it is there");
            };
            assert!(content == "one\ntwo\n" && revision.starts_with("hash:"));
            let gone = format!("{directory}/gone");
            assert_eq!(session.read_remote_file(&gone).await, RemoteFile::Missing);
            assert_eq!(session.read_remote_file(directory).await, RemoteFile::Failed(Code::IsDirectory));
        }
        manager.shutdown().await;
        let lost = there.read_remote_file("/x").await;
        assert_eq!(lost, RemoteFile::Failed(Code::Other("not_connected".into())));
    });
}

#[test]
fn a_base_that_lacks_something_is_none() {
    let dir = tempfile::tempdir().expect("a directory");
    let here = Session::new(SessionType::Local, Arc::new(NoHosts), Some(local(dir.path())));
    let limit = usize::try_from(Limits::default().max_json_file_bytes).expect("a size");
    for (content, code) in [
        (vec![b'x'; limit + 10], Code::TooLarge),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec(), Code::NotText),
        ([b"text ".repeat(3000), b"\xff\xfe\xfd".to_vec()].concat(), Code::NotText),
    ] {
        let path = dir.path().join("f");
        std::fs::write(&path, content).expect("a file");
        let file = run(here.read_remote_file(path.to_str().expect("UTF-8")));
        assert_eq!(file, RemoteFile::Failed(code));
    }
    // More than a request gets unasked for, and still whole.
    let path = dir.path().join("large");
    std::fs::write(&path, "line\n".repeat(600_000)).expect("a file");
    let file = run(here.read_remote_file(path.to_str().expect("UTF-8")));
    assert!(matches!(file, RemoteFile::Found { content, .. } if content.len() == 3_000_000));
}

#[test]
fn a_session_without_its_host_never_takes_another_disk_unsaid() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("a.txt");
    std::fs::write(&path, "here\n").expect("a file");
    let unattached = SessionType::Remote { host_id: None };
    let session = Session::new(unattached, Arc::new(NoHosts), Some(local(dir.path())));
    run(async {
        let answer = session.read(&reading(&path)).await.expect("it falls through");
        assert_eq!((text(&answer), &answer.served_by), ("here\n", &ServedBy::Local));
        let error = session.edit(&editing(&path, "here", "there")).await.expect_err("no edit falls through");
        assert!(matches!(error, Error::NotConnected { .. }), "{error}");
        assert_eq!(session.supported_tools(ToolUser::Agent).await.len(), 4, "what reads");
        let refusing = session.clone().unattached(Unattached::Refuse);
        assert!(matches!(refusing.read(&reading(&path)).await, Err(Error::NotConnected { .. })));
        assert!(refusing.supported_tools(ToolUser::Agent).await.is_empty());
        let elsewhere = SessionType::Remote { host_id: Some("gone".into()) };
        let elsewhere = Session::new(elsewhere, Arc::new(NoHosts), Some(local(dir.path())));
        assert!(matches!(elsewhere.read(&reading(&path)).await, Err(Error::NotConnected { .. })));
    });
    assert_eq!(std::fs::read_to_string(path).expect("a file"), "here\n");
}

#[test]
fn a_read_that_is_given_up_has_ended() {
    let dir = tempfile::tempdir().expect("a directory");
    for i in 0..2000 {
        std::fs::write(dir.path().join(format!("{i}.txt")), "needle\n".repeat(2000)).expect("a file");
    }
    let here = Session::new(SessionType::Local, Arc::new(NoHosts), Some(local(dir.path())));
    let find: FindTextRequest = serde_json::from_value(
        json!({"pattern": "no such thing|ne+dles", "paths": [dir.path()], "case_sensitive": false}),
    )
    .expect("a request");
    run(async {
        let started = Instant::now();
        let given_up = tokio::time::timeout(Duration::from_millis(5), here.find_text(&find)).await;
        // Either it was that quick, or it was stopped; a search of it all is not waited for.
        assert!(given_up.is_err() || started.elapsed() < Duration::from_secs(2));
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    });
}
