//! The client against a scripted service: who is trusted, what is sent again, which limit is hit.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};

use filectx_openapi::{
    Code, DeleteFileRequest, FileRequest, FindTextRequest, ReadFileContextRequest, WriteFileRequest,
};

use crate::stub::{Reply, STUCK_BYTES, Seen, Stub, TOKEN, answer, close, hang, info, json};
use crate::{Client, Error, Phase, Target, Token};

const EMPTY: &str = r#"{"file_contexts":[],"failed_files":[],"younger_than_this_client":[1]}"#;
const DELETED: &str = r#"{"path":"/f","deleted":true}"#;

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// A read whose own deadline leaves a test nothing to wait for.
fn read() -> ReadFileContextRequest {
    ReadFileContextRequest {
        files: vec![FileRequest { path: Some("/f".into()), ..FileRequest::default() }],
        deadline_ms: Some(0),
        ..ReadFileContextRequest::default()
    }
}

fn delete() -> DeleteFileRequest {
    DeleteFileRequest { path: Some("/f".into()), path_base64: None, cwd: None, expected_revision: None }
}

fn is_proof(seen: &Seen) -> bool {
    seen.path().starts_with("/healthz?nonce=")
}

/// A script that proves, and answers the other requests by their number.
fn numbered(replies: impl Fn(usize, &Seen) -> Reply + Send + Sync + 'static) -> Stub {
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
fn a_stranger_never_sees_the_token() {
    type Make = fn(&Seen) -> Reply;
    let strangers: [(&str, Make); 7] = [
        ("wrong proof", |_| json(200, &format!(r#"{{"status":"ok","proof":"{}"}}"#, "0".repeat(64)))),
        ("echo of the nonce", |seen| {
            json(200, &format!(r#"{{"status":"ok","proof":"{}"}}"#, &seen.path()["/healthz?nonce=".len()..]))
        }),
        ("no proof", |_| json(200, r#"{"status":"ok"}"#)),
        ("no filectxd", |_| answer(404, "text/html", b"<html>")),
        ("no JSON", |_| answer(200, "text/html", b"<html>")),
        ("too much", |_| answer(200, "application/json", &vec![b' '; 1 << 20])),
        ("no HTTP", |_| Reply::SayAndClose(b"220 smtp ready\r\n".to_vec())),
    ];
    for (name, reply) in strangers {
        let stub = Stub::new(reply);
        let error = run(stub.client().read(&read())).unwrap_err();
        assert!(matches!(error, Error::Unauthorized { .. }), "{name}: {error:?}");
        assert!(error.to_string().contains("the token was not sent"), "{name}: {error}");
        assert!(!error.to_string().contains(TOKEN), "{name}: {error}");
        for seen in stub.all_seen() {
            assert!(is_proof(&seen) && !seen.head.contains(TOKEN), "{name}: {}", seen.head);
            assert_eq!(seen.header("authorization"), None, "{name}");
        }
    }
}

#[test]
fn a_stranger_who_took_the_port_meanwhile_never_sees_the_token() {
    // The first connection proves itself and is closed after its first answer; whoever takes the next one cannot.
    let stub = Stub::new(|seen| match (is_proof(seen), seen.connection) {
        (true, 0) => seen.proof(),
        (true, _) => json(200, r#"{"status":"ok"}"#),
        (false, _) => match json(200, EMPTY) {
            Reply::Say(bytes) => Reply::SayAndClose(bytes),
            other => other,
        },
    });
    let client = stub.client();
    run(async {
        client.read(&read()).await.unwrap();
        let error = client.read(&read()).await.unwrap_err();
        assert!(matches!(error, Error::Unauthorized { .. }), "{error:?}");
    });
    let strangers: Vec<_> = stub.all_seen().into_iter().filter(|seen| seen.connection > 0).collect();
    assert!(!strangers.is_empty());
    assert!(strangers.iter().all(|seen| is_proof(seen) && !seen.head.contains(TOKEN)), "{strangers:?}");
}

#[test]
fn nonces_differ() {
    let stub = Stub::new(|seen| match is_proof(seen) {
        true => seen.proof(),
        false => close(),
    });
    let _ = run(stub.client().read(&read()));
    let nonces: Vec<_> =
        stub.all_seen().iter().filter(|s| is_proof(s)).map(|s| s.path().to_owned()).collect();
    assert_eq!(nonces.len(), 2);
    assert_ne!(nonces[0], nonces[1]);
    assert_eq!(nonces[0].len(), "/healthz?nonce=".len() + 64);
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
        run(stub.client().read(&read())).unwrap();
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
    assert_eq!(phase(run(silent.client().read(&read())).unwrap_err()), Phase::Answer);

    let stuck = numbered(|_, _| {
        Reply::SayAndHang(
            b"HTTP/1.1 200 S\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{".into(),
        )
    });
    assert_eq!(phase(run(stuck.client().read(&read())).unwrap_err()), Phase::Receive);

    let deaf = numbered(|_, _| hang());
    let request: FindTextRequest =
        serde_json::from_value(serde_json::json!({ "pattern": "x".repeat(STUCK_BYTES) })).unwrap();
    assert_eq!(phase(run(deaf.client().find_text(&request)).unwrap_err()), Phase::Send);

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
fn a_change_carries_a_key_and_is_sent_once() {
    let stub =
        numbered(|number, _| if number == 0 { info("i", "\"idempotency\"") } else { json(200, DELETED) });
    let client = stub.client();
    run(async {
        client.delete(&delete()).await.unwrap();
        client.delete(&delete()).await.unwrap();
    });
    let seen = stub.seen();
    assert_eq!(seen.len(), 3, "who answers is asked once");
    let keys: Vec<_> = seen.iter().filter_map(|seen| seen.header("idempotency-key")).collect();
    assert_eq!(keys.len(), 2);
    assert_ne!(keys[0], keys[1]);
    assert_eq!(keys[0].len(), 32);
}

#[test]
fn a_broken_change_is_asked_for_again_with_its_key() {
    for broken in [close, hang] {
        let stub = Stub::new(move |seen| match seen.path() {
            "/v1/info" => info("i", "\"idempotency\", \"younger\""),
            "/v1/delete-file" if seen.connection == 0 => broken(),
            "/v1/delete-file" => json(200, DELETED),
            _ => seen.proof(),
        });
        let client = stub.client();
        assert!(run(client.delete(&delete())).unwrap().deleted);
        let changes: Vec<_> =
            stub.seen().into_iter().filter(|seen| seen.path() == "/v1/delete-file").collect();
        assert_eq!(changes.len(), 2);
        assert_eq!(changes[0].header("idempotency-key"), changes[1].header("idempotency-key"));
        assert_eq!(changes[0].body, changes[1].body);
        assert_ne!(changes[0].connection, changes[1].connection);
    }
}

#[test]
fn what_stays_unknown_is_said() {
    type Info = fn(usize) -> Reply;
    let table: [(&str, Info, usize); 4] = [
        ("started anew", |connection| info(["i", "j"][connection.min(1)], "\"idempotency\""), 1),
        ("keeps no outcomes", |_| info("i", "\"delete\""), 1),
        ("asking again failed", |_| info("i", "\"idempotency\""), 2),
        (
            "asking again failed",
            |connection| if connection == 0 { info("i", "\"idempotency\"") } else { close() },
            1,
        ),
    ];
    for (why, about, sent) in table {
        let stub = Stub::new(move |seen| match seen.path() {
            "/v1/info" => about(seen.connection),
            "/v1/delete-file" => close(),
            _ => seen.proof(),
        });
        let error = run(stub.client().delete(&delete())).unwrap_err();
        let Error::OutcomeUnknown { key, reason } = &error else { panic!("{why}: {error:?}") };
        assert!(reason.contains(why), "{why}: {reason}");
        let changes: Vec<_> =
            stub.seen().into_iter().filter(|seen| seen.path() == "/v1/delete-file").collect();
        assert_eq!(changes.len(), sent, "{why}");
        assert_eq!(changes[0].header("idempotency-key"), Some(key.as_str()));
    }
}

#[test]
fn a_change_that_nobody_saw_is_not_unknown() {
    // The service ends after it has said who it is; a stranger takes the port.
    let stub = Stub::new(|seen| match (seen.path(), seen.connection) {
        ("/v1/info", _) => match info("i", "\"idempotency\"") {
            Reply::Say(bytes) => Reply::SayAndClose(bytes),
            other => other,
        },
        (_, 0) => seen.proof(),
        _ => json(200, r#"{"status":"ok"}"#),
    });
    let error = run(stub.client().delete(&delete())).unwrap_err();
    assert!(matches!(error, Error::Unauthorized { .. }), "{error:?}");
    assert!(stub.seen().iter().all(|seen| seen.path() == "/v1/info"));
}

#[test]
fn a_damaged_answer_to_a_change_leaves_its_outcome_unknown() {
    let stub = numbered(|number, _| match number {
        0 => info("i", "\"idempotency\""),
        _ => json(200, "{\"path\":"),
    });
    let error = run(stub.client().delete(&delete())).unwrap_err();
    assert!(matches!(error, Error::OutcomeUnknown { .. }), "{error:?}");
}

#[test]
fn a_large_body_goes_out_whole() {
    let stub = numbered(|number, _| match number {
        0 => info("i", "\"idempotency\""),
        _ => json(
            200,
            r#"{"path":"/f","revision":"r","created":true,"bytes_written":1,"created_directories":[],"atomic":true,"warnings":[]}"#,
        ),
    });
    let text = "0123456789".repeat(100_000);
    let request: WriteFileRequest =
        serde_json::from_value(serde_json::json!({ "path": "/f", "text_content": text })).unwrap();
    run(stub.client().write(&request)).unwrap();
    let seen = &stub.seen()[1];
    assert_eq!(seen.header("content-length"), Some(seen.body.len().to_string().as_str()));
    let sent: WriteFileRequest = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!(sent.text_content, Some(text));
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
fn a_unix_socket_is_proved_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("filectx.sock");
    let stub = Stub::on_socket(&path, |seen| if is_proof(seen) { seen.proof() } else { json(200, EMPTY) });
    run(stub.client().read(&read())).unwrap();
    assert_eq!(stub.all_seen().len(), 2);
    assert_eq!(stub.seen()[0].header("host"), Some("127.0.0.1"));
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

/// Runs itself with every spelling of the proxy variables set to a proxy that is not there.
#[test]
fn loopback_is_never_proxied() {
    if std::env::var_os("FILECTX_TEST_PROXIED").is_some() {
        let stub = numbered(|_, _| json(200, EMPTY));
        run(stub.client().read(&read())).unwrap();
        return;
    }
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "client::tests::loopback_is_never_proxied"]).env("FILECTX_TEST_PROXIED", "1");
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        again.env(name, "http://127.0.0.1:9");
    }
    let output = again.env_remove("NO_PROXY").env_remove("no_proxy").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
