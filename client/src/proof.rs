//! Who answers? Before the token is sent, whoever answers has to prove that it knows it (`GET /healthz?nonce=`). So a
//! stranger who took the port after the service ended never sees the token. Here is what is asked and what proves;
//! on which connection it is asked, `connection.rs` and `http/` say.

use filectx_openapi::{Health, routes};

use crate::token::{Token, random_hex};

#[cfg(not(target_family = "wasm"))]
mod connection;
#[cfg(not(target_family = "wasm"))]
pub(crate) use connection::ProofLayer;

const NONCE_BYTES: usize = 32;

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

/// One question for the proof.
pub(crate) struct Question {
    nonce: String,
}

impl Question {
    pub(crate) fn new() -> Result<Self, ProofError> {
        let nonce = random_hex(NONCE_BYTES).map_err(|error| ProofError::Broken(error.to_string()))?;
        Ok(Self { nonce })
    }

    /// The route and query to get.
    pub(crate) fn path(&self) -> String {
        format!("{}?nonce={}", routes::HEALTHZ, self.nonce)
    }

    /// Whether the answer shows that who gave it knows the token.
    pub(crate) fn judge(
        &self,
        status: http::StatusCode,
        body: &[u8],
        token: &Token,
    ) -> Result<(), ProofError> {
        if status != http::StatusCode::OK {
            return Err(stranger(&format!("it answers /healthz with status {}", status.as_u16())));
        }
        let health: Health =
            serde_json::from_slice(body).map_err(|_| stranger("its answer to /healthz is not filectxd's"))?;
        let proof = health.proof.ok_or_else(|| stranger("it gives no proof that it knows the token"))?;
        if !token.is_proved_by(&self.nonce, &proof) {
            return Err(stranger("its proof is wrong"));
        }
        Ok(())
    }
}

pub(crate) fn stranger(what: &str) -> ProofError {
    ProofError::Stranger(what.to_owned())
}
