//! A session of an agent: whose files it means, who answers for them, and which tools that allows. It never answers from
//! another disk than the one that is meant, except where it says so.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use filectx_openapi::{
    As, BinaryMode, Code, DeleteFileRequest, DeleteFileResponse, EditFileRequest, EditFileResponse, Feature,
    FileRequest, FindPathsRequest, FindPathsResponse, FindTextRequest, FindTextResponse, InfoResponse,
    ListDirectoryRequest, ListDirectoryResponse, ReadFileContextRequest, ReadFileContextResponse,
    WriteFileRequest, WriteFileResponse,
};
use serde::{Deserialize, Serialize};

use crate::local::Local;
use crate::{Client, Error};

/// Whose files a session means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionType {
    /// This machine's.
    Local,
    /// A host's.
    Remote {
        /// The host; `None` while the session is not attached to one yet.
        host_id: Option<String>,
    },
}

/// What becomes of a read in a session that is not attached to its host yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unattached {
    /// This machine's engine answers, and says that it does.
    #[default]
    FallThrough,
    /// It is `not_connected`.
    Refuse,
}

/// Who answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServedBy {
    /// The engine in this process, from this machine's disk.
    Local,
    /// The service of this host.
    Host(String),
}

/// An answer, and who gave it.
#[derive(Clone, Debug, PartialEq)]
pub struct Served<T> {
    /// Who answered.
    pub served_by: ServedBy,
    /// What was answered.
    pub answer: T,
}

/// Where the clients of hosts are: a `HostManager`, or whoever else connects hosts.
pub trait Hosts: Send + Sync {
    /// The client of a host that is connected.
    fn client_for_host(&self, host_id: &str) -> Option<Client>;

    /// A client of the host after a call was lost, once there is one again; `None` where nobody makes a new way.
    fn recovered<'a>(
        &'a self,
        host_id: &'a str,
    ) -> Pin<Box<dyn Future<Output = Option<Client>> + Send + 'a>> {
        Box::pin(async move { self.client_for_host(host_id) })
    }
}

/// No hosts at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHosts;

impl Hosts for NoHosts {
    fn client_for_host(&self, _host_id: &str) -> Option<Client> {
        None
    }
}

/// A tool for a model, named as the contract names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "as the contract has them")]
pub enum Tool {
    ReadFiles,
    ListDirectory,
    FindText,
    FindPaths,
    EditFile,
    WriteFile,
    DeleteFile,
}

/// Who uses the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolUser {
    /// An agent whose only way to the files is this.
    Agent,
    /// An agent that is itself a command line program beside the files, with its own way of changing them: it gets what
    /// reads.
    CliAgent,
}

