//! `filectxd healthcheck`: asks the running service whether it is alive, for containers and scripts that have no other
//! program for it. With the token at hand the service must prove that it knows it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use filectx_openapi::{Health, routes};

use crate::config::{Config, Listen};
use crate::guard::token::{Token, random_hex, runtime_directory};

const PATIENCE: Duration = Duration::from_secs(5);

/// Asks the service that these settings would start.
pub fn check(config: &Config) -> Result<(), String> {
    let token =
        |path: &Path| std::fs::read_to_string(path).ok().and_then(|text| Token::from_text(text.trim()));
    let known = config.token_file.as_deref().and_then(token);
    match config.listen.first().ok_or("it would listen nowhere")? {
        Listen::Tcp(address) if address.port() != 0 => ask_port(*address, known.as_ref()),
        Listen::Unix(path) => ask_socket(path, known.as_ref()),
        // The system chose the port: the token file in the runtime directory is named after it.
        Listen::Tcp(address) => {
            let directory = runtime_directory().map_err(|error| error.to_string())?;
            let found = token_files(&directory);
            let mut asked = found
                .into_iter()
                .map(|(port, path)| ask_port((address.ip(), port).into(), token(&path).as_ref()));
            match asked.find(Result::is_ok) {
                Some(_) => Ok(()),
                None => Err(format!(
                    "no service answers for a token file in {}; name it by --listen or --socket",
                    directory.display()
                )),
            }
        }
    }
}

fn token_files(directory: &Path) -> Vec<(u16, PathBuf)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let port = |path: &Path| path.file_name()?.to_str()?.strip_suffix(".token")?.parse().ok();
    entries.filter_map(|entry| Some((port(&entry.path())?, entry.path()))).collect()
}

fn ask_port(address: SocketAddr, token: Option<&Token>) -> Result<(), String> {
    let connect = || {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    };
    connect()
        .and_then(|stream| ask(stream, token))
        .map_err(|error: io::Error| format!("http://{address}: {error}"))
}

fn ask_socket(path: &Path, token: Option<&Token>) -> Result<(), String> {
    let connect = || {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    };
    connect()
        .and_then(|stream| ask(stream, token))
        .map_err(|error: io::Error| format!("{}: {error}", path.display()))
}

fn ask(mut stream: impl Read + Write, token: Option<&Token>) -> io::Result<()> {
    let nonce = random_hex::<16>()?;
    let path = routes::HEALTHZ;
    write!(stream, "GET {path}?nonce={nonce} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(64 << 10).read_to_string(&mut answer)?;
    let bad = |what: &str| io::Error::other(what.to_owned());
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| bad("this is no HTTP"))?;
    if !head.starts_with("HTTP/1.1 200 ") {
        return Err(bad(head.lines().next().unwrap_or_default()));
    }
    let health: Health = serde_json::from_str(body)?;
    if health.status != "ok" {
        return Err(bad("it does not say that it is well"));
    }
    match token {
        Some(token) if health.proof != Some(token.proof(&nonce)) => {
            Err(bad("another service answers: it does not know the token"))
        }
        _ => Ok(()),
    }
}
