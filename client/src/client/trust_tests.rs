//! Whom the client trusts: nobody sees the token who has not proved to know it, on whatever connection.

use super::tests::{EMPTY, is_proof, numbered, read, run};
use crate::Error;
use crate::stub::{Reply, Seen, Stub, TOKEN, answer, close, json};

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
fn a_unix_socket_is_proved_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("filectx.sock");
    let stub = Stub::on_socket(&path, |seen| if is_proof(seen) { seen.proof() } else { json(200, EMPTY) });
    run(stub.client().read(&read())).unwrap();
    assert_eq!(stub.all_seen().len(), 2);
    assert_eq!(stub.seen()[0].header("host"), Some("127.0.0.1"));
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
    again
        .args(["--exact", "client::trust_tests::loopback_is_never_proxied"])
        .env("FILECTX_TEST_PROXIED", "1");
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        again.env(name, "http://127.0.0.1:9");
    }
    let output = again.env_remove("NO_PROXY").env_remove("no_proxy").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
