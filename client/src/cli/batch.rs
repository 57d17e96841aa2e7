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

#[cfg(test)]
mod tests {
    use filectx_openapi::{ItemError, LineRange, ProblemData};

    use super::*;

    fn args(paths: &[&str]) -> Args {
        Args { paths: paths.iter().map(Into::into).collect(), ..Args::default() }
    }

    /// Answers as if only `existing` were there.
    fn answered(batch: &Batch, existing: &[&str], other: &Code) -> ReadFileContextResponse {
        let mut response = ReadFileContextResponse::default();
        for (index, file) in (0..).zip(batch.files()) {
            let path = file.path.unwrap();
            if existing.contains(&path.as_str()) {
                let context = FileContext { request_index: index, file_name: path, ..FileContext::default() };
                // A file may have several contexts.
                response.file_contexts.extend([context.clone(), context]);
            } else {
                let pointer = format!("/files/{index}/line_ranges/0");
                let message = format!("{path}: {pointer}");
                let data = ProblemData { pointer: Some(pointer), ..ProblemData::default() };
                let error = ItemError { code: other.clone(), message, hint: None, data: Box::new(data) };
                let failed = FailedFile { request_index: index, path, path_base64: None, error };
                response.failed_files.push(failed);
            }
        }
        response
    }

    #[test]
    fn the_first_reading_that_exists_is_taken() {
        let names = |paths: &[&str], existing: &[&str]| {
            let batch = Batch::new(&args(paths), &Cwd::default());
            let response = answered(&batch, existing, &Code::NotFound);
            let response = batch.choose(response).response;
            let read = response.file_contexts.iter().step_by(2);
            let read: Vec<_> = read.map(|c| format!("{}={}", c.request_index, c.file_name)).collect();
            let failed = response.failed_files.iter();
            let failed: Vec<_> = failed.map(|f| format!("{}={}", f.request_index, f.path)).collect();
            (read.join(" "), failed.join(" "))
        };
        let table: [(&[&str], &[&str], &str, &str); 6] = [
            (&["a:3"], &["a"], "0=a", ""),
            (&["a:3"], &["a:3", "a"], "0=a:3", ""),
            (&["a:3:4"], &["a", "a:3"], "0=a:3", ""),
            (&["a:3:4"], &[], "", "0=a"),
            (&["x", "a:3", "b", "a:3"], &["a", "b"], "1=a 2=b 3=a", "0=x"),
            (&["a:1-2", "b:5"], &["a", "b:5"], "0=a 1=b:5", ""),
        ];
        for (paths, existing, read, failed) in table {
            assert_eq!(
                names(paths, existing),
                (read.to_owned(), failed.to_owned()),
                "{paths:?} {existing:?}"
            );
        }
    }

    #[test]
    fn a_reading_that_exists_and_is_refused_is_taken() {
        let batch = Batch::new(&args(&["a:3", "b:3"]), &Cwd::default());
        let response = answered(&batch, &["b"], &Code::PermissionDenied);
        let response = batch.choose(response).response;
        assert_eq!(response.failed_files.len(), 2);
        assert_eq!(response.failed_files[1].path, "b:3");
        // It points to the argument, not to the reading.
        let error = &response.failed_files[1].error;
        assert_eq!(error.data.pointer.as_deref(), Some("/files/1/line_ranges/0"));
        assert_eq!(error.message, "b:3: /files/1/line_ranges/0");
    }

    #[test]
    fn lines_are_those_of_the_reading_and_the_limit() {
        let batch = Batch::new(&Args { limit: Some(3), ..args(&["a:5-"]) }, &Cwd::default());
        let ranges: Vec<_> = batch.files().into_iter().map(|file| file.line_ranges).collect();
        let range = |start, end| vec![LineRange { start, end: Some(end) }];
        assert_eq!(ranges, [range(1, 3), range(5, 7)]);
        let bytes = filectx_openapi::ByteRange { offset: 0, length: None };
        let batch = Batch::new(&Args { byte_range: Some(bytes), ..args(&["a:5-"]) }, &Cwd::default());
        let files = batch.files();
        assert_eq!((files.len(), files[0].path.as_deref()), (1, Some("a:5-")));
        assert_eq!((files[0].byte_range, files[0].line_ranges.len()), (Some(bytes), 0));
    }
}
