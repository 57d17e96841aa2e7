//! The repository as the tidy tests see it: its packages and its files.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The top of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests lies in the repository").to_owned()
}

/// What cargo knows of the workspace, with or without its dependencies.
pub fn metadata(with_dependencies: bool) -> Value {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version=1", "--locked", "--offline"]).current_dir(root());
    if !with_dependencies {
        cargo.arg("--no-deps");
    }
    let output = cargo.output().expect("cargo runs");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON")
}

/// The files of the repository that end in `extension`, build output left out, relative to its top.
pub fn files(extension: &str) -> Vec<PathBuf> {
    fn walk(dir: &Path, extension: &str, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).expect("the repository is readable").flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let kind = entry.file_type().expect("the entry has a type");
            if kind.is_dir() && name != "target" && name != ".git" && name != "node_modules" {
                walk(&path, extension, found);
            } else if kind.is_file() && path.extension().is_some_and(|end| end == extension) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root(), extension, &mut found);
    found.sort();
    found.into_iter().map(|path| path.strip_prefix(root()).expect("below the top").to_owned()).collect()
}

/// The text of a file of the repository.
pub fn text(path: &Path) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
