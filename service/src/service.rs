//! What all requests of one service share: the engine, the token, the bound on work, and who it is.

use std::sync::Arc;

use bytes::Bytes;
use filectx_files::Files;
use filectx_openapi::InfoResponse;

use crate::guard::load::Load;
use crate::guard::token::Token;
use crate::hop::Hops;
use crate::host::Host;
use crate::log::{Activity, RequestIds};
use crate::outcomes::Outcomes;
use crate::router::FEATURES;
use crate::spare::Spare;

/// One service. Everything it needs comes in through [`Service::new`]; it keeps nothing between requests
/// but the outcomes of keyed ones.
#[derive(Debug)]
pub struct Service {
    files: Arc<Files>,
    token: Token,
    load: Load,
    hops: Hops,
    info: Bytes,
    ids: RequestIds,
    activity: Arc<Activity>,
    outcomes: Outcomes,
    spare: Spare,
}

impl Service {
    /// A service of these files, on this host, behind this token.
    pub fn new(files: Files, token: Token, host: &Host) -> Self {
        let info = info(&files, host);
        Self {
            load: Load::new(files.limits()),
            files: Arc::new(files),
            token,
            // Text, numbers and lists: it always serialises.
            info: serde_json::to_vec(&info).unwrap_or_default().into(),
            ids: RequestIds::new(&host.instance_id),
            activity: Arc::default(),
            hops: Hops::new(0),
            outcomes: Outcomes::default(),
            spare: Spare::default(),
        }
    }

    /// Lets `threads` of the runtime's threads block on short work, which saves it a hop to a blocking thread. The runtime
    /// must have at least two threads more.
    pub fn with_blocking_workers(self, threads: usize) -> Self {
        Self { hops: Hops::new(threads), ..self }
    }

    /// The engine.
    pub fn files(&self) -> &Arc<Files> {
        &self.files
    }

    /// What is going on, for the idle timeout.
    pub(crate) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    /// The token that opens it.
    pub fn token(&self) -> &Token {
        &self.token
    }

    pub(crate) fn hops(&self) -> &Hops {
        &self.hops
    }

    pub(crate) fn load(&self) -> &Load {
        &self.load
    }

    pub(crate) fn info(&self) -> Bytes {
        self.info.clone()
    }

    /// What became of requests with a key.
    pub(crate) fn outcomes(&self) -> &Outcomes {
        &self.outcomes
    }

    /// Buffers for large answers.
    pub(crate) fn spare(&self) -> &Spare {
        &self.spare
    }

    pub(crate) fn ids(&self) -> &RequestIds {
        &self.ids
    }
}

fn info(files: &Files, host: &Host) -> InfoResponse {
    let fences = files.fences();
    let lossy = |path: &std::path::Path| path.to_string_lossy().into_owned();
    InfoResponse {
        service: "filectxd".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        api: "v1".into(),
        host_id: host.host_id.clone(),
        instance_id: host.instance_id.clone(),
        host_name: host.host_name.clone(),
        user: host.user.clone(),
        home: lossy(fences.home()),
        os: std::env::consts::OS.into(),
        arch: std::env::consts::ARCH.into(),
        read_only: fences.read_only(),
        roots: fences.roots().map(lossy).collect(),
        limits: files.limits().clone(),
        features: FEATURES.to_vec(),
    }
}
