//! The verb `list-directory`: one page of a directory, in byte order of the names. However many entries there are, only
//! a page of names is kept and only what is returned is looked at.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::path::Path;

use filectx_openapi::{
    Base64, EntryType, ItemError, LimitName, LinkTarget, ListDirectoryRequest, ListDirectoryResponse,
    ListEntry, ListTruncation, lossy, lossy_base64,
};

use crate::disk::directory::{Directory, Listed};
use crate::disk::identity::Identity;
use crate::disk::roots::check_cwd;
use crate::{Cancel, Error, Files, Located};

/// Entries in a page when the request does not say.
const DEFAULT_ENTRIES: u64 = 1_000;
/// Before the name in a cursor.
const CURSOR: u8 = b'n';
/// How many names are read before the caller is asked again.
const BREATH: u64 = 1_024;

impl Files {
    /// Lists one directory.
    pub fn list(
        &self,
        request: &ListDirectoryRequest,
        cancel: &Cancel,
    ) -> Result<ListDirectoryResponse, ItemError> {
        let no_path = |error: Error| error.item(Path::new(""));
        check_cwd(request.cwd.as_deref()).map_err(no_path)?;
        let (most, limit) = page_size(request, self.limits().max_list_entries).map_err(no_path)?;
        let after = decode_cursor(request.after.as_deref()).map_err(no_path)?;
        let (path, base64) = (request.path.as_deref(), request.path_base64.as_deref());
        let at = self
            .fences()
            .locate(path, base64, request.cwd.as_deref(), "")
            .map_err(|unlocated| unlocated.error.item(&unlocated.shown))?;
        let page = self.page(&at, request.hidden, most, after.as_deref(), cancel);
        let (names, total, entries) = page.map_err(|error| error.item(at.joined()))?;
        let next = names.get(most).and(names.get(most - 1));
        let joined = std::os::unix::ffi::OsStrExt::as_bytes(at.joined().as_os_str());
        Ok(ListDirectoryResponse {
            path: lossy(joined),
            path_base64: lossy_base64(joined),
            entries,
            total,
            truncation: next.map(|Name(name, _)| ListTruncation { limit, next: encode_cursor(name) }),
        })
    }

    /// The names of a page and the one behind it, how many entries there are in all, and the page's entries.
    fn page(
        &self,
        at: &Located,
        hidden: bool,
        most: usize,
        after: Option<&[u8]>,
        cancel: &Cancel,
    ) -> Result<(Vec<Name>, u64, Vec<ListEntry>), Error> {
        let mut directory = Directory::open(self.fences(), at)?;
        // The smallest names behind `after`; the largest of them on top.
        let mut page: BinaryHeap<Name> = BinaryHeap::new();
        let (mut total, mut read) = (0, 0);
        while let Some(name) = directory.next_name() {
            let (name, kind) = name?;
            read += 1;
            if read % BREATH == 0 {
                cancel.check()?;
            }
            if !hidden && name.starts_with(b".") {
                continue;
            }
            total += 1;
            if after.is_some_and(|after| name <= after) {
                continue;
            }
            if page.len() <= most {
                page.push(Name(name.to_vec(), kind));
            } else if page.peek().is_some_and(|largest| name < largest.0.as_slice()) {
                page.pop();
                page.push(Name(name.to_vec(), kind));
            }
        }
        let names = page.into_sorted_vec();
        let mut entries = Vec::with_capacity(names.len().min(most));
        for Name(name, kind) in names.iter().take(most) {
            cancel.check()?;
            // What went away meanwhile is no entry.
            entries.extend(directory.look(name, *kind).map(|listed| entry(name, &listed)));
        }
        Ok((names, total, entries))
    }
}

/// A name, and what the directory says it is.
#[derive(PartialEq, Eq)]
struct Name(Vec<u8>, EntryType);

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn page_size(request: &ListDirectoryRequest, limit: u64) -> Result<(usize, LimitName), Error> {
    let asked = request.max_entries.unwrap_or(DEFAULT_ENTRIES);
    if asked == 0 {
        return Err(Error::invalid_request("/max_entries", "0; it is at least 1"));
    }
    let name = if asked > limit { LimitName::MaxListEntries } else { LimitName::MaxEntries };
    Ok((usize::try_from(asked.min(limit.max(1))).unwrap_or(usize::MAX - 1), name))
}

fn encode_cursor(name: &[u8]) -> String {
    Base64::encode(&[&[CURSOR], name].concat())
}

fn decode_cursor(after: Option<&str>) -> Result<Option<Vec<u8>>, Error> {
    let Some(text) = after else { return Ok(None) };
    match Base64::decode(text) {
        Some(bytes) if bytes.first() == Some(&CURSOR) => Ok(Some(bytes[1..].to_vec())),
        _ => Err(Error::invalid_request(
            "/after",
            "not a truncation.next of this operation; send it as it came",
        )),
    }
}

fn entry(name: &[u8], listed: &Listed) -> ListEntry {
    let (link, identity) = (listed.link.as_ref(), listed.identity.as_ref());
    ListEntry {
        name: lossy(name),
        name_base64: lossy_base64(name),
        type_: listed.kind,
        size_bytes: identity.map_or(0, |identity| identity.size),
        last_modified_epoch_millis: identity.map_or(0, Identity::modified_millis),
        mode: format!("{:04o}", identity.map_or(0, |identity| identity.mode & 0o7777)),
        link_target: link.map(|(text, _)| lossy(text)),
        link_target_base64: link.and_then(|(text, _)| lossy_base64(text)),
        target: link.map(|(_, target)| leads_to(target)),
    }
}

/// What a link leads to.
fn leads_to(target: &Result<EntryType, Error>) -> LinkTarget {
    match target {
        Ok(EntryType::File | EntryType::Symlink) => LinkTarget::File,
        Ok(EntryType::Directory) => LinkTarget::Directory,
        Ok(EntryType::Fifo) => LinkTarget::Fifo,
        Ok(EntryType::Socket) => LinkTarget::Socket,
        Ok(EntryType::BlockDevice) => LinkTarget::BlockDevice,
        Ok(EntryType::CharDevice) => LinkTarget::CharDevice,
        Err(Error::NotFound { .. } | Error::NotADirectory { .. }) => LinkTarget::Missing,
        Err(Error::LinkLoop) => LinkTarget::Loop,
        Err(Error::OutsideRoots | Error::DeniedByPolicy) => LinkTarget::Outside,
        // A file on the way of the link, where a directory should be.
        Err(Error::Io { errno }) if *errno == rustix::io::Errno::NOTDIR => LinkTarget::Missing,
        Err(_) => LinkTarget::Unreadable,
    }
}
