//! Answers as a stream of parts: what leaves when, files that move while they are sent, callers that go away.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use filectx_client::multipart::{Assembler, DecodeError, Decoder};
use filectx_files::{FenceConfig, Files};
use filectx_openapi::{FileRequest, Limits, ReadFileContextRequest, ReadFileContextResponse, routes};
use filectx_service::{Door, Service, guard::token::Token, host::Host};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};

type Body = UnsyncBoxBody<Bytes, String>;

const LARGE: usize = 24 << 20;

struct Stage {
    door: Door,
    token: String,
    dir: tempfile::TempDir,
}

impl Stage {
    fn new(limits: Limits) -> Self {
        let fences = FenceConfig { home: "/".into(), ..FenceConfig::default() };
        let files = Files::new(&fences, limits).expect("an engine without roots");
        let token = Token::generate().expect("a token");
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("token");
        token.write(&file).expect("a token file");
        let text = std::fs::read_to_string(&file).expect("a token file").trim().to_owned();
        let service = Service::new(files, token, &Host::here().expect("a host"));
        Self { door: Door::new(Arc::new(service)), token: text, dir }
    }

    fn write(&self, name: &str, content: &[u8]) {
        std::fs::write(self.dir.path().join(name), content).expect("a file");
    }

    async fn ask(&self, names: &[&str], accept: &str) -> http::Response<Body> {
        let file = |name: &&str| FileRequest { path: Some((*name).to_owned()), ..FileRequest::default() };
        let request = ReadFileContextRequest {
            files: names.iter().map(file).collect(),
            cwd: Some(self.dir.path().to_str().expect("a plain name").to_owned()),
            max_file_bytes: Some(1 << 40),
            max_batch_bytes: Some(1 << 40),
            ..ReadFileContextRequest::default()
        };
        let request = http::Request::post(routes::READ_FILE_CONTEXT)
            .header("host", "127.0.0.1")
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .header("accept", accept)
            .body(Full::from(serde_json::to_vec(&request).expect("a request is JSON")))
            .expect("a request");
        let answer = self.door.answer(request).await;
        answer.map(|body| body.map_err(|error| error.to_string()).boxed_unsync())
    }

    async fn parts(&self, names: &[&str]) -> Parts {
        let answer = self.ask(names, "multipart/mixed").await;
        assert_eq!(answer.status(), 200);
        let kind = answer.headers()["content-type"].to_str().expect("a content type");
        let decoder = Decoder::new(kind).expect("parts");
        Parts { decoder, assembler: Assembler::default(), raw: Vec::new(), body: answer.into_body() }
    }
}

/// An answer that is being received.
struct Parts {
    decoder: Decoder,
    assembler: Assembler,
    raw: Vec<u8>,
    body: Body,
}

impl Parts {
    /// Takes one frame; whether there was one.
    async fn frame(&mut self) -> bool {
        let Some(frame) = self.body.frame().await else { return false };
        let bytes = frame.expect("the answer goes on").into_data().expect("data");
        self.raw.extend_from_slice(&bytes);
        self.decoder.push(&bytes, &mut |event| self.assembler.take(event)).expect("parts");
        true
    }

    async fn rest(mut self) -> Result<ReadFileContextResponse, DecodeError> {
        while self.frame().await {}
        self.decoder.finish()?;
        Ok(self.assembler.response())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.raw).into_owned()
    }
}

fn binary() -> Vec<u8> {
    (0..LARGE).map(|at| (at % 251) as u8).collect()
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
    runtime.expect("a runtime").block_on(test);
}

#[test]
fn parts_and_one_document_hold_the_same() {
    run(async {
        let stage = Stage::new(Limits::default());
        stage.write("text", "first\r\n--second".as_bytes());
        stage.write("small", b"\x01\x02\x03\x04\r\n--");
        let names = ["text", "gone", "small", "text"];
        let parts = stage.parts(&names).await.rest().await.expect("a whole answer");
        let document = stage.ask(&names, "application/json").await.into_body().collect().await;
        let document: ReadFileContextResponse =
            serde_json::from_slice(&document.expect("a whole answer").to_bytes()).expect("an answer is JSON");
        assert_eq!(parts.file_contexts, document.file_contexts);
        assert_eq!(parts.failed_files, document.failed_files);
    });
}

