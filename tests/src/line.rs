//! A line between the agent and a host: a TCP relay that adds a delay each way, stands still, and cuts. It stands for the
//! network, as not every kernel can delay by itself.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A line to one port. It lives as long as the test.
#[derive(Clone, Debug)]
pub struct Line {
    /// Where it begins.
    pub port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    streams: Mutex<Vec<TcpStream>>,
    standing: Mutex<bool>,
    moved: Condvar,
}

impl Line {
    /// A line to this port of 127.0.0.1 that delays everything by `delay`, each way.
    pub fn to(port: u16, delay: Duration) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let line = Self { port: listener.local_addr().expect("an address").port(), shared: Arc::default() };
        let shared = Arc::clone(&line.shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(near), Ok(far)) = (stream, TcpStream::connect((Ipv4Addr::LOCALHOST, port))) else {
                    continue;
                };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    from.set_nodelay(true).expect("TCP_NODELAY");
                    carry(clone(from), clone(to), delay, &shared);
                }
                shared.streams.lock().expect("a lock").extend([near, far]);
            }
        });
        line
    }

    /// Cuts every connection that is there.
    pub fn cut(&self) {
        for stream in self.shared.streams.lock().expect("a lock").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Lets nothing through any more, or all again; both ends think that they are connected.
    pub fn stand_still(&self, standing: bool) {
        *self.shared.standing.lock().expect("a lock") = standing;
        self.shared.moved.notify_all();
    }
}

fn clone(stream: &TcpStream) -> TcpStream {
    stream.try_clone().expect("a second hand")
}

fn carry(mut from: TcpStream, to: TcpStream, delay: Duration, shared: &Arc<Shared>) {
    let (send, due) = channel::<(Instant, Vec<u8>)>();
    let shared = Arc::clone(shared);
    thread::spawn(move || deliver(&due, to, &shared));
    thread::spawn(move || {
        let mut piece = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from.read(&mut piece) {
            if send.send((Instant::now() + delay, piece[..read].to_vec())).is_err() {
                return;
            }
        }
    });
}

fn deliver(due: &Receiver<(Instant, Vec<u8>)>, mut to: TcpStream, shared: &Shared) {
    while let Ok((at, piece)) = due.recv() {
        while let Some(left) = at.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            thread::park_timeout(left);
        }
        let standing = shared.standing.lock().expect("a lock");
        drop(shared.moved.wait_while(standing, |standing| *standing).expect("a lock"));
        if to.write_all(&piece).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
