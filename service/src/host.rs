//! Who this is: host, user and run, found without the C library's look-ups, as the binary is static.

use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::guard::token::{hex, own_uid, random_hex};

/// The host and the run of the service on it.
#[derive(Clone, Debug)]
pub struct Host {
    /// Names the host; stable across restarts.
    pub host_id: String,
    /// Names this run.
    pub instance_id: String,
    /// The host's own name.
    pub host_name: String,
    /// The user as whom the service runs.
    pub user: String,
}

impl Host {
    /// This host, and a new run.
    pub fn here() -> io::Result<Self> {
        let host_name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Ok(Self {
            host_id: host_id(Path::new("/"), &host_name),
            instance_id: random_hex::<16>()?,
            host_name,
            user: user(Path::new("/etc/passwd")),
        })
    }
}

/// A hash of the machine's id (systemd asks not to show the id itself); without one, of the host's name.
fn host_id(root: &Path, host_name: &str) -> String {
    let places = ["etc/machine-id", "var/lib/dbus/machine-id"];
    let texts = places.iter().filter_map(|place| std::fs::read_to_string(root.join(place)).ok());
    let own = texts.map(|text| text.trim().to_owned()).find(|text| text.len() >= 32);
    let named = own.unwrap_or_else(|| format!("host name {host_name}"));
    hex(&Sha256::digest(format!("filectx host {named}"))[..16])
}

/// The name of the service's user: what the list of users says, else the environment, else the number.
fn user(passwd: &Path) -> String {
    let uid = own_uid().to_string();
    let users = std::fs::read_to_string(passwd).unwrap_or_default();
    let own = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    });
    let named = own.or_else(|| std::env::var("USER").ok()).filter(|name| !name.is_empty());
    named.unwrap_or(uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_the_same_at_each_start_and_the_run_is_not() {
        let (one, two) = (Host::here().unwrap(), Host::here().unwrap());
        assert_eq!(one.host_id, two.host_id);
        assert_ne!(one.instance_id, two.instance_id);
        assert!(!one.host_name.is_empty() && !one.user.is_empty());
    }

    #[test]
    fn the_machine_id_names_the_host_and_is_not_shown() {
        let root = tempfile::tempdir().unwrap();
        let by_name = host_id(root.path(), "one");
        assert_eq!(by_name, host_id(root.path(), "one"));
        assert_ne!(by_name, host_id(root.path(), "two"));
        std::fs::create_dir(root.path().join("etc")).unwrap();
        std::fs::write(root.path().join("etc/machine-id"), "uninitialized\n").unwrap();
        assert_eq!(by_name, host_id(root.path(), "one"));
        let id = "0123456789abcdef0123456789abcdef";
        std::fs::write(root.path().join("etc/machine-id"), format!("{id}\n")).unwrap();
        let by_id = host_id(root.path(), "one");
        assert!(by_id != by_name && !by_id.contains(id));
        assert_eq!(by_id, host_id(root.path(), "renamed"));
    }

    #[test]
    fn a_user_without_an_entry_has_a_name_too() {
        assert!(!user(Path::new("/nowhere")).is_empty());
    }
}
