//! Measuring: medians of wall time and sums of CPU time, always as a ratio against something measured in the same run.
//! Criterion times code in its own process; these figures are of other processes, so they are taken here.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The median wall time of `runs` runs of `work`, after one run that warms up.
pub fn median(runs: usize, mut work: impl FnMut()) -> Duration {
    work();
    let mut times: Vec<Duration> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

/// User and system CPU time that the process `pid` has taken, in steps of the kernel's tick (10 ms).
pub fn cpu_of(pid: u32) -> Duration {
    cpu_fields(&pid.to_string(), 11, 2)
}

/// The part of it that is not the kernel's: without the reading of files and the sending of answers themselves.
pub fn user_cpu_of(pid: u32) -> Duration {
    cpu_fields(&pid.to_string(), 11, 1)
}

/// The sum of neighbouring fields of a process's `stat`, counted behind its name.
fn cpu_fields(process: &str, first: usize, count: usize) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("the process lives");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    let ticks = |i: usize| fields[i].parse::<u64>().expect("a number");
    Duration::from_millis((first..first + count).map(ticks).sum::<u64>() * 10)
}

/// User and system CPU time that this process's children have taken that ended, in steps of the kernel's tick (10 ms).
pub fn cpu_of_children() -> Duration {
    cpu_fields("self", 13, 2)
}

/// The CPU time that the processes `pids` take while `work` runs.
pub fn cpu_while(pids: &[u32], work: impl FnOnce()) -> Duration {
    let all = || pids.iter().map(|&pid| cpu_of(pid)).sum::<Duration>();
    let before = all();
    work();
    all() - before
}

/// The peak memory of the process `pid` in KiB.
pub fn peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process lives");
    let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("VmHWM");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
}

/// One line of a report: what was measured, against what, the ratio, and the aim.
pub fn report(what: &str, ours: Duration, against: &str, theirs: Duration, aim: &str) {
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    eprintln!("{what}: {ours:.1?}; {against}: {theirs:.1?}; ratio {ratio:.2} (aim: {aim})");
}

/// Keeps the processes `pids` on the machine's first processor and this one on its last, so that who wakes whom costs
/// every server the same, however the scheduler feels. Until the result is dropped.
pub fn apart(pids: &[u32]) -> Apart {
    let last = std::thread::available_parallelism().map_or(0, |count| count.get() - 1);
    place(&last.to_string(), std::process::id());
    pids.iter().for_each(|&pid| place("0", pid));
    Apart { last }
}

/// This process stays on one processor as long as this lives.
#[derive(Debug)]
pub struct Apart {
    last: usize,
}

impl Drop for Apart {
    fn drop(&mut self) {
        place(&format!("0-{}", self.last), std::process::id());
    }
}

fn place(processors: &str, pid: u32) {
    let mut taskset = Command::new("taskset");
    taskset.args(["-a", "-c", "-p", processors, &pid.to_string()]).stdout(Stdio::null());
    assert!(taskset.status().is_ok_and(|status| status.success()), "taskset -c -p {processors} {pid}");
}

/// The bytes of a request with a JSON body.
pub fn post(token: &str, route: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {route} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A kept-alive HTTP connection that spends as little as it can: the same load for every server. It never sleeps while it
/// waits, so that no server pays for waking it.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<Wakeful>,
    body: Vec<u8>,
}

/// A stream whose reader and writer ask again and again instead of sleeping.
#[derive(Debug)]
struct Wakeful(TcpStream);

/// Asks until it is not told to come back later.
fn awake<T>(mut ask: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match ask() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::hint::spin_loop(),
            other => return other,
        }
    }
}

impl Read for Wakeful {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        awake(|| self.0.read(buffer))
    }
}

impl Write for Wakeful {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        awake(|| self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Connection {
    /// Connects to `host:port`.
    pub fn new(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("a server listens");
        stream.set_nodelay(true).expect("TCP_NODELAY");
        stream.set_nonblocking(true).expect("reads that do not sleep");
        Self { stream: BufReader::with_capacity(64 << 10, Wakeful(stream)), body: Vec::new() }
    }

    /// Sends `request` as it is; the answer's body.
    pub fn ask(&mut self, request: &[u8]) -> &[u8] {
        self.stream.get_mut().write_all(request).expect("the server takes it");
        assert!(self.line().contains(" 200 "), "it is refused");
        let mut length = None;
        loop {
            let line = self.line();
            if line == "\r\n" {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = Some(value.trim().parse().expect("a length"));
            }
        }
        self.body.clear();
        match length {
            Some(length) => self.take(length),
            // In chunks, the last of which is empty.
            None => loop {
                let chunk = usize::from_str_radix(self.line().trim(), 16).expect("a chunk's length");
                self.take(chunk);
                self.line();
                if chunk == 0 {
                    break;
                }
            },
        }
        &self.body
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("the server answers");
        line
    }

    fn take(&mut self, length: usize) {
        let from = self.body.len();
        self.body.resize(from + length, 0);
        self.stream.read_exact(&mut self.body[from..]).expect("a whole body");
    }
}
