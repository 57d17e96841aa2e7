//! The walk of a search: one directory tree, in the order of paths by components, on descriptors. It stays inside the
//! fences, obeys ignore files, knows which globs can still match, and says what it passed over. It holds one open
//! directory and the names of the directories on its way, however deep or large the tree. What it meets is told by
//! `found.rs`; contents are not looked at.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use filectx_openapi::EntryType;
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::found::{Entry, Skip, Step, Way, open_below};
use super::ignores::{self, Ignores, PLACES};
use super::names::Names;
use super::roots::{Fences, Located, PATH_BYTES, to_path};
use crate::bytes::glob::{Globs, Trail, comparable};
use crate::{Cancel, Error};

/// How many entries are passed over before the caller is asked again.
const BREATH: usize = 512;

/// What a walk enters and finds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// Hidden names too.
    pub(crate) hidden: bool,
    /// Ignore files hold.
    pub(crate) ignore_files: bool,
    /// Links are followed.
    pub(crate) follow_links: bool,
    /// What an entry has to match: all of them.
    pub(crate) filters: Vec<Globs>,
    /// Names that are spelled out elsewhere than in a filter.
    pub(crate) spelled: Globs,
    /// What is left out.
    pub(crate) excluded: Globs,
}

/// Where a directory stands to the place from which the walk goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Before,
    /// On the way to it: this component of it comes next.
    At(usize),
    After,
}

struct Frame {
    names: Names,
    next: usize,
    /// How much of the path names this directory, slash included.
    len: usize,
    ignores: Arc<Ignores>,
    trails: Vec<Trail>,
    way: Way,
    id: (u64, u64),
    place: Place,
}

/// One walk.
pub(crate) struct Walk<'a> {
    fences: &'a Fences,
    rules: &'a Rules,
    root: Located,
    root_real: Vec<u8>,
    /// The path of the current directory, from where ignore files begin to hold.
    path: Vec<u8>,
    /// How much of it lies above the root.
    above: usize,
    stack: Vec<Frame>,
    /// What is told next of the entry before.
    pending: Option<Step>,
    /// Directories that links led to, or all that were entered where links are followed.
    entered: HashSet<(u64, u64)>,
    /// The place from which the walk goes on.
    resume: Vec<Vec<u8>>,
    /// Whether what stands before that place is visited too.
    revisit: bool,
}

/// From where a walk goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum From<'a> {
    /// From the start.
    Start,
    /// From this path on, itself included. `revisit`: what is before it comes too, marked so.
    Path(&'a [u8], bool),
    /// Everything is visited, and marked as before.
    Never,
}

impl<'a> Walk<'a> {
    /// Opens the directory `root`.
    pub(crate) fn new(
        fences: &'a Fences,
        rules: &'a Rules,
        root: &Located,
        from: From<'_>,
        cancel: &Cancel,
    ) -> Result<Self, Error> {
        let opened = fences.open_directory(root)?;
        let real =
            super::system::path_of(&opened.fd).unwrap_or_else(|| super::roots::normalised(root.joined()));
        let (ignores, path) =
            if rules.ignore_files { ignores::at_root(fences, &real) } else { Default::default() };
        let (resume, revisit, place) = match from {
            From::Start => (Vec::new(), false, Place::After),
            From::Path(path, revisit) => {
                (path.split(|&b| b == b'/').map(<[u8]>::to_vec).collect(), revisit, Place::At(0))
            }
            From::Never => (Vec::new(), true, Place::Before),
        };
        let fd = Arc::new(opened.fd);
        let all = rules.filters.iter().chain([&rules.spelled, &rules.excluded]);
        let absolute = super::roots::normalised(root.joined());
        let trails = all.map(|globs| globs.start(absolute.as_os_str().as_bytes())).collect();
        let mut walk = Self {
            fences,
            rules,
            root: root.clone(),
            root_real: real.into_os_string().into_encoded_bytes(),
            above: path.len(),
            path,
            stack: Vec::new(),
            pending: None,
            entered: HashSet::new(),
            resume,
            revisit,
        };
        let id = (opened.identity.dev, opened.identity.ino);
        let names = Names::read(rustix::fs::Dir::read_from(&fd)?, cancel)?;
        walk.entered.insert(id);
        walk.push(names, Arc::new(ignores), trails, Way::Below(fd), id, place);
        Ok(walk)
    }

    /// Where the root really lies.
    pub(crate) fn root_real(&self) -> &[u8] {
        &self.root_real
    }

