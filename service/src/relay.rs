//! `filectxd relay`: carries stdin and stdout to a service of this host, where SSH may run commands but forwards nothing.
//! It knows nothing of what it carries.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::thread;

use crate::config::Listen;

/// Carries until the service ends the connection.
pub fn carry(listen: &[Listen]) -> io::Result<()> {
    let nowhere = || io::Error::other("name the service by --listen ADDRESS:PORT or --socket PATH");
    match listen.last().ok_or_else(nowhere)? {
        Listen::Tcp(address) if address.port() == 0 => Err(nowhere()),
        Listen::Tcp(address) => {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            let other = stream.try_clone()?;
            both_ways(stream, other, |stream| stream.shutdown(Shutdown::Write))
        }
        Listen::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            let other = stream.try_clone()?;
            both_ways(stream, other, |stream| stream.shutdown(Shutdown::Write))
        }
    }
}

fn both_ways<S>(
    mut to: S,
    mut from: S,
    close: impl Fn(&S) -> io::Result<()> + Send + 'static,
) -> io::Result<()>
where
    S: Read + Write + Send + 'static,
{
    // Not `io::stdout()`: it would hold back what has no line end.
    let (mut stdin, mut stdout) = (own(io::stdin().as_fd())?, own(io::stdout().as_fd())?);
    thread::spawn(move || {
        let _ = pump(&mut stdin, &mut to);
        // The caller asks for no more; what the service still says is carried.
        let _ = close(&to);
    });
    pump(&mut from, &mut stdout)
}

fn own(fd: BorrowedFd<'_>) -> io::Result<File> {
    Ok(File::from(fd.try_clone_to_owned()?))
}

fn pump(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => to.write_all(&buffer[..read])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
