//! How the client changes things: with a key, once, and never without saying what became of it.

use filectx_openapi::{DeleteFileRequest, WriteFileRequest};

use super::tests::{numbered, run};
use crate::Error;
use crate::stub::{Reply, Stub, close, hang, info, json};

const DELETED: &str = r#"{"path":"/f","deleted":true}"#;
const PROBLEM: &str = r#"{"type":"urn:filectx:problem:not_found","title":"t","status":404,"detail":"gone","code":"not_found","request_id":"r"}"#;

fn delete() -> DeleteFileRequest {
    DeleteFileRequest { path: Some("/f".into()), path_base64: None, cwd: None, expected_revision: None }
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
        let client = stub.impatient_client();
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
        let Error::OutcomeUnknown { key, reason, .. } = &error else { panic!("{why}: {error:?}") };
        assert!(reason.contains(why), "{why}: {reason}");
        let changes: Vec<_> =
            stub.seen().into_iter().filter(|seen| seen.path() == "/v1/delete-file").collect();
        assert_eq!(changes.len(), sent, "{why}");
        assert_eq!(changes[0].header("idempotency-key"), Some(key.as_str()));
    }
}

#[test]
fn after_a_timeout_what_is_known_by_then_is_told() {
    type Says = fn() -> Reply;
    let same: Says = || info("i", "\"idempotency\"");
    let anew: Says = || info("j", "\"idempotency\"");
    let table: [(Says, &str, Says, usize); 4] = [
        (same, "done", || json(200, DELETED), 2),
        (same, "not_found", || json(404, PROBLEM), 2),
        (same, "outcome_unknown", hang, 2),
        // To another run of the service it is not sent.
        (anew, "outcome_unknown", || json(200, DELETED), 1),
    ];
    for (about, expected, second, sent) in table {
        let stub = Stub::new(move |seen| match (seen.path(), seen.connection) {
            ("/v1/info", 0) => info("i", "\"idempotency\""),
            ("/v1/info", _) => about(),
            ("/v1/delete-file", 0) => hang(),
            ("/v1/delete-file", _) => second(),
            _ => seen.proof(),
        });
        let answer = run(stub.impatient_client().delete(&delete()));
        let told = answer.as_ref().map_or_else(|error| error.kind().to_owned(), |_| "done".into());
        assert_eq!(told, expected, "{answer:?}");
        if let Err(Error::OutcomeUnknown { reason, .. }) = &answer {
            assert!(reason.contains("timeout while waiting for an answer"), "{reason}");
            // Another way would only wait once more.
            assert!(answer.as_ref().is_err_and(|error| !error.wants_another_way()));
        }
        let changes: Vec<_> =
            stub.seen().into_iter().filter(|seen| seen.path() == "/v1/delete-file").collect();
        assert_eq!(changes.len(), sent, "{expected}");
        assert!(
            changes.iter().all(|seen| seen.header("idempotency-key") == changes[0].header("idempotency-key"))
        );
    }
}

#[test]
fn what_a_lost_way_left_open_is_asked_for_over_another_one() {
    for (instance_id, expected, asked) in [("i", "done", 1), ("j", "outcome_unknown", 0)] {
        let lost = Stub::new(move |seen| match (seen.path(), seen.connection) {
            ("/v1/info", 0) => info("i", "\"idempotency\""),
            ("/v1/delete-file", _) => close(),
            ("/v1/info", _) => close(),
            _ => seen.proof(),
        });
        let error = run(lost.client().delete(&delete())).unwrap_err();
        assert!(error.wants_another_way() && !error.is_lost(), "{error:?}");
        let there = Stub::new(move |seen| match seen.path() {
            "/v1/info" => info(instance_id, "\"idempotency\""),
            "/v1/delete-file" => json(200, DELETED),
            _ => seen.proof(),
        });
        let answer = run(there.client().after(&error).delete(&delete()));
        let told = answer.as_ref().map_or_else(Error::kind, |_| "done");
        assert_eq!(told, expected, "{answer:?}");
        let of = |stub: &Stub| -> Vec<_> {
            stub.seen().into_iter().filter(|seen| seen.path() == "/v1/delete-file").collect()
        };
        let (first, second) = (of(&lost), of(&there));
        assert_eq!(second.len(), asked);
        for repeated in second {
            assert_eq!(repeated.header("idempotency-key"), first[0].header("idempotency-key"));
            assert_eq!(repeated.body, first[0].body);
        }
        // What the other way cannot tell stays as open as it was, under the same key.
        if let Err(error) = answer {
            assert!(!error.wants_another_way(), "{error:?}");
            let Error::OutcomeUnknown { key, .. } = &error else { panic!("{error:?}") };
            assert_eq!(first[0].header("idempotency-key"), Some(key.as_str()));
        }
    }
}

#[test]
fn a_change_is_never_lost_while_it_is_asked_for() {
    let lost = Stub::new(|seen| match (seen.path(), seen.connection) {
        ("/v1/info", 0) => info("i", "\"idempotency\""),
        ("/v1/info" | "/v1/delete-file", _) => close(),
        _ => seen.proof(),
    });
    let error = run(lost.client().delete(&delete())).unwrap_err();
    // Ways that lead nowhere: nothing can have been seen there, and the first may have.
    let nowhere = Stub::new(|seen| match seen.path() {
        "/v1/info" => close(),
        _ => seen.proof(),
    });
    let error = run(nowhere.client().after(&error).delete(&delete())).unwrap_err();
    assert_eq!(error.kind(), "outcome_unknown", "{error:?}");
}

#[test]
fn a_form_is_sent_again_as_it_was() {
    let stub = Stub::new(|seen| match (seen.path(), seen.connection) {
        ("/v1/info", _) => info("i", "\"idempotency\""),
        ("/v1/write-file", 0) => close(),
        ("/v1/write-file", _) => json(
            200,
            r#"{"path":"/f","revision":"r","created":true,"bytes_written":1,"created_directories":[],"atomic":true,"warnings":[]}"#,
        ),
        _ => seen.proof(),
    });
    let request: WriteFileRequest = serde_json::from_value(serde_json::json!({ "path": "/f" })).unwrap();
    let content = crate::Content::from(b"content\r\n".repeat(50_000));
    run(stub.client().write_from(&request, content)).unwrap();
    let sent: Vec<_> = stub.seen().into_iter().filter(|seen| seen.path() == "/v1/write-file").collect();
    assert_eq!(sent.len(), 2);
    assert!(sent[0].body == sent[1].body && sent[0].body.len() > 450_000);
    for name in ["idempotency-key", "content-type"] {
        assert_eq!(sent[0].header(name), sent[1].header(name), "{name}");
    }
}

#[test]
fn a_change_that_nobody_saw_is_not_unknown() {
    // The service ends after it has said who it is; a stranger takes the port.
    let stub = Stub::new(|seen| match (seen.path(), seen.connection) {
        ("/v1/info", _) => match info("i", "\"idempotency\"") {
            // Said so that the client knows it: otherwise it might still send on this connection, and somebody could see.
            Reply::Say(bytes) => {
                let text = String::from_utf8(bytes).unwrap();
                Reply::SayAndClose(text.replacen("\r\n", "\r\nconnection: close\r\n", 1).into())
            }
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
