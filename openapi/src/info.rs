//! Nouns of `GET /v1/info` and `GET /healthz`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Limits;

/// What a service can do. A client sends a field younger than v1 only to a service that names its feature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// `read-file-context`.
    Read,
    /// Images are decoded, fitted and checked.
    Images,
    /// `Accept: multipart/mixed` is answered by a stream.
    Multipart,
    /// `list-directory`.
    List,
    /// `find-text` and `find-paths`.
    Find,
    /// `edit-file`.
    Edit,
    /// `write-file`.
    Write,
    /// `delete-file`.
    Delete,
    /// `Idempotency-Key` is honoured.
    Idempotency,
    /// A feature that this version does not know.
    #[serde(untagged)]
    Other(String),
}

/// Who and what the service is.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct InfoResponse {
    /// Always `filectxd`.
    #[schema(example = "filectxd")]
    pub service: String,
    /// The service's version.
    #[schema(example = "0.1.0")]
    pub version: String,
    /// The version of the contract.
    #[schema(example = "v1")]
    pub api: String,
    /// Names the host; stable across restarts of the service.
    pub host_id: String,
    /// Names this run of the service; new at each start.
    pub instance_id: String,
    /// The host's name, as it calls itself.
    pub host_name: String,
    /// The user as whom the service runs.
    pub user: String,
    /// That user's home: what `~` stands for.
    pub home: String,
    /// The operating system, e.g. `linux`.
    #[schema(example = "linux")]
    pub os: String,
    /// The machine's architecture, e.g. `x86_64`.
    #[schema(example = "x86_64")]
    pub arch: String,
    /// True when every change is refused (`--read-only`).
    pub read_only: bool,
    /// The directories that every operation is confined to; empty = all that the user may reach.
    pub roots: Vec<String>,
    /// The limits in force.
    pub limits: Limits,
    /// What the service can do.
    pub features: Vec<Feature>,
}

/// The answer of `/healthz`: that the service is alive, and nothing else.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// Always `ok`.
    #[schema(example = "ok")]
    pub status: String,
    /// When a nonce was sent: lower-case hex of HMAC-SHA256, the token's text as key, over the nonce's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}
