//! `GET /healthz`: alive, and nothing else. With a nonce it proves that it knows the token, before a caller sends that.

use std::sync::Arc;

use axum::extract::State;
use filectx_openapi::{Health, routes};
use http::Uri;
use utoipa::IntoParams;

use crate::failure::{Failure, HealthRefused};
use crate::service::Service;

/// What may be asked.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "it only describes the query for the document")]
pub(crate) struct HealthQuery {
    /// 16 to 64 bytes as hex digits.
    #[param(example = "00112233445566778899aabbccddeeff", pattern = "^([0-9a-fA-F]{2}){16,64}$")]
    nonce: Option<String>,
}

/// Is the service alive, and is it the right one
///
/// With `nonce` it answers `proof`: lower-case hex of HMAC-SHA256, the token's text as key, over the nonce's text.
#[utoipa::path(
    get, path = routes::HEALTHZ, tag = "service", operation_id = "healthz", params(HealthQuery), security(()),
    responses((status = 200, body = Health, description = "It is alive."), HealthRefused)
)]
pub(crate) async fn health(
    State(service): State<Arc<Service>>,
    uri: Uri,
) -> Result<axum::Json<Health>, Failure> {
    let proof = nonce(uri.query().unwrap_or(""))?.map(|nonce| service.token().proof(nonce));
    Ok(axum::Json(Health { status: "ok".into(), proof }))
}

fn nonce(query: &str) -> Result<Option<&str>, Failure> {
    let mut sent = query.split('&').filter_map(|pair| pair.strip_prefix("nonce="));
    let nonce = match (sent.next(), sent.next()) {
        (None, _) => return Ok(None),
        (Some(nonce), None) => nonce,
        (Some(_), Some(_)) => "",
    };
    let hex = nonce.bytes().all(|byte| byte.is_ascii_hexdigit());
    if hex && nonce.len() % 2 == 0 && (32..=128).contains(&nonce.len()) {
        return Ok(Some(nonce));
    }
    Err(Failure::invalid_request(None, "nonce: send 16 to 64 bytes as hex digits, once"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_16_to_64_bytes_of_hex() {
        for good in ["0".repeat(32), "Af".repeat(64), "0f".repeat(31)] {
            assert_eq!(nonce(&format!("a=b&nonce={good}")).unwrap(), Some(good.as_str()));
        }
        assert_eq!(nonce("").unwrap(), None);
        assert_eq!(nonce("once=1").unwrap(), None);
        for bad in
            ["", "ff", &"0".repeat(30), &"0".repeat(33), &"0".repeat(130), &"z".repeat(32), &"%30".repeat(32)]
        {
            assert!(nonce(&format!("nonce={bad}")).is_err(), "{bad}");
        }
        let twice = format!("nonce={0}&nonce={0}", "0".repeat(32));
        assert!(nonce(&twice).is_err());
    }
}
