//! Bounded and unbreakable: what is too much is refused, a panic costs its request, a caller that left ends its work.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use filectx_files::Error;
use filectx_openapi::{Code, Limits, routes};
use futures_util::FutureExt;
use http_body_util::BodyExt;

use super::{ask, batch, get, post, service};
use crate::Door;
use crate::answer::Facts;
use crate::failure::Failure;
use crate::negotiate::Form;
use crate::service::Service;
use crate::turn::Turn;

async fn turn(service: &Arc<Service>) -> Turn {
    Turn::new(Arc::clone(service), service.load().permit().await.unwrap(), Form::Json, None)
}

fn narrow() -> Arc<Service> {
    let limits = Limits { max_concurrent_requests: 1, max_queued_requests: 0, ..Limits::default() };
    Arc::new(service(limits))
}

#[tokio::test]
async fn more_than_can_wait_is_overloaded_and_health_answers_all_the_same() {
    let service = narrow();
    let door = Door::new(Arc::clone(&service));
    let busy = turn(&service).await;
    let body = batch(&["/etc/hostname".as_ref()]);
    let refused = ask(&door, post(routes::READ_FILE_CONTEXT, body.clone())).await;
    refused.refused(Code::Overloaded);
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(ask(&door, get(routes::HEALTHZ)).await.status, 200);
    assert_eq!(ask(&door, get(routes::INFO)).await.status, 200);
    drop(busy);
    assert_eq!(ask(&door, post(routes::READ_FILE_CONTEXT, body)).await.status, 200);
}

#[tokio::test]
async fn an_answer_holds_its_turn_until_it_is_sent() {
    let service = narrow();
    let door = Door::new(Arc::clone(&service));
    let body = batch(&["/etc/hostname".as_ref()]);
    let unsent = door.answer(post(routes::READ_FILE_CONTEXT, body.clone())).await;
    ask(&door, post(routes::READ_FILE_CONTEXT, body.clone())).await.refused(Code::Overloaded);
    unsent.into_body().collect().await.unwrap();
    assert_eq!(ask(&door, post(routes::READ_FILE_CONTEXT, body)).await.status, 200);
}

#[tokio::test]
async fn a_panic_costs_its_request_and_nothing_else() {
    let service = narrow();
    async fn panics() -> &'static str {
        std::panic::resume_unwind(Box::new("a bug"))
    }
    let routes = axum::Router::new().route("/v1/bug", axum::routing::get(panics));
    let door = Door::with_router(Arc::clone(&service), routes);
    ask(&door, get("/v1/bug")).await.refused(Code::Internal);
    let verb = |_: &_, _: &_| -> Result<((), Facts), _> { std::panic::resume_unwind(Box::new("a bug")) };
    let failure = turn(&service).await.look(None, verb).await.unwrap_err();
    assert_eq!(failure.0.code, Code::Internal);
    let failure = turn(&service).await.change(verb).await.unwrap_err();
    assert_eq!(failure.0.code, Code::Internal);
    assert_eq!(ask(&Door::new(service), get(routes::INFO)).await.status, 200);
}

#[tokio::test]
async fn a_caller_that_hangs_up_ends_its_work() {
    let service = narrow();
    for changes in [false, true] {
        let (ended, heard) = mpsc::channel();
        let (begin, begun) = tokio::sync::oneshot::channel();
        let verb = move |_: &_, cancel: &filectx_files::Cancel| {
            begin.send(()).unwrap();
            while !cancel.is_cancelled() {
                std::thread::yield_now();
            }
            ended.send(()).unwrap();
            Ok(((), Facts::default()))
        };
        let turn = turn(&service).await;
        let work = if changes { turn.change(verb).boxed() } else { turn.look(None, verb).boxed() };
        let working = tokio::spawn(work);
        begun.await.unwrap();
        working.abort();
        assert!(working.await.unwrap_err().is_cancelled());
        assert!(heard.recv_timeout(Duration::from_secs(10)).is_ok());
    }
}

#[tokio::test]
async fn a_look_that_hangs_is_left_behind_at_the_deadline() {
    let service = narrow();
    let (release, hangs) = mpsc::channel::<()>();
    let verb = move |_: &_, _: &_| {
        let _released = hangs.recv();
        Ok(((), Facts::default()))
    };
    let failure: Failure = turn(&service).await.look(Some(1), verb).await.unwrap_err();
    assert_eq!(failure.0.code, Code::DeadlineExceeded);
    drop(release);
}

#[tokio::test]
async fn a_verbs_failure_is_the_answers() {
    let service = narrow();
    let verb = |_: &_, _: &_| -> Result<((), Facts), _> { Err(Error::ReadOnly.item("/a".as_ref())) };
    let failure = turn(&service).await.change(verb).await.unwrap_err();
    assert_eq!(failure.0.code, Code::ReadOnly);
}

#[tokio::test]
async fn a_body_that_grows_over_the_limit_is_cut_off() {
    // Without a length that tells beforehand.
    let door = Door::new(Arc::new(service(Limits { max_body_bytes: 100, ..Limits::default() })));
    let chunks =
        (0..50).map(|_| Ok::<_, std::io::Error>(http_body::Frame::data(Bytes::from_static(b"          "))));
    let (head, _) = post(routes::READ_FILE_CONTEXT, "").into_parts();
    let body = http_body_util::StreamBody::new(futures_util::stream::iter(chunks));
    let response = door.answer(http::Request::from_parts(head, body)).await;
    assert_eq!(response.status(), 413);
}
