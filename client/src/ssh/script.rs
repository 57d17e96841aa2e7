//! A step on the host: a POSIX `sh` script, fed on standard input, framed by random markers, within a time limit. What the
//! user's start-up files say before it is noise: ignored when all goes well, shown when not.

use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout};

use super::Progress;
use super::command::{Master, said};
use super::options::HostOptions;
use crate::time::until;
use crate::token::random_hex;

/// What every script begins with: how it answers and fails, and where things are on the host.
const PRELUDE: &str = include_str!("prelude.sh");
/// More than this is not kept of what a host says.
const MOST: usize = 1 << 20;
/// How long the end of a command may take whose answer is there.
const END: Duration = Duration::from_secs(2);

/// A script and its variables.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    variables: String,
    body: &'static str,
}

impl Script {
    pub(crate) fn new(body: &'static str) -> Self {
        Self { variables: String::new(), body }
    }

    /// With this variable set.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push_str(&format!("{name}={}\n", quoted(value)));
        self
    }

    /// With these arguments set.
    pub(crate) fn arguments(mut self, arguments: &[String]) -> Self {
        let arguments: Vec<_> = arguments.iter().map(|argument| quoted(argument)).collect();
        self.variables.push_str(&format!("set -- {}\n", arguments.join(" ")));
        self
    }

    fn text(&self, marker: &str) -> String {
        let Self { variables, body } = self;
        format!(
            ": {marker}\nprintf '\\n%s\\n' begin-{marker}\n(\n{variables}{PRELUDE}{body})\nprintf '\\n%s %s\\n' end-{marker} $?\n"
        )
    }
}

/// What a script answered: the lines `key value`.
#[derive(Debug)]
pub(crate) struct Answer(Vec<(String, String)>);

impl Answer {
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.lines().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) struct ScriptFailure {
    /// The script's own word for it, where it ran: it is not the connection that is broken.
    pub(crate) reason: Option<String>,
    pub(crate) detail: String,
    pub(crate) said: String,
}

/// What goes to the script behind its text.
#[derive(Clone, Copy)]
pub(crate) struct Upload<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) progress: &'a (dyn Fn(Progress) + Send + Sync),
}

impl HostOptions {
    /// Runs the script; it may take `limit`, and with an upload as long as that goes on.
    pub(crate) async fn run(
        &self,
        master: &Master,
        script: &Script,
        upload: Option<Upload<'_>>,
        limit: Duration,
    ) -> Result<Answer, ScriptFailure> {
        let (mut running, marker) = self.start_script(master, script).await.map_err(|error| {
            ScriptFailure { reason: None, detail: format!("ssh cannot be run: {error}"), said: String::new() }
        })?;
        let mut seen = Seen::default();
        let mut stderr = running.child.stderr.take();
        let mut noise = Vec::new();
        let end_mark = format!("\nend-{marker} ");
        let outcome = {
            let stdin = running.stdin.take();
            let mut feeding = std::pin::pin!(feed(stdin, upload, limit));
            let mut noising = std::pin::pin!(collect(&mut stderr, &mut noise));
            let (mut fed, mut quiet) = (false, false);
            let mut end = Instant::now() + limit;
            loop {
                tokio::select! {
                    result = &mut feeding, if !fed => {
                        fed = true;
                        // What a script says matters more than that it did not take all.
                        if result.is_err_and(|stalled| stalled) {
                            break Err(format!("the host took nothing more within {} s", limit.as_secs()));
                        }
                        end = Instant::now() + limit;
                    }
                    () = &mut noising, if !quiet => quiet = true,
                    more = until(end, seen.more(&mut running.stdout)), if fed || !seen.has(&end_mark) => match more {
                        Some(true) if seen.ended(&end_mark) => break Ok(()),
                        Some(true) => {}
                        Some(false) => break Ok(()),
                        None if !fed => end = Instant::now() + limit,
                        None => break Err(format!("no answer within {} s", limit.as_secs())),
                    },
                }
            }
        };
        // Its end frees the place that the host has for it.
        if outcome.is_ok() {
            let _ = until(Instant::now() + END, running.child.wait()).await;
        }
        let whole = String::from_utf8_lossy(&seen.0).into_owned();
        let begin_mark = format!("\nbegin-{marker}\n");
        let (before, answer) = match whole.split_once(&begin_mark) {
            Some((before, rest)) => (before, rest.split_once(&end_mark)),
            None => (whole.as_str(), None),
        };
        if let Some(stderr) = stderr.as_mut() {
            let _ = until(Instant::now() + Duration::from_millis(100), stderr.read_to_end(&mut noise)).await;
        }
        let said = said(&[before.as_bytes(), b"\n", &noise].concat());
        let Some((answer, status)) = answer else {
            let detail = match outcome {
                Err(detail) if whole.contains(&begin_mark) => detail,
                Err(detail) => format!("{detail}: the login shell did not come to run `sh`"),
                Ok(()) if whole.contains(&begin_mark) => "the script broke off".to_owned(),
                Ok(()) => "the login shell ended before it ran `sh`".to_owned(),
            };
            return Err(ScriptFailure { reason: None, detail, said });
        };
        let lines: Vec<_> = answer.lines().filter_map(|line| line.split_once(' ')).collect();
        if let Some((_, failed)) = lines.iter().find(|(key, _)| *key == "failed") {
            let (reason, detail) = failed.split_once(' ').unwrap_or((failed, ""));
            return Err(ScriptFailure {
                reason: Some(reason.to_owned()),
                detail: detail.trim().to_owned(),
                said,
            });
        }
        if status.trim() != "0" {
            let detail = format!("the script ended with status {}", status.trim());
            return Err(ScriptFailure { reason: Some("status".into()), detail, said });
        }
        Ok(Answer(lines.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()))
    }

