//! Who does the work: a service over the network, or the engine in this process. Both answer with the same nouns and fail
//! with the same errors.

use std::sync::Arc;

use filectx_client::{Client, Error};
use filectx_files::{FenceConfig, Files, home_directory};
use filectx_openapi::{
    InfoResponse, ItemError, Limits, Problem, ReadFileContextRequest, ReadFileContextResponse,
};
use tokio::runtime::Runtime;

use super::connection::{Connection, Environment};
use super::exit::Failure;

/// Who does the work.
pub(crate) enum Backend {
    /// A service.
    Remote { client: Client, runtime: Runtime },
    /// The engine in this process.
    Embedded { files: Arc<Files> },
}

impl Backend {
    /// The backend that flags and environment name.
    pub(crate) fn new(connection: &Connection, environment: &Environment) -> Result<Self, Failure> {
        let Some(client) = connection.client(environment)? else {
            return Ok(Self::Embedded { files: Arc::new(engine()?) });
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::Io(error.to_string()))?;
        Ok(Self::Remote { client, runtime })
    }

    /// Whether the files are those of this machine, seen by this process.
    pub(crate) fn is_embedded(&self) -> bool {
        matches!(self, Self::Embedded { .. })
    }

    pub(crate) fn read(&self, request: &ReadFileContextRequest) -> Result<ReadFileContextResponse, Error> {
        match self {
            Self::Remote { client, runtime } => runtime.block_on(client.read(request)),
            Self::Embedded { files } => files.read(request.clone()).map_err(refused),
        }
    }

    /// Who answers; `None`: this process.
    pub(crate) fn info(&self) -> Result<Option<Arc<InfoResponse>>, Error> {
        match self {
            Self::Remote { client, runtime } => runtime.block_on(client.info()).map(Some),
            Self::Embedded { .. } => Ok(None),
        }
    }
}

fn engine() -> Result<Files, Failure> {
    let fences =
        FenceConfig { roots: Vec::new(), deny: Vec::new(), read_only: false, home: home_directory() };
    Files::new(&fences, Limits::default()).map_err(|error| Failure::Usage(error.to_string()))
}

fn refused(error: ItemError) -> Error {
    Error::Refused(Box::new(Problem::new(error, "")))
}
