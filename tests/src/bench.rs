//! Measuring: medians of wall and CPU time, always as a ratio against something measured in the same run.

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

/// User and system CPU time that the process `pid` has taken, all its threads included, in nanoseconds where the
/// kernel tells (`schedstat` of each thread that still lives, else ticks).
pub fn cpu_of(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process lives");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    let ticks = |i: usize| fields[i].parse::<u64>().expect("a number");
    // 100 ticks a second on every Linux that we know.
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
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
    eprintln!("{what}: {ours:?}; {against}: {theirs:?}; ratio {ratio:.2} ({aim})");
}