    /// The next thing met; `None` at the end.
    pub(crate) fn next(&mut self, cancel: &Cancel) -> Result<Option<Step>, Error> {
        if let Some(step) = self.pending.take() {
            return Ok(Some(step));
        }
        let mut met = 0;
        loop {
            let Some(frame) = self.stack.last_mut() else { return Ok(None) };
            self.path.truncate(frame.len);
            if frame.next == frame.names.len() {
                self.stack.pop();
                continue;
            }
            let (name, kind) = frame.names.get(frame.next);
            frame.next += 1;
            self.path.extend_from_slice(name);
            met += 1;
            if met % BREATH == 0 {
                cancel.check()?;
            }
            if let Some(step) = self.meet(kind, cancel)? {
                return Ok(Some(step));
            }
        }
    }

    /// Looks at the entry whose path is the current one.
    fn meet(&mut self, kind: EntryType, cancel: &Cancel) -> Result<Option<Step>, Error> {
        let Some(frame) = self.stack.last() else { return Ok(None) };
        let name = &self.path[frame.len..];
        let (place, on_the_way) = match frame.place {
            Place::At(depth) => match name.cmp(&self.resume[depth]) {
                std::cmp::Ordering::Less => (Place::Before, false),
                std::cmp::Ordering::Greater => (Place::After, false),
                std::cmp::Ordering::Equal if depth + 1 < self.resume.len() => (Place::At(depth + 1), true),
                std::cmp::Ordering::Equal => (Place::After, false),
            },
            place => (place, false),
        };
        let quiet = place != Place::After;
        if self.is_denied() {
            return Ok(None);
        }
        let skipped = |skip| Ok((!quiet).then_some(Step::Skipped(skip)));
        if name == b".git" {
            return skipped(Skip::Hidden);
        }
        let is_directory = kind == EntryType::Directory;
        let hidden = name.starts_with(b".") && !self.rules.hidden;
        let judged = Judged::of(self.rules, frame, name, is_directory);
        if hidden && !judged.spelled {
            return skipped(Skip::Hidden);
        }
        let ignored = !frame.ignores.is_empty() && frame.ignores.ignores(&self.path, is_directory);
        if ignored && !judged.spelled {
            return skipped(Skip::Ignored);
        }
        if judged.excluded {
            return Ok(None);
        }
        if self.root.joined().as_os_str().len() + 1 + self.path.len() - self.above > PATH_BYTES {
            let error = Error::InvalidPath {
                detail: format!("it is longer than the {PATH_BYTES} bytes that the system takes"),
            };
            return Ok((!quiet).then(|| Step::Failed(self.below().to_vec(), error)));
        }
        let link = (kind == EntryType::Symlink).then(|| self.follow(judged.spelled));
        let enters = is_directory || matches!(link, Some((Some(EntryType::Directory), true)));
        let way = if link.is_some() { Way::Fences } else { frame.way.clone() };
        let shown = judged.accepted || matches!(link, Some((Some(EntryType::Directory), false)));
        let entry = (shown && !on_the_way).then(|| Entry {
            path: self.below().to_vec(),
            kind,
            link,
            accepted: judged.accepted,
            before: place == Place::Before,
            way: way.clone(),
        });
        if enters {
            let ignores = match ignored {
                true => Arc::new(Ignores::clone(&frame.ignores).naming(&self.path, true)),
                false => Arc::clone(&frame.ignores),
            };
            let told = self.enter(ignores, &way, link.is_some(), place, cancel)?.filter(|_| !quiet);
            if entry.is_none() {
                return Ok(told);
            }
            self.pending = told;
        }
        Ok(entry.map(Step::Entry))
    }

    /// Whether a deny rule covers the current path, as it is called or as it really lies.
    fn is_denied(&self) -> bool {
        if !self.fences.judges_real_paths() {
            return false;
        }
        let mut real = self.root_real.clone();
        real.push(b'/');
        real.extend_from_slice(self.below());
        self.fences.denies(self.located().joined()) || self.fences.denies(&to_path(&real))
    }

    /// What the link at the current path leads to, and whether it is followed.
    fn follow(&self, spelled: bool) -> (Option<EntryType>, bool) {
        let target = self.fences.look(&self.located()).ok().map(|identity| identity.kind());
        (target, target.is_some() && (self.rules.follow_links || spelled))
    }

