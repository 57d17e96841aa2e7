//! Who does the work: a service over the network, on a host over SSH, or the engine in this process. All answer with the
//! same nouns and fail with the same errors.

use std::fs::File;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use filectx_client::ssh::{OneHost, Place};
use filectx_client::{Client, Error, runtime};
use filectx_files::{Cancel, FenceConfig, Files, home_directory};
use filectx_openapi::{
    DeleteFileRequest, DeleteFileResponse, EditFileRequest, EditFileResponse, FindPathsRequest,
    FindPathsResponse, FindTextRequest, FindTextResponse, InfoResponse, ItemError, Limits,
    ListDirectoryRequest, ListDirectoryResponse, Problem, ReadFileContextRequest, ReadFileContextResponse,
    WriteFileRequest, WriteFileResponse,
};
use tokio::runtime::Runtime;

use super::connection::{Connection, Environment};
use super::exit::Failure;
use super::host;
use super::input::{self, Input};

/// Who does the work.
pub(crate) enum Backend {
    /// A service.
    Remote { service: Service, runtime: Runtime },
    /// The engine in this process.
    Embedded { files: Arc<Files> },
}

/// A service.
pub(crate) enum Service {
    /// At a known place.
    Known(Client),
    /// Of a host over SSH.
    OnHost(Box<OneHost>),
}

impl Service {
    async fn call<T>(&self, ask: impl AsyncFn(&Client) -> Result<T, Error>) -> Result<T, Error> {
        match self {
            Self::Known(client) => ask(client).await,
            Self::OnHost(host) => {
                let answer = host.call(ask).await;
                host::clear_progress();
                answer
            }
        }
    }
}

impl Backend {
    /// The backend that flags and environment name.
    pub(crate) fn new(
        connection: &Connection,
        environment: &Environment,
        changes: bool,
    ) -> Result<Self, Failure> {
        let service = match connection.host(environment) {
            Some(destination) => {
                let options = connection.way.options(&destination, environment);
                let place = Place::shared().map_err(|error| Failure::Io(error.to_string()))?;
                let host = OneHost::new(options, place, host::progress(&destination));
                Some(Service::OnHost(Box::new(host)))
            }
            None => connection.client(environment)?.map(Service::Known),
        };
        let Some(service) = service else {
            let files = if changes { journaled(engine()?, environment) } else { Ok(engine()?) };
            return Ok(Self::Embedded { files: Arc::new(files?) });
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::Io(error.to_string()))?;
        Ok(Self::Remote { service, runtime })
    }

    /// Whether the files are those of this machine, seen by this process.
    pub(crate) fn is_embedded(&self) -> bool {
        matches!(self, Self::Embedded { .. })
    }

    pub(crate) fn read(&self, request: &ReadFileContextRequest) -> Result<ReadFileContextResponse, Error> {
        match self {
            Self::Remote { service, runtime } => {
                runtime.block_on(service.call(async |client| client.read(request).await))
            }
            Self::Embedded { files } => files.read(request.clone()).map_err(refused),
        }
    }

    /// The same; `watch` is told of how many files there is an outcome.
    pub(crate) fn read_watched(
        &self,
        request: &ReadFileContextRequest,
        watch: impl Fn(u64) + Send + Sync + 'static,
    ) -> Result<ReadFileContextResponse, Error> {
        match self {
            Self::Remote { service, runtime } => {
                let watch = Arc::new(watch);
                runtime.block_on(service.call(async |client| {
                    let watch = Arc::clone(&watch);
                    client.read_watched(request, move |count| watch(count)).await
                }))
            }
            Self::Embedded { files } => files.read_watched(request.clone(), &watch).map_err(refused),
        }
    }

    pub(crate) fn list(&self, request: &ListDirectoryRequest) -> Result<ListDirectoryResponse, Error> {
        match self {
            Self::Remote { service, runtime } => {
                runtime.block_on(service.call(async |client| client.list(request).await))
            }
            Self::Embedded { files } => files.list(request, &cancel(files, None)).map_err(refused),
        }
    }

