//! The client against a scripted service: what is sent again, which limit is hit, what an answer means.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};

use filectx_openapi::{Code, FileRequest, FindTextRequest, ReadFileContextRequest};

use crate::stub::{Reply, STUCK_BYTES, Seen, Stub, TOKEN, answer, close, hang, info, json};
use crate::{Client, Error, Phase, Target, Token};

pub(super) const EMPTY: &str = r#"{"file_contexts":[],"failed_files":[],"younger_than_this_client":[1]}"#;

pub(super) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// A read whose own deadline leaves a test nothing to wait for.
pub(super) fn read() -> ReadFileContextRequest {
    ReadFileContextRequest {
        files: vec![FileRequest { path: Some("/f".into()), ..FileRequest::default() }],
        deadline_ms: Some(0),
        ..ReadFileContextRequest::default()
    }
}

pub(super) fn is_proof(seen: &Seen) -> bool {
    seen.path().starts_with("/healthz?nonce=")
}

/// A script that proves, and answers the other requests by their number.
pub(super) fn numbered(replies: impl Fn(usize, &Seen) -> Reply + Send + Sync + 'static) -> Stub {
    let count = AtomicUsize::new(0);
    Stub::new(move |seen| match is_proof(seen) {
        true => seen.proof(),
        false => replies(count.fetch_add(1, Ordering::SeqCst), seen),
    })
}

#[test]
fn an_answer_with_unknown_fields_is_taken() {
    let stub = numbered(|_, _| json(200, EMPTY));
    let client = stub.client();
    run(async {
        for _ in 0..3 {
            assert!(client.read(&read()).await.unwrap().file_contexts.is_empty());
        }
    });
    let seen = stub.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|seen| seen.connection == 0), "one connection for all");
    assert_eq!(seen[0].header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
    assert!(seen[0].header("host").unwrap().starts_with("127.0.0.1:"));
    assert_eq!(stub.all_seen().len(), 4, "one proof for the connection");
}

#[test]
fn a_read_is_sent_again_once_on_a_fresh_connection() {
    let broken: [fn() -> Reply; 3] = [close, hang, || {
        Reply::SayAndClose(
            b"HTTP/1.1 200 S\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{".into(),
        )
    }];
    for reply in broken {
        let stub = numbered(move |number, _| if number == 0 { reply() } else { json(200, EMPTY) });
        run(stub.impatient_client().read(&read())).unwrap();
        let seen = stub.seen();
        assert_eq!(seen.iter().map(|seen| seen.connection).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(seen[0].body, seen[1].body);
    }
    let stub = numbered(|_, _| close());
    let error = run(stub.client().read(&read())).unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error:?}");
    assert_eq!(stub.seen().len(), 2, "once, not more");
}

#[test]
fn a_refusal_is_not_sent_again() {
    let stub = numbered(|_, _| {
        json(503, r#"{"type":"t","title":"t","status":503,"detail":"full","code":"overloaded"}"#)
    });
    let error = run(stub.client().read(&read())).unwrap_err();
    assert_eq!(error.code(), Some(&Code::Overloaded));
    assert_eq!(stub.seen().len(), 1);
}

#[test]
fn each_phase_has_its_limit() {
    let phase = |error: Error| match error {
        Error::Timeout { phase, .. } => phase,
        error => panic!("{error:?}"),
    };
    let silent = numbered(|_, _| hang());
    assert_eq!(phase(run(silent.impatient_client().read(&read())).unwrap_err()), Phase::Answer);

    let stuck = numbered(|_, _| {
        Reply::SayAndHang(
            b"HTTP/1.1 200 S\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{".into(),
        )
    });
    assert_eq!(phase(run(stuck.impatient_client().read(&read())).unwrap_err()), Phase::Receive);

    let deaf = numbered(|_, _| hang());
    let request: FindTextRequest =
        serde_json::from_value(serde_json::json!({ "pattern": "x".repeat(STUCK_BYTES) })).unwrap();
    assert_eq!(phase(run(deaf.impatient_client().find_text(&request)).unwrap_err()), Phase::Send);

    let mute = Stub::new(|_| hang());
    let limits = crate::TimeLimits { connect: std::time::Duration::from_millis(150), ..Default::default() };
    let token = Token::new(TOKEN).unwrap();
    let client = Client::builder(mute.target.clone()).token(token).time_limits(limits).build().unwrap();
    assert_eq!(phase(run(client.read(&read())).unwrap_err()), Phase::Connect);
    assert_eq!(mute.all_seen().len(), 1, "another wait of the same length would not help");
}

#[test]
fn nobody_there_is_a_connect_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Target::from_url(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    drop(listener);
    let client = Client::builder(target).token(Token::new(TOKEN).unwrap()).build().unwrap();
    let error = run(client.read(&read())).unwrap_err();
    assert!(matches!(&error, Error::Connect { reason, .. } if reason.contains("refused")), "{error:?}");
    let error = run(Client::socket("/nowhere/filectx.sock").build().unwrap().info()).unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error:?}");
}

