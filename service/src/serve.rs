//! Connections: a listener on loopback or a Unix socket, an accept loop on hyper, and a stop that lets go what runs.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};

use crate::config::{Listen, loopback};
use crate::connection;
use crate::door::Door;
use crate::guard::token::{TokenFileError, own_uid, private_directory};
use crate::service::Service;

/// How long what runs may go on after a stop.
const STOP_TIME: Duration = Duration::from_secs(10);
/// How long to wait when the system has no more descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The most connections; more wait to be accepted.
const CONNECTIONS: usize = 1024;

/// A place where connections arrive.
#[derive(Debug)]
pub enum Listener {
    /// A loopback port.
    Tcp(TcpListener, SocketAddr),
    /// A Unix socket, removed when the listener is dropped.
    Unix(UnixListener, SocketFile),
}

/// A place where nothing can be listened on.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The system said no.
    #[error("listening on {place}: {source}")]
    Io {
        /// The address or path.
        place: String,
        /// What the system said.
        source: io::Error,
    },
    /// A service is there already.
    #[error("listening on {0}: another service answers there")]
    InUse(String),
    /// The socket's directory is not private.
    #[error(transparent)]
    Directory(#[from] TokenFileError),
}

impl Listener {
    /// Listens.
    pub async fn bind(listen: &Listen) -> Result<Self, BindError> {
        match listen {
            Listen::Tcp(address) => {
                let failed = |source| BindError::Io { place: address.to_string(), source };
                let listener = TcpListener::bind(address).await.map_err(failed)?;
                let address = listener.local_addr().map_err(failed)?;
                Ok(Listener::Tcp(listener, address))
            }
            Listen::Unix(path) => bind_socket(path).await,
        }
    }

    /// Listens on a socket that was handed over.
    pub fn adopt(socket: OwnedFd) -> Result<Self, BindError> {
        let place = "the socket handed over by LISTEN_FDS";
        let failed = |source| BindError::Io { place: place.into(), source };
        let tcp = std::net::TcpListener::from(socket);
        tcp.set_nonblocking(true).map_err(failed)?;
        if let Ok(address) = tcp.local_addr() {
            loopback(address).map_err(|error| failed(io::Error::other(error)))?;
            return Ok(Listener::Tcp(TcpListener::from_std(tcp).map_err(failed)?, address));
        }
        let unix = std::os::unix::net::UnixListener::from(OwnedFd::from(tcp));
        let address = unix.local_addr().map_err(failed)?;
        let path =
            address.as_pathname().ok_or_else(|| failed(io::Error::other("it has no path")))?.to_owned();
        let listener = UnixListener::from_std(unix).map_err(failed)?;
        // The name is its maker's to remove.
        Ok(Listener::Unix(listener, SocketFile { inode: None, path }))
    }

    /// `http://ADDRESS:PORT`; none on a socket.
    pub fn url(&self) -> Option<String> {
        match self {
            Listener::Tcp(_, address) => Some(format!("http://{address}")),
            Listener::Unix(..) => None,
        }
    }

    /// The socket's path; none on a port.
    pub fn socket(&self) -> Option<&Path> {
        match self {
            Listener::Tcp(..) => None,
            Listener::Unix(_, file) => Some(&file.path),
        }
    }

    /// The name of the token file that belongs to it.
    pub fn token_name(&self) -> String {
        match self {
            Listener::Tcp(_, address) => format!("{}.token", address.port()),
            Listener::Unix(_, file) => {
                format!("{}.token", file.path.file_name().unwrap_or_default().to_string_lossy())
            }
        }
    }
}

async fn bind_socket(path: &Path) -> Result<Listener, BindError> {
    let place = || path.display().to_string();
    let failed = |source| BindError::Io { place: place(), source };
    let path = std::path::absolute(path).map_err(failed)?;
    if let Some(directory) = path.parent() {
        private_directory(directory)?;
    }
    // What a service that was killed left behind is removed; what still answers is not.
    if fs::symlink_metadata(&path).is_ok_and(|meta| meta.file_type().is_socket()) {
        if UnixStream::connect(&path).await.is_ok() {
            return Err(BindError::InUse(place()));
        }
        fs::remove_file(&path).map_err(failed)?;
    }
    let listener = UnixListener::bind(&path).map_err(failed)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    let meta = fs::symlink_metadata(&path).map_err(failed)?;
    Ok(Listener::Unix(listener, SocketFile { inode: Some((meta.dev(), meta.ino())), path }))
}

/// A socket's name in the file system.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// `None` where it is not ours to remove.
    inode: Option<(u64, u64)>,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Not what a later service put in its place.
        if fs::symlink_metadata(&self.path).is_ok_and(|meta| Some((meta.dev(), meta.ino())) == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Ready when nothing was asked of the service for so long.
pub async fn idle(service: &Service, patience: Duration) {
    loop {
        let idle = service.activity().idle_for();
        let Some(left) = patience.checked_sub(idle).filter(|left| !left.is_zero()) else { return };
        tokio::time::sleep(left).await;
    }
}

/// Answers connections until `stop` is ready; then accepts no more, lets what runs finish (10 s at most), and returns.
pub async fn serve(door: &Door, listeners: Vec<Listener>, stop: impl Future<Output = ()>) {
    let (stopping, stopped) = watch::channel(false);
    let free = Arc::new(Semaphore::new(CONNECTIONS));
    let accepting = listeners.iter().map(|listener| accept_all(listener, door, &free, &stopped));
    let accepting = futures_util::future::join_all(accepting);
    tokio::select! {
        () = stop => {}
        _ = accepting => {}
    }
    drop((listeners, stopped));
    stopping.send_replace(true);
    // Every connection holds a receiver until it ends.
    if tokio::time::timeout(STOP_TIME, stopping.closed()).await.is_err() {
        tracing::warn!(under_way = door.service().activity().under_way(), "stopped before all was done");
    }
}

async fn accept_all(
    listener: &Listener,
    door: &Door,
    free: &Arc<Semaphore>,
    stopped: &watch::Receiver<bool>,
) {
    // The semaphore is never closed.
    while let Ok(place) = Arc::clone(free).acquire_owned().await {
        match accept(listener, door, move || drop(place), stopped.clone()).await {
            Ok(()) => {}
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn accept(
    listener: &Listener,
    door: &Door,
    ended: impl FnOnce() + Send + 'static,
    stopped: watch::Receiver<bool>,
) -> io::Result<()> {
    match listener {
        Listener::Tcp(listener, _) => {
            let (stream, _) = listener.accept().await?;
            // An answer's last packet must not wait for an acknowledgement.
            stream.set_nodelay(true)?;
            connect(door, stream, ended, stopped);
        }
        Listener::Unix(listener, _) => {
            let (stream, _) = listener.accept().await?;
            let peer = stream.peer_cred()?.uid();
            if peer == own_uid() || peer == 0 {
                connect(door, stream, ended, stopped);
            } else {
                tracing::warn!(peer, "a connection of another user was refused");
            }
        }
    }
    Ok(())
}

fn connect<S>(door: &Door, stream: S, ended: impl FnOnce() + Send + 'static, stopped: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let connection = connection::answer(door.clone(), stream, stopped);
    tokio::spawn(async move {
        connection.await;
        ended();
    });
}
