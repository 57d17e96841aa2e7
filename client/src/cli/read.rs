//! `filectx read`: a batch of files, as numbered lines, as the contract's response, or one file's exact bytes.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueEnum;
use filectx_client::render::{Budget, GoOn, ReadView, read_texts};
use filectx_openapi::{
    As, BinaryMode, ByteRange, LineBreaks, ReadFileContextRequest, ReadFileContextResponse,
};

use super::Context;
use super::batch::{Batch, Chosen};
use super::connection::Connection;
use super::exit::{Exit, Failure};
use super::paths::Cwd;
use super::picture::Pictures;
use super::quote::quoted;
use super::suffix::written;
use super::{progress, raw, save};

/// Reads files: numbered lines, with what stopped a window and the command that goes on
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Files, each with lines if wanted: PATH:10-20,40- or PATH:LINE or PATH:LINE:COL. A path that exists with its
    /// colons wins.
    #[arg(required = true, value_name = "PATH[:LINES]")]
    pub(crate) paths: Vec<OsString>,
    /// Prints the contract's response
    #[arg(long)]
    pub(crate) json: bool,
    /// Prints one file's exact bytes: no numbers, no limits
    #[arg(long, conflicts_with_all = ["json", "limit", "max_chars"])]
    pub(crate) raw: bool,
    /// What relative paths are relative to (without a service: this directory)
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// Most lines of each file
    #[arg(long, value_name = "LINES", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    /// Most characters shown of each file [default: 16000; of all files: 64000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_chars: Option<u64>,
    /// Writes binaries, and images made fit, to files in this directory; none that is there is overwritten
    #[arg(long, value_name = "DIR", conflicts_with_all = ["raw", "binary"])]
    pub(crate) save_dir: Option<PathBuf>,
    /// Bytes instead of lines: OFFSET or OFFSET:LENGTH
    #[arg(long, value_name = "OFF[:LEN]", value_parser = byte_range)]
    pub(crate) byte_range: Option<ByteRange>,
    /// How the files are taken
    #[arg(long = "as", value_name = "KIND", value_enum)]
    pub(crate) as_: Option<AsFlag>,
    /// Whether binaries and images come with their bytes [default: summary; with --json: content]
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(crate) binary: Option<BinaryFlag>,
    /// What ends a line
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(crate) line_breaks: Option<LineBreaksFlag>,
    /// Counts lines to the end of each file (true) or no further than is read (false)
    #[arg(long, value_name = "BOOL")]
    pub(crate) count_lines: Option<bool>,
    /// Most bytes read of each file
    #[arg(long, value_name = "N")]
    pub(crate) max_file_bytes: Option<u64>,
    /// Most bytes read of all files
    #[arg(long, value_name = "N")]
    pub(crate) max_batch_bytes: Option<u64>,
    /// Most milliseconds for the request
    #[arg(long, value_name = "MS")]
    pub(crate) deadline_ms: Option<u64>,
    /// Leaves out what is still at this revision
    #[arg(long, value_name = "REVISION")]
    pub(crate) if_none_match: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AsFlag {
    /// By content
    Auto,
    /// As text, whatever it is
    Text,
    /// As stored bytes
    Binary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BinaryFlag {
    /// With bytes
    Content,
    /// What it is, without bytes
    Summary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LineBreaksFlag {
    /// LF, also with a CR before it
    Newline,
    /// Also lone CR, VT, FF, U+0085, U+2028 and the like
    Unicode,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let cwd = Cwd::new(args.cwd.as_deref(), &context.backend);
    if args.raw {
        return raw::run(args, &cwd, context);
    }
    let batch = Batch::new(args, &cwd);
    let request = ReadFileContextRequest { files: batch.files(), ..request(args, &cwd) };
    let response = progress::shown(context.out.draws_on_stderr(), request.files.len(), |watch| {
        context.backend.read_watched(&request, watch)
    });
    let mut chosen = batch.choose(response?);
    let saved = args.save_dir.as_deref().map(|dir| save::save(dir, &mut chosen.response));
    let saved = saved.transpose()?.unwrap_or_default();
    if args.json {
        context.out.json(&save::told(&chosen.response, &saved)?)?;
    } else {
        show(args, request, &chosen, context)?;
    }
    for file in &saved {
        context.out.note(&file.sentence())?;
    }
    let failed = &chosen.response.failed_files;
    for failed in failed {
        context.out.refused(&failed.path, &failed.error)?;
    }
    Ok(if failed.is_empty() { Exit::Done } else { Exit::Refused })
}

/// The request without its files.
fn request(args: &Args, cwd: &Cwd) -> ReadFileContextRequest {
    let content = args.json || args.save_dir.is_some();
    let summary = if content { BinaryMode::Content } else { BinaryMode::Summary };
    // No character has more than four bytes: more cannot be shown.
    let shown = (!content).then(|| budget(args).file.saturating_mul(4));
    ReadFileContextRequest {
        files: Vec::new(),
        cwd: cwd.cwd.clone(),
        max_file_bytes: args.max_file_bytes.or(shown),
        max_batch_bytes: args.max_batch_bytes,
        deadline_ms: args.deadline_ms,
        image: None,
        binary: args.binary.map_or(summary, BinaryFlag::mode),
        count_lines: args.count_lines,
        line_breaks: args.line_breaks.map_or(LineBreaks::Newline, LineBreaksFlag::breaks),
    }
}

fn budget(args: &Args) -> Budget {
    args.max_chars.map_or_else(Budget::default, Budget::with_file)
}

/// Prints the reading view.
fn show(
    args: &Args,
    request: ReadFileContextRequest,
    chosen: &Chosen,
    context: &mut Context,
) -> Result<(), Failure> {
    let request = ReadFileContextRequest { files: chosen.files.clone(), ..request };
    let shown = ReadFileContextResponse {
        file_contexts: chosen.response.file_contexts.clone(),
        failed_files: Vec::new(),
    };
    let mut view = ReadView::new(shown, &chosen.wanted, request.line_breaks, budget(args));
    for (at, question) in view.questions(&request) {
        view.learn(at, &context.backend.read(&question)?);
    }
    let flags = carried(args, &context.connection);
    let go_on = |index: u64, next: &GoOn<'_>| command(&flags, args.byte_range, chosen.path(index), next);
    let texts = read_texts(&view, context.out.style(), &go_on);
    let mut pictures = Pictures::of(&request, &view, context);
    for (text, file) in texts.iter().zip(&view.files) {
        context.out.print(text)?;
        if let Some(picture) = pictures.take(file.request_index) {
            context.out.print(&picture)?;
        }
    }
    Ok(())
}

/// The flags that a command which goes on needs as well.
fn carried(args: &Args, connection: &Connection) -> String {
    let mut flags = connection.flags();
    let mut flag = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            flags.push_str(&format!(" {name} {}", quoted(value.as_bytes())));
        }
    };
    flag("--cwd", args.cwd.clone());
    flag("--limit", args.limit.map(|limit| limit.to_string()));
    flag("--max-chars", args.max_chars.map(|chars| chars.to_string()));
    flag("--max-file-bytes", args.max_file_bytes.map(|bytes| bytes.to_string()));
    flag("--as", args.as_.and_then(|kind| Some(kind.to_possible_value()?.get_name().to_owned())));
    flag(
        "--line-breaks",
        args.line_breaks.and_then(|kind| Some(kind.to_possible_value()?.get_name().to_owned())),
    );
    flags
}

