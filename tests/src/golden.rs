//! Golden cases: data in `tests/cases/OPERATION/*.json`. A case makes files, sends one request, and holds a subset of
//! the answer; `$ROOT` stands for the directory of its files.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::repo;

/// One case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What it shows.
    pub name: String,
    /// Files by their path: text, or an object (see `make` below).
    #[serde(default)]
    pub tree: Map<String, Value>,
    /// The request.
    pub request: Value,
    /// A subset of the answer: objects in part, lists by length and element, other values as they are.
    #[serde(default)]
    pub answer: Value,
    /// The code of the Problem, where the whole request fails.
    #[serde(default)]
    pub problem: Option<String>,
    /// The text of files afterwards; null = absent.
    #[serde(default)]
    pub after: Map<String, Value>,
}

/// A case with its files made.
#[derive(Debug)]
pub struct Made {
    /// The case, `$ROOT` replaced.
    pub case: Case,
    dir: tempfile::TempDir,
}

/// The cases of an operation, in the order of their files.
pub fn cases(operation: &str) -> Vec<Case> {
    let dir = repo::root().join("tests/cases").join(operation);
    let entries = std::fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).expect("a case file is readable");
        serde_json::from_str::<Vec<Case>>(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    files.iter().flat_map(read).collect()
}

impl Case {
    /// Makes the case's files in a fresh directory.
    pub fn make(&self) -> Made {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("the directory is there");
        for (name, spec) in &self.tree {
            make(&root.join(name), spec);
        }
        // Permissions last: a closed directory takes no files.
        for (name, spec) in &self.tree {
            if let Some(mode) = spec.get("mode").and_then(Value::as_str) {
                let mode = u32::from_str_radix(mode, 8).expect("an octal mode");
                std::fs::set_permissions(root.join(name), PermissionsExt::from_mode(mode))
                    .expect("a mode can be set");
            }
        }
        let root = root.to_str().expect("the directory's name is UTF-8").to_owned();
        let mut case = self.clone();
        for value in [&mut case.request, &mut case.answer] {
            replace(value, &root);
        }
        Made { case, dir }
    }
}

impl Made {
    /// Fails where the answer lacks something of the case's, or files are not as they should be afterwards.
    pub fn check(&self, answer: &Value, where_: &str) {
        if let Some(difference) = difference(&self.case.answer, answer, "") {
            panic!("{} ({where_}): {difference}\n{answer:#}", self.case.name);
        }
        self.check_files(where_);
    }

    /// Fails where files are not as they should be afterwards.
    pub fn check_files(&self, where_: &str) {
        for (name, expected) in &self.case.after {
            let found = std::fs::read_to_string(self.dir.path().join(name)).ok().map(Value::from);
            assert_eq!(
                &found.unwrap_or(Value::Null),
                expected,
                "{} ({where_}): {name} afterwards",
                self.case.name
            );
        }
    }
}

/// Makes what `spec` says at `path`: text, or `{text | base64 | repeat: [text, n] | symlink | fifo | directory, mode?}`.
fn make(path: &Path, spec: &Value) {
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("parents can be made");
    let object = spec.as_object();
    let field = |name: &str| object.and_then(|object| object.get(name));
    let content = if let Some(text) = spec.as_str().or(field("text").and_then(Value::as_str)) {
        text.as_bytes().to_vec()
    } else if let Some(text) = field("base64").and_then(Value::as_str) {
        filectx_openapi::Base64::decode(text).expect("base64")
    } else if let Some(repeat) = field("repeat") {
        let times = usize::try_from(repeat[1].as_u64().expect("a number")).expect("a small number");
        repeat[0].as_str().expect("a text").repeat(times).into_bytes()
    } else if let Some(target) = field("symlink").and_then(Value::as_str) {
        return std::os::unix::fs::symlink(target, path).expect("a link can be made");
    } else if field("directory").is_some() {
        return std::fs::create_dir_all(path).expect("a directory can be made");
    } else if field("fifo").is_some() {
        let made = std::process::Command::new("mkfifo").arg(path).status();
        return assert!(made.is_ok_and(|status| status.success()), "mkfifo {}", path.display());
    } else {
        panic!("{}: what is {spec}?", path.display());
    };
    std::fs::write(path, content).expect("a file can be written");
}

fn replace(value: &mut Value, root: &str) {
    match value {
        Value::String(text) => *text = text.replace("$ROOT", root),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, root)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace(field, root)),
        _ => {}
    }
}

/// Where `found` lacks something of `expected`. `"$absent"` stands for a field that must not be there, `"$any"` for any
/// value.
fn difference(expected: &Value, found: &Value, at: &str) -> Option<String> {
    match (expected, found) {
        (Value::Null, _) => None,
        (Value::Object(expected), Value::Object(found)) => expected.iter().find_map(|(key, value)| {
            let at = format!("{at}/{key}");
            match (value.as_str(), found.get(key)) {
                (Some("$absent"), found) => found.map(|found| format!("{at}: should be absent, is {found}")),
                (_, None) => Some(format!("{at}: is absent, should be {value}")),
                (Some("$any"), Some(_)) => None,
                (_, Some(found)) => difference(value, found, &at),
            }
        }),
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            let pairs = expected.iter().zip(found).enumerate();
            pairs
                .map(|(i, (expected, found))| difference(expected, found, &format!("{at}/{i}")))
                .find_map(|d| d)
        }
        (expected, found) if expected == found => None,
        (expected, found) => Some(format!("{at}: should be {expected}, is {found}")),
    }
}