#[test]
fn what_is_no_answer_of_the_contract_is_a_protocol_error() {
    let table: [fn() -> Reply; 5] = [
        || json(200, "{\"file_contexts\":"),
        || answer(502, "text/html", b"<html>bad gateway"),
        || answer(404, "application/problem+json", b"{}"),
        || Reply::Say(b"HTTP/1.1 302 S\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n".into()),
        || Reply::SayAndClose(b"SSH-2.0-OpenSSH_9.9\r\n\r\n".into()),
    ];
    for reply in table {
        let stub = numbered(move |_, _| reply());
        let error = run(stub.client().read(&read())).unwrap_err();
        assert!(matches!(error, Error::Protocol { .. }), "{error:?}");
        assert!(
            stub.seen().iter().all(|seen| seen.path() == "/v1/read-file-context"),
            "no redirect is followed"
        );
    }
}

#[test]
fn an_answer_is_bounded() {
    for declared in [true, false] {
        let stub = numbered(move |_, _| {
            if declared {
                return answer(200, "application/json", &vec![b' '; 5000]);
            }
            let head = "HTTP/1.1 200 S\r\ncontent-type: application/json\r\n\r\n";
            Reply::SayAndClose([head.as_bytes(), &[b' '; 5000]].concat())
        });
        let token = Token::new(TOKEN).unwrap();
        let client =
            Client::builder(stub.target.clone()).token(token).max_answer_bytes(4096).build().unwrap();
        let error = run(client.read(&read())).unwrap_err();
        assert!(matches!(&error, Error::Protocol { detail } if detail.contains("4096")), "{error:?}");
    }
}

#[test]
fn problems_are_typed_and_unknown_codes_kept() {
    let stub = numbered(|number, _| match number {
        0 => {
            json(401, r#"{"type":"t","title":"t","status":401,"detail":"wrong token","code":"unauthorized"}"#)
        }
        _ => json(
            418,
            r#"{"type":"t","title":"t","status":418,"detail":"d","code":"teapot","hint":"h","younger":1,"limit":7}"#,
        ),
    });
    let client = stub.client();
    run(async {
        assert!(matches!(client.read(&read()).await, Err(Error::Unauthorized { .. })));
        let Err(Error::Refused(problem)) = client.read(&read()).await else { panic!("not refused") };
        assert_eq!(problem.code, Code::Other("teapot".into()));
        assert_eq!((problem.hint.as_deref(), problem.data.limit), (Some("h"), Some(7)));
    });
}

#[test]
fn another_version_is_named() {
    let stub = numbered(|_, _| match info("i", "") {
        Reply::Say(bytes) => Reply::Say(String::from_utf8(bytes).unwrap().replace("\"v1\"", "\"v2\"").into()),
        other => other,
    });
    let error = run(stub.client().info()).unwrap_err();
    assert!(matches!(&error, Error::Version { found, .. } if found.contains("filectxd 9 (v2)")), "{error:?}");
}

#[test]
fn a_dropped_call_hangs_up() {
    let stub = numbered(|_, _| hang());
    let client = stub.client();
    run(async {
        let request = ReadFileContextRequest { deadline_ms: Some(60_000), ..read() };
        let call = tokio::spawn(async move { client.read(&request).await });
        // Not before the service has seen it.
        while stub.seen().is_empty() {
            tokio::task::yield_now().await;
        }
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
        assert_eq!(tokio::task::spawn_blocking(move || stub.wait_for_close()).await.unwrap(), 0);
    });
}

#[test]
fn compressed_answers_are_asked_for_only_when_wanted() {
    let stub = numbered(|_, seen| match seen.header("accept-encoding") {
        None => json(200, EMPTY),
        Some(_) => {
            let body = zstd::bulk::compress(EMPTY.as_bytes(), 3).unwrap();
            let head = "HTTP/1.1 200 S\r\ncontent-type: application/json\r\ncontent-encoding: zstd\r\ncontent-length: ";
            Reply::Say([format!("{head}{}\r\n\r\n", body.len()).as_bytes(), &body].concat())
        }
    });
    run(stub.client().read(&read())).unwrap();
    let token = Token::new(TOKEN).unwrap();
    let client = Client::builder(stub.target.clone()).token(token).compress(true).build().unwrap();
    run(client.read(&read())).unwrap();
    let asked: Vec<_> =
        stub.seen().iter().map(|seen| seen.header("accept-encoding").map(Into::into)).collect();
    assert_eq!(asked, [None, Some("zstd".to_owned())]);
}
