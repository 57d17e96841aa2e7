//! Who answers? Each new connection first has to prove that it leads to a service that knows the token
//! (`GET /healthz?nonce=`), before the pool may use it. So a stranger who took the port after the service ended,
//! also behind a connection that the pool opened by itself, never sees the token.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use filectx_openapi::{Health, routes};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use tower::{Layer, Service};

use crate::token::{Token, random_hex};

/// What every part of a connection fails with.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

const NONCE_BYTES: usize = 32;
const MAX_HEALTH_BYTES: usize = 4096;

/// Why a connection was not trusted.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum ProofError {
    /// Someone answered, who does not know the token.
    #[error("{0}")]
    Stranger(String),
    /// Nobody answered.
    #[error("{0}")]
    Broken(String),
}

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
    let nonce = random_hex(NONCE_BYTES).map_err(|error| ProofError::Broken(error.to_string()))?;
    let (mut sender, driver) =
        http1::handshake::<_, Empty<Bytes>>(connection).await.map_err(|error| broken(&error))?;
    let request = http::Request::get(format!("{}?nonce={nonce}", routes::HEALTHZ))
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
    judge(status, &body, &nonce, &layer.token)?;
    let parts = parts.map_err(|error| broken(&error))?;
    if !parts.read_buf.is_empty() {
        return Err(stranger("it says more than it was asked for"));
    }
    Ok(parts.io)
}

fn judge(status: http::StatusCode, body: &[u8], nonce: &str, token: &Token) -> Result<(), ProofError> {
    if status != http::StatusCode::OK {
        return Err(stranger(&format!("it answers /healthz with status {}", status.as_u16())));
    }
    let health: Health =
        serde_json::from_slice(body).map_err(|_| stranger("its answer to /healthz is not filectxd's"))?;
    let proof = health.proof.ok_or_else(|| stranger("it gives no proof that it knows the token"))?;
    if !token.is_proved_by(nonce, &proof) {
        return Err(stranger("its proof is wrong"));
    }
    Ok(())
}

fn stranger(what: &str) -> ProofError {
    ProofError::Stranger(what.to_owned())
}

fn broken(error: &hyper::Error) -> ProofError {
    if error.is_parse() {
        return stranger("it does not speak HTTP");
    }
    ProofError::Broken(format!("closed before it answered ({error})"))
}
