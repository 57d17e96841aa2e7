//! Where this side keeps what belongs to its ways to hosts: control sockets, local ends of forwards, and for the life of a
//! forward its address and token (0600), so that the next command goes on where the last one was.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use filectx_openapi::InfoResponse;
use serde::{Deserialize, Serialize};

use super::command::Master;
use super::forward::Forward;
use super::start::Service;
use crate::runtime;

/// The longest name of a socket.
const SOCKET_NAME: usize = if cfg!(target_os = "linux") { 107 } else { 103 };
/// The longest directory whose sockets still have such a name: less what `ssh` adds for a moment, the socket's name, the
/// directory of a process, and `/ssh`.
const LONGEST: usize = SOCKET_NAME - 17 - 19 - 9 - 4;

/// A directory of ways.
#[derive(Clone, Debug)]
pub struct Place {
    directory: PathBuf,
    /// Whether the directory goes with its owner.
    private: bool,
}

/// A way that was made, for whoever comes next.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Saved {
    pub(crate) destination: String,
    pub(crate) master: Master,
    pub(crate) forward: Forward,
    pub(crate) service: Service,
    pub(crate) info: InfoResponse,
}

impl Place {
    /// The place that the commands of this user share.
    pub fn shared() -> io::Result<Self> {
        let xdg = std::env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty());
        let named = Some(runtime::directory(xdg)).filter(|path| path.as_os_str().len() <= LONGEST);
        let directory = named.unwrap_or_else(|| runtime::directory(None));
        let directory = private(directory).and_then(|directory| private(directory.join("ssh")))?;
        Ok(Self { directory, private: false })
    }

    /// A place of this process alone; what is in it ends with it.
    pub fn of_process() -> io::Result<Self> {
        Self::of_process_below(&Self::shared()?.directory)
    }

    /// The same, below a directory of this user alone.
    pub fn of_process_below(directory: &Path) -> io::Result<Self> {
        let name = crate::token::random_hex(4)?;
        Ok(Self { directory: private(directory.join(name))?, private: true })
    }

    /// Whether it is this process's alone.
    pub(crate) fn is_private(&self) -> bool {
        self.private
    }

    /// Removes the directory, where it is this process's alone.
    pub(crate) fn remove(&self) {
        if self.private {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }

    /// The control socket of our own connection to this destination.
    pub(crate) fn control_socket(&self, key: &str) -> PathBuf {
        self.file(key, "m")
    }

    /// A new name for the local end of a forward.
    pub(crate) fn forward_socket(&self) -> io::Result<PathBuf> {
        Ok(self.file(&crate::token::random_hex(6)?, "s"))
    }

    fn file(&self, key: &str, kind: &str) -> PathBuf {
        self.directory.join(format!("{key}.{kind}"))
    }

    pub(crate) fn load(&self, key: &str) -> Option<Saved> {
        serde_json::from_slice(&fs::read(self.file(key, "json")).ok()?).ok()
    }

    pub(crate) fn save(&self, key: &str, saved: &Saved) -> io::Result<()> {
        let new = self.file(key, "new");
        let _ = fs::remove_file(&new);
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec(saved)?)?;
        fs::rename(new, self.file(key, "json"))
    }

    pub(crate) fn forget(&self, key: &str) {
        let _ = fs::remove_file(self.file(key, "json"));
    }

    /// All ways that were made, with their keys.
    pub(crate) fn all(&self) -> Vec<(String, Saved)> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let keys = names.filter_map(|name| name.strip_suffix(".json").map(str::to_owned));
        let mut all: Vec<_> = keys.filter_map(|key| Some((key.clone(), self.load(&key)?))).collect();
        all.sort_by(|one, other| one.1.destination.cmp(&other.1.destination));
        all
    }

    /// Waits until nobody else of this user makes or ends this way.
    pub(crate) async fn lock(&self, key: &str) -> io::Result<File> {
        let file = File::options().create(true).append(true).mode(0o600).open(self.file(key, "lock"))?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                // Seconds at most are waited for; a signal between processes would be more than that is worth.
                Err(TryLockError::WouldBlock) => tokio::time::sleep(Duration::from_millis(20)).await,
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

fn private(directory: PathBuf) -> io::Result<PathBuf> {
    if runtime::is_private(&directory) {
        return Ok(directory);
    }
    let problem = format!("{} is no directory of this user alone (0700)", directory.display());
    Err(io::Error::other(problem))
}
