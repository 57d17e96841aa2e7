//! Who comes in, what is refused, and in which order.

use filectx_openapi::{Code, routes};
use http::Method;
use serde_json::json;

use super::{TOKEN, ask, door, get, post, request, with};

#[tokio::test]
async fn refusals_come_in_the_contracts_order() {
    let door = door();
    let read = routes::READ_FILE_CONTEXT;
    // Each request is wrong in everything from its place in the order on, up to what the next one corrects.
    let large = format!("{{\"files\":[{}]}}", " ".repeat(9 << 20));
    let all_wrong = || with(request(Method::PUT, "/nope", "{"), "host", "page.example");
    let no_token = |path| with(request(Method::PUT, path, "{"), "authorization", "");
    let plain = |body: &str| with(post(read, body.to_owned()), "content-type", "text/plain");
    let picky = |body: &str| with(post(read, body.to_owned()), "accept", "image/png");
    let cases = [
        (all_wrong(), Code::ForbiddenOrigin),
        (with(no_token("/nope"), "origin", "https://page.example"), Code::ForbiddenOrigin),
        (no_token("/nope"), Code::Unauthorized),
        (no_token(read), Code::Unauthorized),
        (request(Method::PUT, "/nope", "{"), Code::UnknownRoute),
        (request(Method::PUT, read, "{"), Code::MethodNotAllowed),
        (with(plain(&large), "accept", "image/png"), Code::UnsupportedMediaType),
        (picky(&large), Code::NotAcceptable),
        (post(read, large.clone()), Code::RequestTooLarge),
        (post(read, "{"), Code::InvalidRequest),
    ];
    for (request, code) in cases {
        ask(&door, request).await.refused(code);
    }
}

#[tokio::test]
async fn every_route_looks_at_host_and_origin() {
    let door = door();
    for path in [routes::HEALTHZ, routes::OPENAPI_JSON, routes::DOCS, "/docs", routes::INFO, "/nope"] {
        for (name, value) in [("host", "page.example"), ("host", ""), ("origin", "null")] {
            ask(&door, with(get(path), name, value)).await.refused(Code::ForbiddenOrigin);
        }
    }
}

#[tokio::test]
async fn without_the_token_there_is_the_document_and_a_heartbeat() {
    let door = door();
    for path in [routes::HEALTHZ, routes::OPENAPI_JSON, routes::DOCS, "/docs/swagger-ui.css"] {
        let answered = ask(&door, with(get(path), "authorization", "")).await;
        assert_eq!(answered.status, 200, "{path}");
    }
    let refused = ask(&door, with(get(routes::INFO), "authorization", "")).await;
    refused.refused(Code::Unauthorized);
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    let moved = ask(&door, with(get("/docs"), "authorization", "")).await;
    assert_eq!((moved.status.as_u16(), moved.header("location")), (303, Some("/docs/")));
    ask(&door, get("/docs/nothing-here")).await.refused(Code::UnknownRoute);
}

#[tokio::test]
async fn health_says_nothing_else_and_proves_the_token() {
    let door = door();
    assert_eq!(ask(&door, get(routes::HEALTHZ)).await.json(), json!({"status": "ok"}));
    let nonce = "00112233445566778899aabbccddeeff";
    let proved = ask(&door, get(&format!("{}?nonce={nonce}", routes::HEALTHZ))).await;
    assert_eq!(proved.json()["proof"], json!(door.service().token().proof(nonce)));
    ask(&door, get("/healthz?nonce=xyz")).await.refused(Code::InvalidRequest);
}

#[tokio::test]
async fn info_tells_limits_features_and_who_it_is() {
    let info = ask(&door(), get(routes::INFO)).await.json();
    assert_eq!((&info["service"], &info["api"]), (&json!("filectxd"), &json!("v1")));
    for name in filectx_openapi::LIMIT_NAMES {
        assert!(info["limits"][name].is_u64(), "{name}");
    }
    assert!(info["features"].as_array().unwrap().contains(&json!("read")));
    assert!(!info.to_string().contains(TOKEN));
}

#[tokio::test]
async fn a_refused_method_names_those_that_there_are() {
    let refused = ask(&door(), get(routes::READ_FILE_CONTEXT)).await;
    refused.refused(Code::MethodNotAllowed);
    assert_eq!(refused.header("allow"), Some("POST"));
}

#[tokio::test]
async fn a_callers_id_is_the_answers() {
    let door = door();
    let answered = ask(&door, with(get("/nope"), "x-request-id", "req-42")).await;
    assert_eq!(answered.header("x-request-id"), Some("req-42"));
    let ids = [ask(&door, get(routes::INFO)).await, ask(&door, get(routes::INFO)).await];
    assert_ne!(ids[0].header("x-request-id"), ids[1].header("x-request-id"));
}

#[tokio::test]
async fn a_preflight_gets_nothing() {
    let foreign =
        with(request(Method::OPTIONS, routes::READ_FILE_CONTEXT, ""), "origin", "https://page.example");
    ask(&door(), with(foreign, "authorization", "")).await.refused(Code::ForbiddenOrigin);
}

#[tokio::test]
async fn a_wrong_body_points_to_its_field() {
    let door = door();
    let cases = [
        (r#"{"files":[]}"#, Some("/files")),
        (r#"{"files":[{"path":"/a","lines":1}]}"#, Some("/files/0/lines")),
        (r#"{"files":[{"path":"/a"}],"max_file_bytes":-1}"#, Some("/max_file_bytes")),
        (r#"[]"#, Some("")),
        ("", None),
    ];
    for (body, pointer) in cases {
        let problem = ask(&door, post(routes::READ_FILE_CONTEXT, body)).await.refused(Code::InvalidRequest);
        assert_eq!(problem.data.pointer.as_deref(), pointer, "{body}");
    }
}
