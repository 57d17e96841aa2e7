//! Measuring: medians of wall time and sums of CPU time, always as a ratio against something measured in the same run.
//! Criterion times code in its own process; these figures are of other processes, so they are taken here.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
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
    ticks(&pid.to_string(), 11)
}

/// User and system CPU time that this process's children have taken which have ended.
pub fn cpu_of_children() -> Duration {
    ticks("self", 13)
}

/// Two fields of a process's figures, counted from behind its name.
fn ticks(process: &str, first: usize) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("the process lives");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    let ticks = |i: usize| fields[i].parse::<u64>().expect("a number");
    Duration::from_millis((ticks(first) + ticks(first + 1)) * 10)
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

/// A kept-alive HTTP connection that spends as little as it can: the same load for every server.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
    body: Vec<u8>,
}

impl Connection {
    /// Connects to `host:port`.
    pub fn new(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("a server listens");
        stream.set_nodelay(true).expect("TCP_NODELAY");
        Self { stream: BufReader::with_capacity(64 << 10, stream), body: Vec::new() }
    }

    /// Sends `request` as it is; the answer's body.
    pub fn ask(&mut self, request: &[u8]) -> &[u8] {
        self.stream.get_mut().write_all(request).expect("the server takes it");
        let (mut line, mut length, mut first) = (String::new(), 0, true);
        loop {
            line.clear();
            self.stream.read_line(&mut line).expect("the server answers");
            assert!(!first || line.contains(" 200 "), "{line}");
            first = false;
            if line == "\r\n" {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().expect("a length");
            }
        }
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body).expect("a whole body");
        &self.body
    }
}
