//! The golden cases at every boundary: the engine in process, the router without a network, and the client over TCP;
//! and the engine as it goes on other systems. All answers hold what the case asks for, and are equal. Beside them: what only the network shows.
#![allow(clippy::panic, reason = "a test fails by a panic")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use filectx_client::{Client, Token};
use filectx_files::{Cancel, FenceConfig, Files};
use filectx_openapi::{
    DeleteFileRequest, EditFileRequest, FileRequest, FindPathsRequest, FindTextRequest, Limits,
    ListDirectoryRequest, ReadFileContextRequest, WriteFileRequest, routes,
};
use filectx_service::{Door, Service, guard::token, host::Host};
use filectx_tests::golden::{self, Case};
use filectx_tests::programs;
use http_body_util::{BodyExt as _, Full};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// One operation at its three boundaries. Each gives the answer as JSON, or the code of the Problem.
struct Operation<Request, Response> {
    route: &'static str,
    engine: fn(&Arc<Files>, Request) -> Result<Response, filectx_openapi::ItemError>,
    client: AsyncCall<Request, Response>,
}

type AsyncCall<Request, Response> =
    for<'a> fn(
        &'a Client,
        &'a Request,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Response, filectx_client::Error>> + 'a>>;

type Answer = Result<Value, String>;

fn engine() -> Files {
    let fences = FenceConfig { home: filectx_files::home_directory(), ..FenceConfig::default() };
    Files::new(&fences, Limits::default()).expect("an engine without roots")
}

/// The engine as it goes on systems whose kernel keeps no way within bounds, made to keep all within `/`.
fn engine_by_steps() -> Files {
    let home = filectx_files::home_directory();
    let fences = FenceConfig { roots: vec!["/".into()], home, by_steps: true, ..FenceConfig::default() };
    Files::new(&fences, Limits::default()).expect("an engine in /")
}

fn door() -> (Door, String) {
    let token = token::Token::generate().expect("a token");
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("token");
    token.write(&file).expect("a token file");
    let text = std::fs::read_to_string(&file).expect("a token file").trim().to_owned();
    (Door::new(Arc::new(Service::new(engine(), token, &Host::here().expect("a host")))), text)
}

fn json(value: impl Serialize) -> Value {
    serde_json::to_value(value).expect("an answer is JSON")
}

async fn ask_router(door: &Door, token: &str, route: &str, body: &Value) -> Answer {
    let request = http::Request::post(route)
        .header("host", "127.0.0.1")
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .body(Full::from(serde_json::to_vec(body).expect("a request is JSON")))
        .expect("a request");
    let response = door.answer(request).await;
    assert!(response.headers().contains_key("x-request-id"), "{route}: no request id");
    let status = response.status();
    let kind = response.headers()["content-type"].to_str().expect("a content type").to_owned();
    let body = response.into_body().collect().await.expect("a whole answer").to_bytes();
    let answer: Value = serde_json::from_slice(&body).expect("an answer is JSON");
    if status.is_success() {
        assert_eq!(kind, "application/json", "{route}");
        return Ok(answer);
    }
    assert_eq!(
        (kind.as_str(), &answer["status"]),
        ("application/problem+json", &Value::from(status.as_u16()))
    );
    Err(answer["code"].as_str().expect("a Problem has a code").to_owned())
}

async fn check<Request, Response>(operation: &Operation<Request, Response>, cases: Vec<Case>)
where
    Request: DeserializeOwned,
    Response: Serialize,
{
    let (files, by_steps) = (Arc::new(engine()), Arc::new(engine_by_steps()));
    let (door, token) = door();
    let service = programs::Service::start(&[]);
    let client = service.client();
    for case in cases {
        // What changes files begins anew at each boundary.
        let mut answers = Vec::new();
        for boundary in ["engine", "router", "client", "steps"] {
            let made = case.make();
            let parse = || serde_json::from_value::<Request>(made.case.request.clone());
            let answer: Answer = match (boundary, parse()) {
                ("router", _) => ask_router(&door, &token, operation.route, &made.case.request).await,
                (_, Err(error)) => panic!("{}: the request does not parse: {error}", case.name),
                ("engine", Ok(request)) => {
                    (operation.engine)(&files, request).map(json).map_err(|e| e.code.as_str().to_owned())
                }
                ("steps", Ok(request)) => {
                    (operation.engine)(&by_steps, request).map(json).map_err(|e| e.code.as_str().to_owned())
                }
                (_, Ok(request)) => {
                    (operation.client)(&client, &request).await.map(json).map_err(|error| match error {
                        filectx_client::Error::Refused(problem) => problem.code.as_str().to_owned(),
                        other => panic!("{}: {other}", case.name),
                    })
                }
            };
            match (&answer, &case.problem) {
                (Ok(answer), None) => made.check(answer, boundary),
                (Err(code), Some(expected)) => {
                    assert_eq!(code, expected, "{} ({boundary})", case.name);
                    made.check_files(boundary);
                }
                (other, _) => panic!("{} ({boundary}): {other:?}", case.name),
            }
            answers.push(answer.map(|answer| unlike_everywhere(answer, &made.case.request)));
        }
        assert_eq!(answers[0], answers[1], "{}: engine and router differ", case.name);
        assert_eq!(answers[0], answers[2], "{}: engine and client differ", case.name);
        assert_eq!(answers[0], answers[3], "{}: the engine goes by steps elsewhere", case.name);
    }
}

