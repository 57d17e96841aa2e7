//! Each new connection proves itself before the pool may use it, also one that the pool opened by itself.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use tower::{Layer, Service};

use super::{ProofError, Question, stranger};
use crate::token::Token;

/// What every part of a connection fails with.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

const MAX_HEALTH_BYTES: usize = 4096;

/// Makes a connector prove its connections.
#[derive(Clone, Debug)]
pub(crate) struct ProofLayer {
    pub(crate) token: Token,
    pub(crate) host: String,
}

impl<S> Layer<S> for ProofLayer {
    type Service = Prover<S>;

    fn layer(&self, connector: S) -> Prover<S> {
        Prover { connector, layer: self.clone() }
    }
}

/// A connector whose connections are proved.
#[derive(Clone, Debug)]
pub(crate) struct Prover<S> {
    connector: S,
    layer: ProofLayer,
}

impl<S, R> Service<R> for Prover<S>
where
    S: Service<R, Error = BoxError>,
    S::Future: Send + 'static,
    S::Response: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.connector.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let (connecting, layer) = (self.connector.call(request), self.layer.clone());
        Box::pin(async move { Ok(prove(connecting.await?, &layer).await?) })
    }
}

/// Asks over this connection for the proof, and gives it back when the proof is right.
async fn prove<C>(connection: C, layer: &ProofLayer) -> Result<C, ProofError>
where
    C: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let question = Question::new()?;
    let (mut sender, driver) =
        http1::handshake::<_, Empty<Bytes>>(connection).await.map_err(|error| broken(&error))?;
    let request = http::Request::get(question.path())
        .header(http::header::HOST, &layer.host)
        .body(Empty::new())
        .map_err(|error| ProofError::Broken(error.to_string()))?;
    // The sender is dropped with its block: only then the driver ends and hands the connection back.
    let exchange = async move {
        let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_HEALTH_BYTES).collect().await;
        Ok((
            status,
            body.map_err(|_| stranger("its answer to /healthz broke off or is too long"))?.to_bytes(),
        ))
    };
    let (answer, parts) = tokio::join!(exchange, driver.without_shutdown());
    let (status, body) = answer?;
    question.judge(status, &body, &layer.token)?;
    let parts = parts.map_err(|error| broken(&error))?;
    if !parts.read_buf.is_empty() {
        return Err(stranger("it says more than it was asked for"));
    }
    Ok(parts.io)
}

fn broken(error: &hyper::Error) -> ProofError {
    if error.is_parse() {
        return stranger("it does not speak HTTP");
    }
    ProofError::Broken(format!("closed before it answered ({error})"))
}
