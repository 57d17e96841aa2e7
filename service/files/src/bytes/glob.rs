//! Globs, matched one path component at a time, so that a walk knows at each directory which of them can still match
//! below it (the others are not entered) and which of them spell a name out (that is consent to hidden names).
//!
//! `*` and `?` stay inside a component and count characters, `**` spans components, `[a-z]`, `[!a]` and `{a,b}` as
//! usual, `\` escapes. NFC and NFD names match either form. No disk here: the walk is in `disk/walk.rs`.

mod braces;
mod way;

use std::borrow::Cow;

use unicode_normalization::{UnicodeNormalization, is_nfc};

use braces::alternatives;
use way::{Step, Way};

/// A glob that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GlobError {
    /// Where, in bytes.
    pub(crate) offset: usize,
    /// Why.
    pub(crate) detail: &'static str,
}

/// A set of globs; a path matches when one of them does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Globs {
    ways: Vec<Way>,
}

/// What is left to match at a directory: which step of which glob comes next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trail(Vec<(u32, u32)>);

impl Trail {
    /// Whether nothing below the directory can match.
    pub(crate) fn is_dead(&self) -> bool {
        self.0.is_empty()
    }
}

/// A name as globs compare it: lossy where it is not UTF-8, in NFC.
pub(crate) fn comparable(name: &[u8]) -> Cow<'_, str> {
    match String::from_utf8_lossy(name) {
        text if text.is_ascii() || is_nfc(&text) => text,
        text => Cow::Owned(text.nfc().collect()),
    }
}

impl Globs {
    pub(crate) fn is_empty(&self) -> bool {
        self.ways.is_empty()
    }

    /// Adds a glob: with a slash on the path from the root, without one on the name, at any depth.
    pub(crate) fn add(&mut self, glob: &str) -> Result<(), GlobError> {
        if glob.is_empty() {
            return Err(GlobError { offset: 0, detail: "the glob is empty" });
        }
        let on_name = !glob.trim_end_matches('/').contains('/');
        for text in alternatives(glob)? {
            let way = Way::parse(&text, on_name)?;
            self.ways.push(way);
        }
        Ok(())
    }