/// The command that goes on with a file.
fn command(flags: &str, asked: Option<ByteRange>, path: &[u8], next: &GoOn<'_>) -> String {
    let end = if path.starts_with(b"-") { " --" } else { "" };
    match next {
        GoOn::Lines(ranges) => {
            let argument = [path, b":", written(ranges).as_bytes()].concat();
            format!("filectx read{flags}{end} {}", quoted(&argument))
        }
        GoOn::Bytes(ByteRange { offset, .. }) => {
            let asked_end = asked.and_then(|range| range.offset.checked_add(range.length?));
            let length = asked_end.map_or(String::new(), |end| format!(":{}", end.saturating_sub(*offset)));
            format!("filectx read{flags} --byte-range {offset}{length}{end} {}", quoted(path))
        }
    }
}

fn byte_range(text: &str) -> Result<ByteRange, String> {
    let number = |text: &str| text.parse().map_err(|_| format!("`{text}` is no number of bytes"));
    match text.split_once(':') {
        Some((offset, length)) => Ok(ByteRange { offset: number(offset)?, length: Some(number(length)?) }),
        None => Ok(ByteRange { offset: number(text)?, length: None }),
    }
}

impl AsFlag {
    pub(crate) fn kind(self) -> As {
        match self {
            AsFlag::Auto => As::Auto,
            AsFlag::Text => As::Text,
            AsFlag::Binary => As::Binary,
        }
    }
}

impl BinaryFlag {
    fn mode(self) -> BinaryMode {
        match self {
            BinaryFlag::Content => BinaryMode::Content,
            BinaryFlag::Summary => BinaryMode::Summary,
        }
    }
}

impl LineBreaksFlag {
    pub(crate) fn breaks(self) -> LineBreaks {
        match self {
            LineBreaksFlag::Newline => LineBreaks::Newline,
            LineBreaksFlag::Unicode => LineBreaks::Unicode,
        }
    }
}