/// A session.
#[derive(Clone)]
pub struct Session {
    kind: SessionType,
    unattached: Unattached,
    hosts: Arc<dyn Hosts>,
    local: Option<Local>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// The base of a diff.
#[derive(Clone, Debug, PartialEq)]
pub enum RemoteFile {
    /// The whole text, and the revision that it has.
    Found {
        /// The text, with its line ends.
        content: String,
        /// For `expected_revision`.
        revision: String,
    },
    /// There is no such file.
    Missing,
    /// It cannot be the base of a diff: unreadable, or only a part of it would be.
    Failed(Code),
}

/// Who is to answer.
enum Answerer<'a> {
    Local(&'a Local),
    Host(&'a str, Client),
}

/// Asks who is to answer; a host once more when the way there was lost: what may have changed something only for what became
/// of it.
macro_rules! ask {
    ($session:ident, $answerer:expr, $operation:ident, $request:ident) => {
        match $answerer {
            Answerer::Local(local) => {
                let answer = local.$operation($request).await?;
                Ok(Served { served_by: ServedBy::Local, answer })
            }
            Answerer::Host(host_id, client) => {
                let answer = match client.$operation($request).await {
                    Err(error) if error.wants_another_way() => {
                        match $session.hosts.recovered(host_id).await {
                            Some(client) => client.after(&error).$operation($request).await?,
                            None => return Err(error),
                        }
                    }
                    answer => answer?,
                };
                Ok(Served { served_by: ServedBy::Host(host_id.to_owned()), answer })
            }
        }
    };
}

impl Session {
    /// A session whose hosts are these, and whose engine is this, if there is one.
    pub fn new(kind: SessionType, hosts: Arc<dyn Hosts>, local: Option<Local>) -> Self {
        Self { kind, unattached: Unattached::default(), hosts, local }
    }

    /// The same session, that does otherwise while it is not attached.
    #[must_use]
    pub fn unattached(mut self, unattached: Unattached) -> Self {
        self.unattached = unattached;
        self
    }

    /// Whose files it means.
    pub fn kind(&self) -> &SessionType {
        &self.kind
    }

    /// Reads a batch of files.
    pub async fn read(
        &self,
        request: &ReadFileContextRequest,
    ) -> Result<Served<ReadFileContextResponse>, Error> {
        ask!(self, self.for_looking()?, read, request)
    }

    /// Lists one directory.
    pub async fn list(&self, request: &ListDirectoryRequest) -> Result<Served<ListDirectoryResponse>, Error> {
        ask!(self, self.for_looking()?, list, request)
    }

    /// Searches contents.
    pub async fn find_text(&self, request: &FindTextRequest) -> Result<Served<FindTextResponse>, Error> {
        ask!(self, self.for_looking()?, find_text, request)
    }

    /// Searches names.
    pub async fn find_paths(&self, request: &FindPathsRequest) -> Result<Served<FindPathsResponse>, Error> {
        ask!(self, self.for_looking()?, find_paths, request)
    }

    /// Edits one file exactly.
    pub async fn edit(&self, request: &EditFileRequest) -> Result<Served<EditFileResponse>, Error> {
        ask!(self, self.for_changing()?, edit, request)
    }

    /// Writes one whole file.
    pub async fn write(&self, request: &WriteFileRequest) -> Result<Served<WriteFileResponse>, Error> {
        ask!(self, self.for_changing()?, write, request)
    }

    /// Deletes one file or link.
    pub async fn delete(&self, request: &DeleteFileRequest) -> Result<Served<DeleteFileResponse>, Error> {
        ask!(self, self.for_changing()?, delete, request)
    }

    /// The whole of a file as the base of a diff. A base that lacks something would corrupt the diff: it is none.
    pub async fn read_remote_file(&self, path: &str) -> RemoteFile {
        match self.whole_file(path).await {
            Ok(file) => file,
            Err(error) => match error.code() {
                Some(code) => RemoteFile::Failed(code.clone()),
                None => RemoteFile::Failed(Code::Other(error.kind().to_owned())),
            },
        }
    }

    async fn whole_file(&self, path: &str) -> Result<RemoteFile, Error> {
        let request = ReadFileContextRequest {
            files: vec![FileRequest { path: Some(path.to_owned()), as_: As::Auto, ..FileRequest::default() }],
            // More than any host allows: each clips it to its most.
            max_file_bytes: Some(u64::MAX),
            max_batch_bytes: Some(u64::MAX),
            binary: BinaryMode::Summary,
            ..ReadFileContextRequest::default()
        };
        let mut answer = self.read(&request).await?.answer;
        if let Some(failed) = answer.failed_files.pop() {
            return Ok(match failed.error.code {
                Code::NotFound => RemoteFile::Missing,
                code => RemoteFile::Failed(code),
            });
        }
        let context = answer.file_contexts.pop();
        let context = context.ok_or_else(|| Error::protocol("the file that was asked for is not in it"))?;
        Ok(match context.text_content {
            Some(_) if context.truncation.is_some() => RemoteFile::Failed(Code::TooLarge),
            Some(_) if context.changed_during_read == Some(true) => {
                RemoteFile::Failed(Code::ChangedConcurrently)
            }
            Some(content) if context.lossy != Some(true) => {
                RemoteFile::Found { content, revision: context.revision }
            }
            _ => RemoteFile::Failed(Code::NotText),
        })
    }

    /// The tools that this session has now, for this user of them.
    pub async fn supported_tools(&self, user: ToolUser) -> Vec<Tool> {
        let reading = [Tool::ReadFiles, Tool::ListDirectory, Tool::FindText, Tool::FindPaths];
        let changing = [Tool::EditFile, Tool::WriteFile, Tool::DeleteFile];
        let changing = if user == ToolUser::CliAgent { &[][..] } else { &changing[..] };
        let all = || reading.iter().chain(changing).copied();
        match &self.kind {
            SessionType::Local if self.local.is_some() => all().collect(),
            SessionType::Remote { host_id: None } if self.falls_through().is_some() => reading.to_vec(),
            SessionType::Local | SessionType::Remote { host_id: None } => Vec::new(),
            SessionType::Remote { host_id: Some(host_id) } => {
                let Some(client) = self.hosts.client_for_host(host_id) else { return Vec::new() };
                let Ok(info) = client.who().await else { return Vec::new() };
                all().filter(|tool| has(&info, *tool)).collect()
            }
        }
    }

    fn falls_through(&self) -> Option<&Local> {
        self.local.as_ref().filter(|_| self.unattached == Unattached::FallThrough)
    }

    /// Who answers what changes nothing.
    fn for_looking(&self) -> Result<Answerer<'_>, Error> {
        match &self.kind {
            SessionType::Remote { host_id: None } => {
                self.falls_through().map(Answerer::Local).ok_or_else(not_attached)
            }
            _ => self.for_changing(),
        }
    }

    /// Who answers what changes something.
    fn for_changing(&self) -> Result<Answerer<'_>, Error> {
        match &self.kind {
            SessionType::Local => {
                let none = || Error::NotConnected { host: "this machine (there is no engine here)".into() };
                self.local.as_ref().map(Answerer::Local).ok_or_else(none)
            }
            SessionType::Remote { host_id: None } => Err(not_attached()),
            SessionType::Remote { host_id: Some(host_id) } => match self.hosts.client_for_host(host_id) {
                Some(client) => Ok(Answerer::Host(host_id, client)),
                None => Err(Error::NotConnected { host: host_id.clone() }),
            },
        }
    }
}

fn not_attached() -> Error {
    Error::NotConnected { host: "a host (the session is not attached to one yet)".into() }
}

/// Whether the host has what the tool needs.
fn has(info: &InfoResponse, tool: Tool) -> bool {
    let feature = match tool {
        Tool::ReadFiles => Feature::Read,
        Tool::ListDirectory => Feature::List,
        Tool::FindText | Tool::FindPaths => Feature::Find,
        Tool::EditFile => Feature::Edit,
        Tool::WriteFile => Feature::Write,
        Tool::DeleteFile => Feature::Delete,
    };
    let changes = matches!(tool, Tool::EditFile | Tool::WriteFile | Tool::DeleteFile);
    info.features.contains(&feature) && !(changes && info.read_only)
}
