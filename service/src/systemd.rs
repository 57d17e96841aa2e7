//! What systemd asks of a service, where it runs under one: sockets that are handed over (`LISTEN_FDS`), and word that it
//! is ready or stops (`NOTIFY_SOCKET`).

use std::io;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

/// The first descriptor that is handed over.
const FIRST: i32 = 3;

/// The socket that was handed over to this process, if one was.
pub fn handed_over() -> io::Result<Option<OwnedFd>> {
    let variable = |name| std::env::var(name).ok().and_then(|text| text.parse::<i32>().ok());
    let own = variable("LISTEN_PID") == Some(getpid().as_raw_nonzero().get());
    match variable("LISTEN_FDS") {
        Some(1) if own => {}
        None | Some(0) => return Ok(None),
        Some(_) if !own => return Ok(None),
        Some(n) => {
            return Err(io::Error::other(format!(
                "{n} sockets were handed over (LISTEN_FDS); filectxd takes one"
            )));
        }
    }
    // A copy, through the kernel: taking the number itself for a descriptor would be `unsafe`.
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    Ok(Some(pidfd_getfd(own, FIRST, PidfdGetfdFlags::empty())?))
}

/// Tells systemd how the service is, e.g. `READY=1`; nothing where nobody asks.
pub fn tell(state: &str) {
    if let Some(place) = std::env::var_os("NOTIFY_SOCKET")
        && let Err(error) = send(place.as_encoded_bytes(), state)
    {
        tracing::warn!(%error, "systemd could not be told {state}");
    }
}

fn send(place: &[u8], state: &str) -> io::Result<()> {
    let address = match place {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path => SocketAddr::from_pathname(String::from_utf8_lossy(path).as_ref())?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_arrives() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str().as_encoded_bytes(), "READY=1").unwrap();
        let mut heard = [0; 16];
        let n = manager.recv(&mut heard).unwrap();
        assert_eq!(&heard[..n], b"READY=1");
        assert!(send(b"/nowhere/notify", "READY=1").is_err());
    }
}