    /// Enters the directory at the current path; what is returned is why not.
    fn enter(
        &mut self,
        ignores: Arc<Ignores>,
        way: &Way,
        by_link: bool,
        place: Place,
        cancel: &Cancel,
    ) -> Result<Option<Step>, Error> {
        let Some(frame) = self.stack.last() else { return Ok(None) };
        let name = comparable(&self.path[frame.len..]);
        let all = self.rules.filters.iter().chain([&self.rules.spelled, &self.rules.excluded]);
        let trails: Vec<Trail> =
            all.zip(&frame.trails).map(|(globs, trail)| globs.enter(trail, &name)).collect();
        if trails.iter().zip(&self.rules.filters).any(|(trail, _)| trail.is_dead()) {
            return Ok(None);
        }
        let opened = match way {
            Way::Below(root) => open_below(self.fences, root, self.below(), OFlags::DIRECTORY),
            Way::Fences => self.fences.open_directory(&self.located()),
        };
        let failed = |error: Error| match error {
            // It went away, or became something else, since its name was read.
            Error::NotFound { .. } | Error::LinkLoop | Error::NotADirectory { .. } => Ok(None),
            Error::Io { errno: Errno::NOTDIR } => Ok(None),
            Error::Cancelled | Error::DeadlineExceeded => Err(error),
            error => Ok(Some(Step::Failed(self.below().to_vec(), error))),
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => return failed(error),
        };
        let id = (opened.identity.dev, opened.identity.ino);
        let seen = match by_link || self.rules.follow_links {
            true => self.entered.contains(&id) || self.stack.iter().any(|frame| frame.id == id),
            false => false,
        };
        if seen {
            return Ok(Some(Step::Skipped(Skip::LinkedDirectory)));
        }
        let dir = rustix::fs::Dir::new(opened.fd).map_err(Error::from);
        let names = match dir.and_then(|dir| Names::read(dir, cancel)) {
            Ok(names) => names,
            Err(error) => return failed(error),
        };
        if by_link || self.rules.follow_links {
            self.entered.insert(id);
        }
        self.path.push(b'/');
        let ignores = if self.rules.ignore_files { self.own_ignores(ignores, &names) } else { ignores };
        self.push(names, ignores, trails, way.clone(), id, place);
        Ok(None)
    }

    /// Adds the ignore files of the directory at the current path.
    fn own_ignores(&self, ignores: Arc<Ignores>, names: &Names) -> Arc<Ignores> {
        let there: Vec<usize> = (0..PLACES.len())
            .filter(|&kind| names.holds(PLACES[kind].split(|&b| b == b'/').next().unwrap_or_default()))
            .collect();
        if there.is_empty() {
            return ignores;
        }
        let mut own = Ignores::clone(&ignores);
        for kind in there {
            own.add(self.fences, &self.located(), kind, self.path.len());
        }
        Arc::new(own)
    }

    fn push(
        &mut self,
        names: Names,
        ignores: Arc<Ignores>,
        trails: Vec<Trail>,
        way: Way,
        id: (u64, u64),
        place: Place,
    ) {
        let next = match place {
            Place::At(depth) if !self.revisit => names.position(&self.resume[depth]),
            _ => 0,
        };
        self.stack.push(Frame { names, next, len: self.path.len(), ignores, trails, way, id, place });
    }

    /// The current path below the root.
    fn below(&self) -> &[u8] {
        &self.path[self.above..]
    }

    fn located(&self) -> Located {
        let below = self.below();
        self.fences.located_below(&self.root, below.strip_suffix(b"/").unwrap_or(below))
    }
}

/// What the globs say of an entry.
struct Judged {
    accepted: bool,
    spelled: bool,
    excluded: bool,
}

impl Judged {
    fn of(rules: &Rules, frame: &Frame, name: &[u8], is_directory: bool) -> Self {
        if rules.filters.is_empty() && rules.spelled.is_empty() && rules.excluded.is_empty() {
            return Self { accepted: true, spelled: false, excluded: false };
        }
        let name = comparable(name);
        let filters = || rules.filters.iter().zip(&frame.trails);
        let [.., spelled, excluded] = &frame.trails[..] else {
            return Self { accepted: true, spelled: false, excluded: false };
        };
        Self {
            accepted: filters().all(|(globs, trail)| globs.accepts(trail, &name, is_directory)),
            spelled: filters().any(|(globs, trail)| globs.spells(trail, &name))
                || rules.spelled.spells(spelled, &name),
            excluded: rules.excluded.accepts(excluded, &name, is_directory),
        }
    }
}
