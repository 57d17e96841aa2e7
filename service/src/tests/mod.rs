//! The door from inside: requests without a socket. The harness checks on every answer what every answer promises: an
//! id, a content type, and that a refusal is a Problem of its own code.

mod bounds;
mod document;
mod door;
mod reading;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use filectx_files::{FenceConfig, Files};
use filectx_openapi::{Code, Limits, Problem};
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use serde_json::Value;

use crate::Door;
use crate::guard::token::Token;
use crate::host::Host;
use crate::service::Service;

const TOKEN: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

fn service(limits: Limits) -> Service {
    let files = Files::new(&FenceConfig { home: "/".into(), ..FenceConfig::default() }, limits).unwrap();
    Service::new(files, Token::from_text(TOKEN).unwrap(), &Host::here().unwrap())
}

pub(crate) fn door() -> Door {
    Door::new(Arc::new(service(Limits::default())))
}

/// A request that is right in everything; tests change what they test.
fn get(path: &str) -> Request<Full<Bytes>> {
    request(Method::GET, path, "")
}

fn post(path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let mut request = request(Method::POST, path, body);
    request.headers_mut().insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
    request
}

fn request(method: Method, path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, "127.0.0.1:7000")
        .header(header::AUTHORIZATION, format!("Bearer {TOKEN}"))
        .body(Full::new(body.into()))
        .unwrap()
}

/// A request with one header set, or (empty) removed.
fn with(mut request: Request<Full<Bytes>>, name: &'static str, value: &str) -> Request<Full<Bytes>> {
    request.headers_mut().remove(name);
    if !value.is_empty() {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    request
}

struct Answered {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answered {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    #[track_caller]
    fn refused(&self, code: Code) -> Problem {
        let problem: Problem = serde_json::from_slice(&self.body).unwrap();
        let expected = (code.status(), code);
        assert_eq!((self.status.as_u16(), problem.code.clone()), expected, "{problem:?}");
        problem
    }
}

/// Asks, and checks what every answer promises.
async fn ask(door: &Door, request: Request<Full<Bytes>>) -> Answered {
    let response = door.answer(request).await;
    let (head, body) = response.into_parts();
    let answered = Answered {
        status: head.status,
        headers: head.headers,
        body: body.collect().await.unwrap().to_bytes(),
    };
    let id = answered.header("x-request-id").expect("a request id");
    assert!(!id.is_empty());
    if answered.status.is_redirection() {
        return answered;
    }
    let media = answered.header("content-type").expect("a content type");
    if !answered.status.is_success() {
        assert_eq!(media, "application/problem+json");
        let problem: Problem = serde_json::from_slice(&answered.body).expect("a Problem");
        assert_eq!(problem.status, answered.status.as_u16());
        assert_eq!(problem.code.status(), problem.status);
        assert_eq!(problem.type_, format!("urn:filectx:problem:{}", problem.code.as_str()));
        assert_eq!(problem.request_id, id);
        assert!(!problem.detail.is_empty() && !problem.title.is_empty());
        assert!(!problem.detail.contains(TOKEN));
    }
    for cors in ["allow-origin", "allow-methods", "allow-headers", "allow-credentials"] {
        assert_eq!(answered.header(&format!("access-control-{cors}")), None);
    }
    answered
}

/// The body of a batch that reads these files.
fn batch(paths: &[&Path]) -> String {
    let files: Vec<Value> = paths.iter().map(|path| serde_json::json!({"path": path})).collect();
    serde_json::json!({"files": files}).to_string()
}
