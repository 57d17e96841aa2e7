//! A batch of arguments: each is asked for in every reading that it may have, in one request; then the first reading that
//! exists is taken, and the answer looks as if only that one had been asked for.

use std::os::unix::ffi::OsStrExt as _;

use filectx_client::render::Wanted;
use filectx_openapi::{Code, FailedFile, FileContext, FileRequest, ReadFileContextResponse};

use super::paths::Cwd;
use super::read::{Args, AsFlag};
use super::suffix::{Reading, readings};

/// The readings of all arguments.
pub(crate) struct Batch {
    asked: Vec<Asked>,
}

/// One reading, as it is asked for.
struct Asked {
    argument: usize,
    path: Vec<u8>,
    wanted: Wanted,
    file: FileRequest,
}

/// The readings that were taken: an element for each argument.
pub(crate) struct Chosen {
    pub(crate) response: ReadFileContextResponse,
    pub(crate) files: Vec<FileRequest>,
    pub(crate) wanted: Vec<Wanted>,
    paths: Vec<Vec<u8>>,
}

impl Chosen {
    /// The path of an argument, as it was given.
    pub(crate) fn path(&self, index: u64) -> &[u8] {
        usize::try_from(index).ok().and_then(|index| self.paths.get(index)).map_or(b"", Vec::as_slice)
    }
}

impl Batch {
    pub(crate) fn new(args: &Args, cwd: &Cwd) -> Self {
        let mut asked = Vec::new();
        for (argument, text) in args.paths.iter().enumerate() {
            let all = readings(text.as_bytes());
            // With bytes, lines cannot be meant.
            let most = if args.byte_range.is_some() { 1 } else { all.len() };
            for reading in all.into_iter().take(most) {
                asked.push(Asked::new(argument, reading, args, cwd));
            }
        }
        Self { asked }
    }

    /// The files to ask for.
    pub(crate) fn files(&self) -> Vec<FileRequest> {
        self.asked.iter().map(|asked| asked.file.clone()).collect()
    }

    /// Takes of each argument the first reading that exists; if none does, the last one.
    pub(crate) fn choose(self, response: ReadFileContextResponse) -> Chosen {
        let mut outcomes: Vec<(Vec<FileContext>, Vec<FailedFile>)> = Vec::new();
        outcomes.resize_with(self.asked.len(), Default::default);
        let at = |index: u64| usize::try_from(index).ok().filter(|index| *index < self.asked.len());
        for context in response.file_contexts {
            if let Some(at) = at(context.request_index) {
                outcomes[at].0.push(context);
            }
        }
        for failed in response.failed_files {
            if let Some(at) = at(failed.request_index) {
                outcomes[at].1.push(failed);
            }
        }
        let mut chosen =
            Chosen { response: Default::default(), files: Vec::new(), wanted: Vec::new(), paths: Vec::new() };
        let mut of_argument = self.asked.into_iter().zip(outcomes).peekable();
        while let Some(mut taken) = of_argument.next() {
            let argument = taken.0.argument;
            while let Some(next) = of_argument.next_if(|(asked, _)| asked.argument == argument) {
                if taken.1.1.iter().any(|failed| is_absent(&failed.error.code)) {
                    taken = next;
                }
            }
            chosen.take(argument as u64, taken);
        }
        chosen
    }
}

impl Chosen {
    fn take(&mut self, index: u64, (asked, outcome): (Asked, (Vec<FileContext>, Vec<FailedFile>))) {
        let (contexts, failed) = outcome;
        let numbered = |context| FileContext { request_index: index, ..context };
        self.response.file_contexts.extend(contexts.into_iter().map(numbered));
        let numbered = |failed| renumbered(failed, index);
        self.response.failed_files.extend(failed.into_iter().map(numbered));
        self.files.push(asked.file);
        self.wanted.push(asked.wanted);
        self.paths.push(asked.path);
    }
}

impl Asked {
    fn new(argument: usize, reading: Reading, args: &Args, cwd: &Cwd) -> Self {
        let path = cwd.wire(&reading.path);
        let wanted = Wanted::new(&reading.ranges, args.limit);
        let file = FileRequest {
            path: path.path,
            path_base64: path.path_base64,
            line_ranges: if args.byte_range.is_some() { Vec::new() } else { wanted.asked() },
            byte_range: args.byte_range,
            if_none_match: args.if_none_match.clone(),
            as_: args.as_.map(AsFlag::kind).unwrap_or_default(),
        };
        Self { argument, path: reading.path, wanted, file }
    }
}

/// The failure as if it were of the request's file `index`: where it points into the request, it points there.
fn renumbered(mut failed: FailedFile, index: u64) -> FailedFile {
    let (old, new) = (format!("/files/{}/", failed.request_index), format!("/files/{index}/"));
    if let Some(pointer) = failed.error.data.pointer.as_mut().filter(|pointer| pointer.starts_with(&old)) {
        *pointer = pointer.replacen(&old, &new, 1);
        failed.error.message = failed.error.message.replacen(&old, &new, 1);
    }
    FailedFile { request_index: index, ..failed }
}

/// Whether the code says that nothing has this name.
fn is_absent(code: &Code) -> bool {
    // A name can be too long, with its lines, to be one.
    matches!(code, Code::NotFound | Code::NotADirectory | Code::InvalidPath)
}