    /// Adds names that stand one below the other, at any depth.
    pub(crate) fn add_names<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        let literal = |name: &str| Step::Literal(comparable(name.as_bytes()).into_owned());
        let steps: Vec<_> = std::iter::once(Step::AnyDepth).chain(names.map(literal)).collect();
        self.ways.push(Way { steps, only_directories: false, absolute: false });
    }

    /// Lets globs that name a directory (`dir/`) match all that is below it.
    pub(crate) fn below_directories(mut self) -> Self {
        for way in self.ways.iter_mut().filter(|way| way.only_directories) {
            way.only_directories = false;
            way.push(Step::AnyDepth);
        }
        self
    }

    /// What is left to match at the root whose absolute path is `root`.
    pub(crate) fn start(&self, root: &[u8]) -> Trail {
        let mut trail = Trail::default();
        for (index, way) in self.ways.iter().enumerate() {
            let mut own = Trail::default();
            self.push(&mut own, index as u32, 0);
            if way.absolute {
                let components = root.split(|&b| b == b'/').filter(|name| !name.is_empty());
                let below = components.fold(own.clone(), |trail, name| self.enter(&trail, &comparable(name)));
                // Absolute, but not below this root: then it can only mean the root itself, as in an ignore file.
                if !below.is_dead() {
                    own = below;
                }
            }
            trail.0.append(&mut own.0);
        }
        trail
    }

    /// What is left to match one directory further down.
    pub(crate) fn enter(&self, at: &Trail, name: &str) -> Trail {
        let mut next = Trail::default();
        for &(way, step) in &at.0 {
            match &self.ways[way as usize].steps[step as usize] {
                Step::AnyDepth => self.push(&mut next, way, step),
                other if other.matches(name) => self.push(&mut next, way, step + 1),
                _ => {}
            }
        }
        next
    }

    /// Whether the entry called `name` of the directory matches.
    pub(crate) fn accepts(&self, at: &Trail, name: &str, is_directory: bool) -> bool {
        at.0.iter().any(|&(index, step)| {
            let way = &self.ways[index as usize];
            step as usize + 1 == way.steps.len()
                && (is_directory || !way.only_directories)
                && way.steps[step as usize].matches(name)
        })
    }

    /// Whether a glob spells out the entry called `name` of the directory.
    pub(crate) fn spells(&self, at: &Trail, name: &str) -> bool {
        at.0.iter().any(|&(way, step)| match &self.ways[way as usize].steps[step as usize] {
            Step::Literal(literal) => literal == name,
            Step::AnyDepth | Step::Wild(_) => false,
        })
    }

    fn push(&self, trail: &mut Trail, way: u32, step: u32) {
        let steps = &self.ways[way as usize].steps;
        if step as usize >= steps.len() || trail.0.contains(&(way, step)) {
            return;
        }
        trail.0.push((way, step));
        if matches!(steps[step as usize], Step::AnyDepth) {
            self.push(trail, way, step + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(globs: &[&str]) -> Globs {
        let mut set = Globs::default();
        for glob in globs {
            set.add(glob).unwrap_or_else(|error| panic!("{glob}: {error:?}"));
        }
        set
    }

    /// The trail of the directory that holds `path`, and its name.
    fn walk<'p>(globs: &Globs, path: &'p str) -> (Trail, &'p str) {
        let (dirs, name) = path.rsplit_once('/').map_or((None, path), |(dirs, name)| (Some(dirs), name));
        let dirs = dirs.into_iter().flat_map(|dirs| dirs.split('/'));
        (
            dirs.fold(globs.start(b"/root"), |trail, dir| globs.enter(&trail, &comparable(dir.as_bytes()))),
            name,
        )
    }

    fn accepts(globs: &Globs, path: &str) -> bool {
        let (trail, name) = walk(globs, path);
        globs.accepts(&trail, &comparable(name.as_bytes()), false)
    }

    #[test]
    fn what_globs_match() {
        for (glob, yes, no) in [
            ("*.rs", &["a.rs", "x/y/b.rs", ".rs"][..], &["a.rst", "rs", "a.rs/b"][..]),
            ("./*.rs", &["a.rs"], &["x/a.rs"]),
            ("src/*.rs", &["src/a.rs"], &["a.rs", "src/x/a.rs", "x/src/a.rs"]),
            ("/a", &["a"], &["x/a"]),
            ("/root/src/*", &["src/a"], &["a", "root/src/a"]),
            ("src/**", &["src/a", "src/x/y"], &["src", "x/src/a"]),
            ("src/**/t/*", &["src/t/a", "src/x/y/t/a"], &["src/t/x/a"]),
            ("**/t", &["t", "x/t", "x/y/t"], &["t/x"]),
            ("**", &["a", "a/b"], &[]),
            ("?", &["a", "\u{e9}", "\u{1f9ca}"], &["", "ab"]),
            ("[a-c]x", &["ax", "cx"], &["dx", "x"]),
            ("[!a-c]x", &["dx", "\u{e9}x"], &["ax"]),
            ("[]x]", &["]", "x"], &["a"]),
            ("[\\]-]", &["]", "-"], &["\\"]),
            ("{a,b/c}.t", &["a.t", "b/c.t"], &["x/a.t", "c.t"]),
            ("{a,{b,c}d}", &["a", "bd", "x/cd"], &["b", "d"]),
            ("\\[id\\]", &["[id]"], &["i"]),
            ("\\{x\\}\\*", &["{x}*"], &["x"]),
            ("a*b*c", &["abc", "aXbXbYc"], &["abcd", "ab"]),
            ("Gr\u{fc}*", &["Gr\u{fc}n", "Gru\u{308}n"], &["Grun"]),
            ("Gru\u{308}?", &["Gr\u{fc}n", "Gru\u{308}n"], &["Gr\u{fc}"]),
            ("Gru\u{308}n", &["Gr\u{fc}n"], &[]),
        ] {
            let globs = set(&[glob]);
            for path in yes {
                assert!(accepts(&globs, path), "{glob} should match {path}");
            }
            for path in no {
                assert!(!accepts(&globs, path), "{glob} should not match {path}");
            }
        }
    }

    #[test]
    fn directories_in_which_nothing_can_match_are_dead() {
        let globs = set(&["src/*/deep/*.rs", "docs/**/x"]);
        for (dir, dead) in
            [("src", false), ("src/a", false), ("src/a/b", true), ("lib", true), ("docs/a/b", false)]
        {
            let (trail, _) = walk(&globs, &format!("{dir}/_"));
            assert_eq!(trail.is_dead(), dead, "{dir}");
        }
        assert!(!walk(&set(&["*.rs"]), "a/b/c/_").0.is_dead());
    }

    #[test]
    fn literal_components_are_spelled_out_and_wildcards_are_not() {
        let globs = set(&[".github/*/x", ".env", "**/.cache/.*"]);
        for (path, spelled) in [
            (".github", true),
            (".github/.w", false),
            ("a/.github", false),
            (".env", true),
            ("a/b/.env", true),
            ("a/.cache", true),
            ("a/.cache/.x", false),
        ] {
            let (trail, name) = walk(&globs, path);
            assert_eq!(globs.spells(&trail, name), spelled, "{path}");
        }
    }

    #[test]
    fn only_directories() {
        let globs = set(&["build/"]);
        let trail = globs.start(b"/");
        assert!(globs.accepts(&trail, "build", true) && !globs.accepts(&trail, "build", false));
        let below = set(&["build/"]).below_directories();
        assert!(accepts(&below, "build/x") && accepts(&below, "a/build/x/y") && !accepts(&below, "build"));
    }

    #[test]
    fn bad_globs_say_where() {
        for (glob, offset) in
            [("", 0), ("a[b", 1), ("x{a,b", 1), ("a}b", 1), ("ab\\", 2), ("[z-a]", 0), ("a/[", 2), ("/", 0)]
        {
            let error = Globs::default().add(glob).expect_err(glob);
            assert_eq!(error.offset, offset, "{glob}: {}", error.detail);
        }
        let many = "{a,b}".repeat(12);
        assert!(Globs::default().add(&many).is_err());
    }
}
