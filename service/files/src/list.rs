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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    use filectx_openapi::{Code, Limits};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::FenceConfig;

    fn list_with(
        config: &FenceConfig,
        dir: &Path,
        extra: &Value,
    ) -> Result<ListDirectoryResponse, ItemError> {
        let mut request = json!({"path": dir});
        request.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let files = Files::new(config, Limits::default()).unwrap();
        files.list(&serde_json::from_value(request).unwrap(), &Cancel::after(Duration::from_secs(60)))
    }

    fn list(dir: &Path, extra: &Value) -> ListDirectoryResponse {
        list_with(&FenceConfig::default(), dir, extra).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
        #[test]
        fn pages_reach_each_entry_once(
            names in proptest::collection::btree_set(proptest::collection::vec(33u8..=255, 1..4), 0..40),
            size in 1usize..12,
            hidden in any::<bool>(),
        ) {
            let usable = |name: &&Vec<u8>| !name.contains(&b'/') && !matches!(name.as_slice(), b"." | b"..");
            let names: BTreeSet<Vec<u8>> = names.iter().filter(usable).cloned().collect();
            let dir = tempfile::tempdir().unwrap();
            for name in &names {
                std::fs::write(dir.path().join(std::ffi::OsStr::from_bytes(name)), b"x").unwrap();
            }
            let expected: Vec<_> = names.into_iter().filter(|name| hidden || name[0] != b'.').collect();
            let (mut found, mut after, mut pages) = (Vec::new(), None, 0);
            loop {
                let page = list(dir.path(), &json!({"max_entries": size, "after": after, "hidden": hidden}));
                prop_assert_eq!(page.total, expected.len() as u64);
                prop_assert!(page.entries.len() <= size);
                let bytes = |entry: ListEntry| match entry.name_base64 {
                    Some(text) => Base64::decode(&text).unwrap(),
                    None => entry.name.into_bytes(),
                };
                found.extend(page.entries.into_iter().map(bytes));
                pages += 1;
                match page.truncation {
                    Some(truncation) => after = Some(truncation.next),
                    None => break,
                }
            }
            prop_assert_eq!(pages, expected.len().div_ceil(size).max(1));
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn links_say_what_they_lead_to() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "12345").unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::write(dir.path().join("d/secret"), "").unwrap();
        let outside = outside.path().to_str().unwrap();
        let links = [
            ("a", "f", LinkTarget::File),
            ("b", "d/", LinkTarget::Directory),
            ("c", "gone", LinkTarget::Missing),
            ("c2", "f/x", LinkTarget::Missing),
            ("e", "e", LinkTarget::Loop),
            ("g", outside, LinkTarget::Outside),
            ("h", "d/secret", LinkTarget::Outside),
        ];
        for (name, target, _) in links {
            symlink(target, dir.path().join(name)).unwrap();
        }
        let root = dir.path().canonicalize().unwrap();
        for by_steps in [false, true] {
            let (roots, deny) = (vec![root.clone()], vec!["secret".into()]);
            let config = FenceConfig { roots, deny, by_steps, ..FenceConfig::default() };
            let page = list_with(&config, &root, &json!({})).unwrap();
            for (name, text, target) in links {
                let entry = page.entries.iter().find(|entry| entry.name == name).unwrap();
                assert_eq!(
                    (entry.link_target.as_deref(), entry.target),
                    (Some(text), Some(target)),
                    "{name}"
                );
                assert_eq!(entry.type_, EntryType::Symlink);
            }
            let file = page.entries.iter().find(|entry| entry.name == "f").unwrap();
            assert_eq!((file.size_bytes, file.target, file.mode.len()), (5, None, 4));
            let below = list_with(&config, &root.join("d"), &json!({})).unwrap();
            assert_eq!((below.entries.len(), below.total), (0, 0));
        }
    }

    #[test]
    fn a_page_is_never_larger_than_the_service_allows() {
        let dir = tempfile::tempdir().unwrap();
        for i in 0..5 {
            std::fs::write(dir.path().join(format!("{i}")), "").unwrap();
        }
        let files =
            Files::new(&FenceConfig::default(), Limits { max_list_entries: 2, ..Limits::default() }).unwrap();
        for (asked, entries, limit) in [
            (json!(1), 1, LimitName::MaxEntries),
            (json!(2), 2, LimitName::MaxEntries),
            (json!(3), 2, LimitName::MaxListEntries),
            (Value::Null, 2, LimitName::MaxListEntries),
            (json!(u64::MAX), 2, LimitName::MaxListEntries),
        ] {
            let request = json!({"path": dir.path(), "max_entries": asked});
            let cancel = Cancel::after(Duration::from_secs(60));
            let page = files.list(&serde_json::from_value(request).unwrap(), &cancel).unwrap();
            assert_eq!((page.entries.len(), page.total), (entries, 5), "{asked}");
            assert_eq!(page.truncation.unwrap().limit, limit, "{asked}");
        }
    }

    #[test]
    fn a_listing_that_cannot_be_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "").unwrap();
        for (path, extra, code) in [
            ("", json!({"max_entries": 0}), Code::InvalidRequest),
            ("", json!({"after": "x"}), Code::InvalidRequest),
            ("", json!({"cwd": "x"}), Code::InvalidRequest),
            ("", json!({"path_base64": "Lw=="}), Code::InvalidRequest),
            ("f", json!({}), Code::NotADirectory),
            ("gone", json!({}), Code::NotFound),
        ] {
            let error = list_with(&FenceConfig::default(), &dir.path().join(path), &extra).unwrap_err();
            assert_eq!(error.code, code, "{path} {extra}");
        }
        let files = Files::new(&FenceConfig::default(), Limits::default()).unwrap();
        let request = serde_json::from_value(json!({"path": dir.path()})).unwrap();
        let gone = Cancel::after(Duration::from_secs(60));
        gone.cancel();
        assert!(files.list(&request, &gone).is_err());
    }
}
