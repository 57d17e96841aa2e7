//! Hosts where there is no `ssh`: none is ever connected, and a session on one is told so.

use crate::Client;
use crate::session::Hosts;

/// The hosts of a process: none. Whoever connects hosts in another way implements [`Hosts`].
#[derive(Clone, Copy, Debug, Default)]
pub struct HostManager;

impl HostManager {
    /// The client of a connected host: there is none.
    pub fn client_for_host(&self, _host_id: &str) -> Option<Client> {
        None
    }
}

impl Hosts for HostManager {
    fn client_for_host(&self, host_id: &str) -> Option<Client> {
        HostManager::client_for_host(self, host_id)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Error;
    use crate::session::{Session, SessionType, Tool, ToolUser, Unattached};
    use filectx_openapi::{DeleteFileRequest, ReadFileContextRequest};

    fn done<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
    }

    #[test]
    fn nothing_is_connected_and_no_other_disk_answers() {
        for host_id in [None, Some("host".to_owned())] {
            let kind = SessionType::Remote { host_id };
            let session = Session::new(kind, Arc::new(HostManager), None).unattached(Unattached::FallThrough);
            let read = done(session.read(&ReadFileContextRequest::default()));
            let request = serde_json::from_str::<DeleteFileRequest>(r#"{"path":"/f"}"#).unwrap();
            let delete = done(session.delete(&request));
            assert!(matches!(read, Err(Error::NotConnected { .. })), "{read:?}");
            assert!(matches!(delete, Err(Error::NotConnected { .. })), "{delete:?}");
            assert_eq!(done(session.supported_tools(ToolUser::Agent)), Vec::<Tool>::new());
        }
    }
}
