//! The relay: where a host forwards nothing, each HTTP connection becomes a command over SSH, `filectxd relay`, whose
//! standard input and output lead to the service. Its local end is a Unix socket of this process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

use super::command::Master;
use super::options::HostOptions;
use super::script::Script;
use super::start::Service;

const BODY: &str = r#"exec "$program" --listen "127.0.0.1:$port" relay
"#;
/// More noise than this before the relay begins is no relay.
const NOISE: usize = 1 << 20;

/// A local end, open as long as this lives.
#[derive(Debug)]
pub(crate) struct Relay {
    accepting: JoinHandle<()>,
    path: PathBuf,
}

impl Relay {
    pub(crate) fn listen(
        options: &HostOptions,
        master: &Master,
        service: &Service,
        program: &str,
        path: &Path,
    ) -> std::io::Result<Self> {
        // The directory is this user's alone.
        let listener = UnixListener::bind(path)?;
        let script = options.script(BODY).with("program", program).with("port", &service.port.to_string());
        let shared = Arc::new((options.clone(), master.clone(), script));
        let accepting = tokio::spawn(async move {
            // Connections end with the local end: their tasks are its own.
            let mut connections = tokio::task::JoinSet::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => {
                        let Ok((stream, _)) = accepted else { return };
                        let shared = Arc::clone(&shared);
                        connections.spawn(async move {
                            let (options, master, script) = &*shared;
                            let _ = carry(options, master, script, stream).await;
                        });
                    }
                    Some(_) = connections.join_next() => {}
                }
            }
        });
        Ok(Self { accepting, path: path.to_owned() })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn carry(
    options: &HostOptions,
    master: &Master,
    script: &Script,
    stream: UnixStream,
) -> std::io::Result<()> {
    let (mut running, marker) = options.start_script(master, script).await?;
    let stdin = running.stdin.take();
    let mut stdin = stdin.ok_or_else(|| std::io::Error::other("no stdin"))?;
    let (mut from, mut to) = stream.into_split();
    // What is asked may go at once: the script reads no further than its own end.
    let asking = async {
        let done = tokio::io::copy(&mut from, &mut stdin).await;
        drop(stdin);
        done
    };
    let answering = async {
        let rest = behind_noise(&mut running.stdout, &marker).await?;
        to.write_all(&rest).await?;
        tokio::io::copy(&mut running.stdout, &mut to).await?;
        to.shutdown().await
    };
    let silent = async {
        // What the host says besides goes nowhere, but must go.
        if let Some(stderr) = running.child.stderr.as_mut() {
            let _ = tokio::io::copy(stderr, &mut tokio::io::sink()).await;
        }
        std::future::pending::<()>().await;
    };
    let mut answering = std::pin::pin!(answering);
    tokio::select! {
        done = &mut answering => return done,
        _ = asking => {}
        () = silent => {}
    }
    answering.await
}

/// Reads until the script begins; what came behind that already.
async fn behind_noise(
    stdout: &mut (impl tokio::io::AsyncRead + Unpin),
    marker: &str,
) -> std::io::Result<Vec<u8>> {
    let mark = format!("\nbegin-{marker}\n");
    let mut seen = Vec::new();
    loop {
        if let Some(at) = memchr::memmem::find(&seen, mark.as_bytes()) {
            return Ok(seen.split_off(at + mark.len()));
        }
        if stdout.read_buf(&mut seen).await? == 0 || seen.len() > NOISE {
            return Err(std::io::Error::other("the relay did not begin"));
        }
    }
}