/// An answer without what differs between two runs of a case: its directory and the times of its files.
fn unlike_everywhere(mut answer: Value, request: &Value) -> Value {
    let root = request["cwd"].as_str().unwrap_or("$NONE").to_owned();
    strip(&mut answer, &root);
    answer
}

fn strip(value: &mut Value, root: &str) {
    match value {
        Value::String(text) => *text = text.replace(root, "$ROOT"),
        Value::Array(items) => items.iter_mut().for_each(|item| strip(item, root)),
        Value::Object(fields) => {
            fields.remove("last_modified_epoch_millis");
            fields.values_mut().for_each(|field| strip(field, root));
        }
        _ => {}
    }
}

#[tokio::test]
async fn read_is_the_same_at_every_boundary() {
    let operation = Operation::<ReadFileContextRequest, _> {
        route: routes::READ_FILE_CONTEXT,
        engine: |files, request| files.read(request),
        client: |client, request| Box::pin(client.read(request)),
    };
    check(&operation, golden::cases("read")).await;
}

/// A test that runs an operation's golden cases.
macro_rules! same_at_every_boundary {
    ($($test:ident: $cases:literal, $request:ty, $route:expr, $verb:ident;)*) => {$(
        #[tokio::test]
        async fn $test() {
            let operation = Operation::<$request, _> {
                route: $route,
                engine: |files, request| files.$verb(&request, &Cancel::after(Duration::from_secs(60))),
                client: |client, request| Box::pin(client.$verb(request)),
            };
            check(&operation, golden::cases($cases)).await;
        }
    )*};
}

same_at_every_boundary! {
    list_is_the_same_at_every_boundary: "list", ListDirectoryRequest, routes::LIST_DIRECTORY, list;
    find_text_is_the_same_at_every_boundary: "find_text", FindTextRequest, routes::FIND_TEXT, find_text;
    find_paths_is_the_same_at_every_boundary: "find_paths", FindPathsRequest, routes::FIND_PATHS, find_paths;
    edit_is_the_same_at_every_boundary: "edit", EditFileRequest, routes::EDIT_FILE, edit;
    write_is_the_same_at_every_boundary: "write", WriteFileRequest, routes::WRITE_FILE, write;
    delete_is_the_same_at_every_boundary: "delete", DeleteFileRequest, routes::DELETE_FILE, delete;
}

#[test]
fn a_client_that_hangs_up_ends_its_work() {
    let dir = tempfile::tempdir().expect("a directory");
    let sparse = std::fs::File::create(dir.path().join("huge")).expect("a file");
    (&sparse).write_all(&b"line\n".repeat(2000)).expect("a beginning");
    sparse.set_len(1 << 40).expect("a length");
    for (route, rest) in [
        (routes::READ_FILE_CONTEXT, r#""files":[{"path":"huge"}]"#),
        (routes::FIND_TEXT, r#""pattern":"nothing like that""#),
    ] {
        let service = programs::Service::start(&[]);
        let body = format!(r#"{{"cwd":{:?},{rest}}}"#, dir.path());
        let mut connection =
            TcpStream::connect(service.url().trim_start_matches("http://")).expect("a connection");
        write!(
            connection,
            "POST {route} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            service.token,
            body.len()
        )
        .expect("a request");
        // The scan of a terabyte is under way when the process takes CPU time.
        let busy = |pid| filectx_tests::bench::cpu_of(pid).as_millis();
        let start = busy(service.pid());
        wait_until("the scan begins", || busy(service.pid()) >= start + 50);
        drop(connection);
        wait_until("the scan ends", || {
            let before = busy(service.pid());
            idle_for_a_while();
            busy(service.pid()) == before
        });
        wait_until("the log tells it", || service.log().contains("hung_up=true"));
    }
}

/// Passes time by work of its own: a wait on a pipe that nobody writes to.
fn idle_for_a_while() {
    let (reader, _writer) = std::os::unix::net::UnixStream::pair().expect("a pair");
    reader.set_read_timeout(Some(Duration::from_millis(200))).expect("a time limit");
    let _ = (&reader).read(&mut [0]);
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(std::time::Instant::now() < end, "{what}: not within 20 s");
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn two_thousand_files_and_not_one_more() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("a"), "a\n").expect("a file");
    let service = programs::Service::start(&[]);
    let client = service.client();
    let batch = |n| ReadFileContextRequest {
        files: vec![FileRequest { path: Some("a".into()), ..FileRequest::default() }; n],
        cwd: dir.path().to_str().map(str::to_owned),
        ..ReadFileContextRequest::default()
    };
    let read = client.read(&batch(2000)).await.expect("2,000 files are a batch");
    assert_eq!(read.file_contexts.len(), 2000);
    let refused = client.read(&batch(2001)).await.expect_err("2,001 files are none");
    let filectx_client::Error::Refused(problem) = refused else { panic!("{refused:?}") };
    assert_eq!((problem.data.pointer.as_deref(), problem.data.limit), (Some("/files"), Some(2000)));
}

#[tokio::test]
async fn the_service_ends_when_asked_to() {
    let service = programs::Service::start(&[]);
    service.client().info().await.expect("info");
    assert_eq!(service.terminate(), Some(0));
}

#[tokio::test]
async fn a_socket_serves_as_a_port_does() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("private/socket");
    let service = programs::Service::start(&["--socket", socket.to_str().expect("UTF-8")]);
    let token = Token::new(&service.token).expect("a token");
    let client = Client::socket(&socket).token(token).build().expect("a client");
    assert_eq!(client.info().await.expect("info").instance_id, service.ready.instance_id);
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(std::fs::metadata(&socket).expect("a socket").permissions().mode() & 0o777, 0o600);
}