    pub(crate) fn find_text(&self, request: &FindTextRequest) -> Result<FindTextResponse, Error> {
        match self {
            Self::Remote { service, runtime } => {
                runtime.block_on(service.call(async |client| client.find_text(request).await))
            }
            Self::Embedded { files } => {
                files.find_text(request, &cancel(files, request.deadline_ms)).map_err(refused)
            }
        }
    }

    pub(crate) fn find_paths(&self, request: &FindPathsRequest) -> Result<FindPathsResponse, Error> {
        match self {
            Self::Remote { service, runtime } => {
                runtime.block_on(service.call(async |client| client.find_paths(request).await))
            }
            Self::Embedded { files } => {
                files.find_paths(request, &cancel(files, request.deadline_ms)).map_err(refused)
            }
        }
    }

    pub(crate) fn edit(&self, request: &EditFileRequest) -> Result<EditFileResponse, Error> {
        match self {
            Self::Remote { service, runtime } => {
                runtime.block_on(service.call(async |client| client.edit(request).await))
            }
            Self::Embedded { files } => files.edit(request, &cancel(files, None)).map_err(refused),
        }
    }

    /// Writes what `input` gives until its end. `request` carries no content.
    pub(crate) fn write(
        &self,
        request: WriteFileRequest,
        input: BorrowedFd<'_>,
    ) -> Result<Result<WriteFileResponse, Error>, Failure> {
        let failed = |error: std::io::Error| Failure::Io(format!("the content cannot be read: {error}"));
        let mut input = File::from(input.try_clone_to_owned().map_err(failed)?);
        match self {
            Self::Remote { service, runtime } => Ok(match input::content(input).map_err(failed)? {
                Input::Small(bytes) => {
                    let request = input::carrying(request, bytes);
                    runtime.block_on(service.call(async |client| client.write(&request).await))
                }
                Input::Large(content) => runtime.block_on(
                    service.call(async |client| client.write_from(&request, content.clone()).await),
                ),
            }),
            Self::Embedded { files } => {
                Ok(files.write_from(&request, &mut input, &cancel(files, None)).map_err(refused))
            }
        }
    }

    pub(crate) fn delete(&self, request: &DeleteFileRequest) -> Result<DeleteFileResponse, Error> {
        match self {
            Self::Remote { service, runtime } => {
                runtime.block_on(service.call(async |client| client.delete(request).await))
            }
            Self::Embedded { files } => files.delete(request, &cancel(files, None)).map_err(refused),
        }
    }

    /// Who answers; `None`: this process.
    pub(crate) fn info(&self) -> Result<Option<Arc<InfoResponse>>, Error> {
        match self {
            Self::Remote { service, runtime } => {
                runtime.block_on(service.call(async |client| client.info().await)).map(Some)
            }
            Self::Embedded { .. } => Ok(None),
        }
    }
}

fn engine() -> Result<Files, Failure> {
    let fences = FenceConfig { home: home_directory(), ..FenceConfig::default() };
    Files::new(&fences, Limits::default()).map_err(|error| Failure::Usage(error.to_string()))
}

/// With the journal from which the next start of any process of this user settles what a killed one leaves behind.
fn journaled(files: Files, environment: &Environment) -> Result<Files, Failure> {
    let directory =
        environment.runtime_directory.as_deref().filter(|directory| runtime::is_private(directory));
    match directory {
        // Best effort: without a directory for it, a change is as whole as ever.
        None => Ok(files),
        Some(directory) => {
            let journaled = files.keep_journal(directory);
            journaled.map(|_| files).map_err(|error| {
                Failure::Io(format!("{}: cannot keep the journal of changes: {error}", directory.display()))
            })
        }
    }
}

/// The time that a service would give a request.
fn cancel(files: &Files, deadline_ms: Option<u64>) -> Cancel {
    let most = files.limits().deadline_ms;
    Cancel::after(Duration::from_millis(deadline_ms.unwrap_or(most).min(most)))
}

fn refused(error: ItemError) -> Error {
    Error::Refused(Box::new(Problem::new(error, "")))
}