#[test]
fn a_large_binary_comes_from_the_disk() {
    run(async {
        let stage = Stage::new(Limits::default());
        stage.write("large", &binary());
        stage.write("text", b"text\n");
        let mut parts = stage.parts(&["large", "text"]).await;
        parts.frame().await;
        let begun = parts.text();
        assert!(begun.contains("content-id: <part-0>\r\n\r\n"), "no length was promised: {begun:.900}");
        let response = parts.rest().await.expect("a whole answer");
        let content = response.file_contexts[0].binary_content.as_ref().expect("bytes");
        assert!(content.0 == binary());
        assert_eq!(response.file_contexts[0].changed_during_read, None);
        assert_eq!(response.file_contexts[1].text_content.as_deref(), Some("text\n"));
    });
}

#[test]
fn a_file_that_moves_while_it_is_sent_is_told() {
    let grow: fn(&Path) = |path| {
        let mut file = std::fs::OpenOptions::new().append(true).open(path).expect("the file");
        file.write_all(b"more").expect("more");
    };
    let shrink: fn(&Path) = |path| {
        let file = std::fs::OpenOptions::new().write(true).open(path).expect("the file");
        file.set_len(LARGE as u64 - 100).expect("less");
    };
    for length in [LARGE, LARGE - 100] {
        let move_it = if length == LARGE { grow } else { shrink };
        run(async {
            let stage = Stage::new(Limits::default());
            stage.write("large", &binary());
            let mut parts = stage.parts(&["large", "large"]).await;
            parts.frame().await;
            move_it(&stage.dir.path().join("large"));
            let response = parts.rest().await.expect("a whole answer");
            assert_eq!(response.file_contexts.len(), 2);
            let first = &response.file_contexts[0];
            assert_eq!(first.changed_during_read, Some(true));
            assert!(first.binary_content.as_ref().expect("bytes").0 == binary()[..length]);
        });
    }
}

#[test]
fn what_is_read_leaves_before_the_rest() {
    run(async {
        let stage = Stage::new(Limits::default());
        stage.write("text", b"text\n");
        // Many pixels in few bytes: decoding them takes far longer than a short batch may.
        stage.write("image", &flat_png(6_000));
        let mut parts = stage.parts(&["text", "image", "text"]).await;
        parts.frame().await;
        assert!(parts.text().contains("\"text\\n\"") && !parts.text().contains("done"), "{}", parts.text());
        let response = parts.rest().await.expect("a whole answer");
        let indexes: Vec<u64> = response.file_contexts.iter().map(|context| context.request_index).collect();
        assert_eq!(indexes, [0, 1, 2]);
        assert!(response.file_contexts[1].image.as_ref().is_some_and(|image| image.resized == Some(true)));
    });
}

/// A grey PNG of this many rows and columns, all zero.
fn flat_png(side: u32) -> Vec<u8> {
    filectx_tests::png::grey(side, side, &vec![0; (side as usize + 1) * side as usize])
}

#[test]
fn a_caller_that_goes_away_frees_its_turn() {
    run(async {
        let limits = Limits { max_concurrent_requests: 1, ..Limits::default() };
        let stage = Stage::new(limits);
        stage.write("large", &binary());
        stage.write("text", b"text\n");
        for _ in 0..3 {
            let mut parts = stage.parts(&["large", "large", "large"]).await;
            parts.frame().await;
            drop(parts);
            // There is one turn: it is free again, or this waits forever.
            let response = stage.parts(&["text"]).await.rest().await.expect("a whole answer");
            assert_eq!(response.file_contexts.len(), 1);
        }
    });
}

#[test]
fn many_files_in_their_order() {
    run(async {
        let stage = Stage::new(Limits::default());
        let names: Vec<String> = (0..1500).map(|index| format!("f{index}")).collect();
        for name in &names {
            stage.write(name, name.as_bytes());
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let response = stage.parts(&names).await.rest().await.expect("a whole answer");
        let texts: Vec<&str> =
            response.file_contexts.iter().filter_map(|context| context.text_content.as_deref()).collect();
        assert_eq!(texts, names);
    });
}
