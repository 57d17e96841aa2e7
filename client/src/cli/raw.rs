//! `filectx read --raw`: one file's exact bytes, whatever its size, in pages; never a mixture of two versions of it.

use std::os::unix::ffi::OsStrExt as _;

use filectx_openapi::{
    As, BinaryMode, ByteRange, FileContext, FileRequest, ReadFileContextRequest, ReadFileContextResponse,
};

use super::Context;
use super::exit::{Exit, Failure};
use super::paths::Cwd;
use super::read::Args;

/// Bytes asked for at once: much in little time, and little in memory.
const PAGE_BYTES: u64 = 4 << 20;

pub(crate) fn run(args: &Args, cwd: &Cwd, context: &mut Context) -> Result<Exit, Failure> {
    let [path] = args.paths.as_slice() else {
        return Err(Failure::Usage("--raw prints the bytes of one PATH".into()));
    };
    let wire = cwd.wire(path.as_bytes());
    let range = args.byte_range.unwrap_or(ByteRange { offset: 0, length: None });
    let end = range.length.and_then(|length| range.offset.checked_add(length));
    let mut offset = range.offset;
    let mut revision: Option<String> = None;
    loop {
        let length = end.map_or(PAGE_BYTES, |end| (end - offset).min(PAGE_BYTES));
        let file = FileRequest {
            path: wire.path.clone(),
            path_base64: wire.path_base64.clone(),
            byte_range: Some(ByteRange { offset, length: Some(length) }),
            as_: As::Binary,
            ..FileRequest::default()
        };
        let request = ReadFileContextRequest {
            files: vec![file],
            cwd: cwd.cwd.clone(),
            max_file_bytes: Some(PAGE_BYTES),
            max_batch_bytes: Some(PAGE_BYTES),
            deadline_ms: args.deadline_ms,
            binary: BinaryMode::Content,
            count_lines: Some(false),
            ..ReadFileContextRequest::default()
        };
        let page = match page(context.backend.read(&request)?) {
            Ok(page) => page,
            Err(response) => {
                for failed in &response.failed_files {
                    context.out.refused(&failed.path, &failed.error)?;
                }
                return Ok(Exit::Refused);
            }
        };
        if page.changed_during_read == Some(true)
            || revision.as_ref().is_some_and(|old| *old != page.revision)
        {
            let message = format!(
                "{}: it changed while it was read; what was printed is no version of it",
                page.file_name
            );
            return Err(Failure::Io(message));
        }
        revision = Some(page.revision.clone());
        let bytes = page.binary_content.map(|content| content.0).unwrap_or_default();
        context.out.bytes(&bytes)?;
        offset += bytes.len() as u64;
        // A file whose size lies ends where a page is not full.
        let not_full = (bytes.len() as u64) < length && page.truncation.is_none();
        let at_size = page.file_size_bytes > 0 && offset >= page.file_size_bytes;
        if bytes.is_empty() || end == Some(offset) || not_full || at_size {
            return Ok(Exit::Done);
        }
    }
}

/// The one context of the answer.
fn page(mut response: ReadFileContextResponse) -> Result<FileContext, ReadFileContextResponse> {
    match response.file_contexts.pop() {
        Some(context) => Ok(context),
        None => Err(response),
    }
}
