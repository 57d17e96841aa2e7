//! A scripted service for tests: it says what the test wants it to say, and remembers everything that it was sent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::{Client, Target, TimeLimits, Token};

pub(crate) const TOKEN: &str = "the-token-of-the-stub";

/// A request body of this length is not read.
pub(crate) const STUCK_BYTES: usize = 16 << 20;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) connection: usize,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    /// The right answer to a question for the proof.
    pub(crate) fn proof(&self) -> Reply {
        let nonce = self.path().trim_start_matches("/healthz?nonce=");
        let mut mac = Hmac::<Sha256>::new_from_slice(TOKEN.as_bytes()).unwrap();
        mac.update(nonce.as_bytes());
        let proof: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        json(200, &format!(r#"{{"status":"ok","proof":"{proof}"}}"#))
    }
}

/// What is said to a request.
pub(crate) enum Reply {
    /// These bytes; the connection lives on.
    Say(Vec<u8>),
    /// These bytes, and then nothing, with the connection open.
    SayAndHang(Vec<u8>),
    /// These bytes, and the connection is closed.
    SayAndClose(Vec<u8>),
}

/// A whole answer.
pub(crate) fn answer(status: u16, content_type: &str, body: &[u8]) -> Reply {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status} S\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n");
    Reply::Say([head.as_bytes(), body].concat())
}

pub(crate) fn json(status: u16, body: &str) -> Reply {
    let problem = if status < 400 { "application/json" } else { "application/problem+json" };
    answer(status, problem, body.as_bytes())
}

pub(crate) fn close() -> Reply {
    Reply::SayAndClose(Vec::new())
}

pub(crate) fn hang() -> Reply {
    Reply::SayAndHang(Vec::new())
}

pub(crate) fn info(instance: &str, features: &str) -> Reply {
    let body = format!(
        r#"{{"service":"filectxd","version":"9","api":"v1","host_id":"h","instance_id":"{instance}","host_name":"n",
        "user":"u","home":"/","os":"linux","arch":"x","read_only":false,"roots":[],"limits":{{"deadline_ms":0}},
        "features":[{features}],"younger_than_this_client":true}}"#
    );
    json(200, &body)
}

/// The stub. It lives as long as the test.
pub(crate) struct Stub {
    pub(crate) target: Target,
    seen: Arc<Mutex<Vec<Seen>>>,
    closed: Receiver<usize>,
}

type Script = dyn Fn(&Seen) -> Reply + Send + Sync;

impl Stub {
    /// A stub on a port.
    pub(crate) fn new(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let target = Target::from_url(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        Self::with(target, script, move || listener.accept().unwrap().0)
    }

    /// A stub on a Unix socket.
    pub(crate) fn on_socket(path: &Path, script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        Self::with(Target::Socket(path.to_owned()), script, move || listener.accept().unwrap().0)
    }

    fn with<C: Send + 'static>(
        target: Target,
        script: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
        accept: impl Fn() -> C + Send + 'static,
    ) -> Self
    where
        for<'a> &'a C: Read + Write,
    {
        let (seen, script): (Arc<Mutex<Vec<Seen>>>, Arc<Script>) = (Arc::default(), Arc::new(script));
        let (on_close, closed) = channel();
        let all = Arc::clone(&seen);
        std::thread::spawn(move || {
            for connection in 0.. {
                let stream = accept();
                let (seen, script, on_close) = (Arc::clone(&all), Arc::clone(&script), on_close.clone());
                std::thread::spawn(move || serve(connection, &stream, &seen, &*script, &on_close));
            }
        });
        Self { target, seen, closed }
    }

    /// Everything that was asked, but for proofs.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.all_seen().into_iter().filter(|seen| !seen.path().starts_with("/healthz")).collect()
    }

    pub(crate) fn all_seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Waits until a client has closed a connection that hangs.
    pub(crate) fn wait_for_close(&self) -> usize {
        self.closed.recv_timeout(Duration::from_secs(20)).unwrap()
    }

    /// A client with the token, whose time limits a busy machine does not reach.
    pub(crate) fn client(&self) -> Client {
        self.client_with(Duration::from_secs(60))
    }

    /// A client whose time limits a test can wait for.
    pub(crate) fn impatient_client(&self) -> Client {
        self.client_with(Duration::from_millis(500))
    }

    fn client_with(&self, limit: Duration) -> Client {
        let limits = TimeLimits { connect: Duration::from_secs(60), answer_grace: limit, silence: limit };
        let token = Token::new(TOKEN).unwrap();
        Client::builder(self.target.clone()).token(token).time_limits(limits).build().unwrap()
    }
}

fn serve<C>(connection: usize, stream: &C, seen: &Mutex<Vec<Seen>>, script: &Script, closed: &Sender<usize>)
where
    for<'a> &'a C: Read + Write,
{
    let mut reader = BufReader::new(stream);
    while let Some(request) = receive(connection, &mut reader) {
        seen.lock().unwrap().push(request.clone());
        let mut writer = stream;
        match script(&request) {
            Reply::Say(bytes) => writer.write_all(&bytes).unwrap_or_default(),
            Reply::SayAndClose(bytes) => {
                writer.write_all(&bytes).unwrap_or_default();
                return;
            }
            Reply::SayAndHang(bytes) => {
                writer.write_all(&bytes).unwrap_or_default();
                // The client hangs up sooner or later. What it still wants to send stays where it is.
                if seen_all(&request) {
                    while reader.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {}
                } else {
                    std::thread::park();
                }
                let _ = closed.send(connection);
                return;
            }
        }
    }
}

fn seen_all(request: &Seen) -> bool {
    request.header("content-length").is_none_or(|length| length == request.body.len().to_string())
}

fn receive(connection: usize, reader: &mut impl BufRead) -> Option<Seen> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut seen = Seen { connection, head, body: Vec::new() };
    let length: usize = seen.header("content-length").unwrap_or("0").parse().ok()?;
    // A body this long stays where it is: its sender gets stuck.
    if length < STUCK_BYTES {
        seen.body = vec![0; length];
        reader.read_exact(&mut seen.body).ok()?;
    }
    Some(seen)
}