    /// Starts `sh` on the host with this script; what follows on standard input is the script's.
    pub(crate) async fn start_script(
        &self,
        master: &Master,
        script: &Script,
    ) -> std::io::Result<(Running, String)> {
        let marker = random_hex(16)?;
        let text = script.text(&marker);
        // Byte by byte, as `sh` itself may read further ahead than its script; and only when nobody read before it.
        let command = format!(
            "exec sh -c 's=$(dd bs=1 count={} 2>/dev/null); case $s in \": {marker}\"*) eval \"$s\";; esac'",
            text.len()
        );
        let mut ssh = self.over(master);
        ssh.arg("-T").arg("--").arg(&self.destination).arg(command);
        ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = ssh.spawn()?;
        let mut stdin = child.stdin.take().ok_or_else(|| std::io::Error::other("no stdin"))?;
        let stdout = child.stdout.take().ok_or_else(|| std::io::Error::other("no stdout"))?;
        // The text fits into the pipe. If ssh is gone already, its end says why.
        let _ = stdin.write_all(text.as_bytes()).await;
        Ok((Running { child, stdin: Some(stdin), stdout }, marker))
    }
}

/// A script under way.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: ChildStdout,
}

/// Sends what is to be sent, if anything, and closes: a start-up file that reads must not wait for more. Fails with true when the host takes nothing for `silence`.
async fn feed(stdin: Option<ChildStdin>, upload: Option<Upload<'_>>, silence: Duration) -> Result<(), bool> {
    let (Some(mut stdin), Some(upload)) = (stdin, upload) else { return Ok(()) };
    let total = upload.bytes.len() as u64;
    let mut done = 0;
    for piece in upload.bytes.chunks(64 << 10) {
        let written = until(Instant::now() + silence, stdin.write_all(piece)).await;
        written.ok_or(true)?.map_err(|_| false)?;
        done += piece.len() as u64;
        (upload.progress)(Progress::Upload { done, total });
    }
    Ok(())
}

async fn collect(stderr: &mut Option<tokio::process::ChildStderr>, noise: &mut Vec<u8>) {
    let Some(stderr) = stderr else { return };
    let mut piece = vec![0; 4096];
    while let Ok(read @ 1..) = stderr.read(&mut piece).await {
        if noise.len() < MOST {
            noise.extend_from_slice(&piece[..read]);
        }
    }
}

/// What came on standard output.
#[derive(Debug, Default)]
struct Seen(Vec<u8>);

impl Seen {
    /// Whether more came.
    async fn more(&mut self, stdout: &mut ChildStdout) -> bool {
        let mut piece = vec![0; 8192];
        match stdout.read(&mut piece).await {
            Ok(read @ 1..) => {
                // Noise without end: its beginning is enough, and the end must still be found.
                if self.0.len() > MOST {
                    self.0.drain(..MOST / 2);
                }
                self.0.extend_from_slice(&piece[..read]);
                true
            }
            _ => false,
        }
    }

    fn has(&self, mark: &str) -> bool {
        memchr::memmem::find(&self.0, mark.as_bytes()).is_some()
    }

    /// Whether the mark and its line are there.
    fn ended(&self, mark: &str) -> bool {
        memchr::memmem::find(&self.0, mark.as_bytes())
            .is_some_and(|at| self.0[at + mark.len()..].contains(&b'\n'))
    }
}

/// A text as a shell takes it.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
