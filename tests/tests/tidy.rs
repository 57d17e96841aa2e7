//! The laws of the house that no compiler knows: who may use whom, where the disk and the network are touched, what
//! every file says at its top, and which licences come in.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use filectx_tests::repo;
use serde_json::Value;

/// The longest source file that need not say in its header why it is long.
const LINES: usize = 400;

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().expect("packages").iter()
}

fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn sources() -> Vec<(PathBuf, String)> {
    repo::files("rs").into_iter().map(|path| (path.clone(), repo::text(&path))).collect()
}

fn fail_on(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

#[test]
fn packages_use_only_whom_they_may() {
    let allowed = |package: &str| -> &[&str] {
        match package {
            "filectx-files" => &["filectx-openapi"],
            "filectx-service" => &["filectx-openapi", "filectx-files"],
            "filectx-client" => &["filectx-openapi", "filectx-files"],
            "filectx-tests" => &["filectx-openapi", "filectx-files", "filectx-service", "filectx-client"],
            _ => &[],
        }
    };
    let metadata = repo::metadata(false);
    let mut wrong = Vec::new();
    for package in packages(&metadata) {
        let name = text_of(package, "name");
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let used = text_of(dependency, "name");
            let ours = used.starts_with("filectx-") && !allowed(name).contains(&used);
            let theirs = match used {
                "axum" | "utoipa-axum" | "utoipa-swagger-ui" => {
                    name != "filectx-service" && name != "filectx-tests"
                }
                "reqwest" => name != "filectx-client",
                "tokio" | "hyper" => name == "filectx-files" || name == "filectx-openapi",
                _ => false,
            };
            if ours || theirs {
                wrong.push(format!("{name} uses {used}"));
            }
        }
    }
    fail_on("edges that ARCHITECTURE.md does not allow", &wrong);
}

#[test]
fn every_version_stands_once() {
    let mut wrong = Vec::new();
    for path in repo::files("toml").into_iter().filter(|path| path.ends_with("Cargo.toml")) {
        if path == Path::new("Cargo.toml") || path.starts_with("tests/fuzz") {
            continue;
        }
        let mut section = String::new();
        for line in repo::text(&path).lines() {
            if line.starts_with('[') {
                section = line.to_owned();
            } else if section.contains("dependencies")
                && line.contains('=')
                && !line.contains("workspace = true")
            {
                wrong.push(format!("{}: {line}", path.display()));
            }
        }
    }
    fail_on("dependencies whose version is not the workspace's", &wrong);
}

#[test]
fn every_file_says_what_it_is_for_and_stays_readable() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let header: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!")).collect();
        if header.is_empty() {
            wrong.push(format!("{}: begins without //!", path.display()));
        }
        let lines = text.lines().count();
        if lines > LINES && !header.join(" ").contains("Long because") {
            wrong.push(format!(
                "{}: {lines} lines; split it, or say in its header `Long because ...`",
                path.display()
            ));
        }
    }
    fail_on("source files", &wrong);
}

/// Lines of product code, tests left out, that hold one of `words`.
fn lines_with(words: &[&str], within: &str, except: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in sources() {
        let name = path.to_string_lossy().into_owned();
        let is_test = name.ends_with("tests.rs") || name.contains("/tests/") || name.contains("/examples/");
        if !name.starts_with(within) || is_test || except.iter().any(|except| name.starts_with(except)) {
            continue;
        }
        for (number, line) in
            text.lines().enumerate().take_while(|(_, line)| !line.starts_with("#[cfg(test)]"))
        {
            let code = line.split("//").next().unwrap_or_default();
            if words.iter().any(|word| code.contains(word)) {
                found.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    found
}

#[test]
fn only_disk_touches_the_disk() {
    let engine = "service/files/src/";
    let wrong = lines_with(
        &["std::fs", "rustix::fs", "File::open"],
        engine,
        &["service/files/src/disk/", "service/files/src/lib.rs"],
    );
    fail_on("the engine touches the disk outside disk/", &wrong);
}

#[test]
fn the_network_has_one_door_on_each_side() {
    fail_on(
        "reqwest outside its one file",
        &lines_with(&["reqwest::", "use reqwest"], "client/src/", &["client/src/http"]),
    );
    fail_on(
        "ssh outside its folder",
        &lines_with(&["Command::new(\"ssh\")"], "client/src/", &["client/src/ssh/"]),
    );
    fail_on(
        "the engine knows HTTP or logs",
        &lines_with(&["http::", "tokio::", "tracing::"], "service/files/src/", &[]),
    );
}

#[test]
fn no_test_sleeps_or_is_ignored() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            let sleeps = line.contains("thread::sleep") || line.contains("time::sleep(");
            let product = path.starts_with("service/src") || path.starts_with("client/src");
            if line.contains("#[ignore") || (sleeps && !product && !line.contains("contains(")) {
                wrong.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    wrong.retain(|line| !line.starts_with("tests/tests/tidy.rs"));
    fail_on("tests that wait for time instead of an event, or do not run", &wrong);
}

#[test]
fn every_operation_has_its_schemas() {
    let document: Value =
        serde_json::from_str(&repo::text(Path::new("openapi/openapi.json"))).expect("the document is JSON");
    assert!(text_of(&document, "openapi").starts_with("3.1"), "OpenAPI {}", document["openapi"]);
    let mut wrong = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            if method == "post" && operation["requestBody"]["content"]["application/json"]["schema"].is_null()
            {
                wrong.push(format!("{method} {path}: no request schema"));
            }
            if operation["responses"]["200"].is_null() || text_of(operation, "summary").is_empty() {
                wrong.push(format!("{method} {path}: no answer or summary"));
            }
        }
    }
    fail_on("operations of the document", &wrong);
}

#[test]
fn licences_are_those_of_deny_toml() {
    let deny = repo::text(Path::new("deny.toml"));
    let allowed: BTreeSet<&str> = deny
        .lines()
        .skip_while(|line| !line.starts_with("allow = ["))
        .skip(1)
        .take_while(|line| !line.starts_with(']'))
        .filter_map(|line| line.trim().trim_end_matches(',').trim_matches('"').into())
        .collect();
    assert!(allowed.contains("MIT"), "deny.toml lists the licences that may come in");
    let exceptions: Vec<(&str, &str)> = deny.lines().filter_map(exception).collect();
    let metadata = repo::metadata(true);
    let programs = within_programs(&metadata);
    let mut wrong = Vec::new();
    for package in packages(&metadata) {
        let (name, licence) = (text_of(package, "name"), text_of(package, "license"));
        let of_tests = !programs.contains(text_of(package, "id")) && exceptions.contains(&(name, licence));
        if !permits(licence, &allowed) && !of_tests {
            wrong.push(format!("{name}: {licence:?}"));
        }
    }
    fail_on("packages under a licence that deny.toml does not allow", &wrong);
}

/// The crate and the licence of an exception: `{ crate = "NAME", allow = ["LICENCE"] },`.
fn exception(line: &str) -> Option<(&str, &str)> {
    let (name, licence) = line.trim().strip_prefix("{ crate = \"")?.split_once("\", allow = [\"")?;
    Some((name, licence.strip_suffix("\"] },")?))
}

/// The ids of all packages that a program consists of, or that help to build it.
fn within_programs(metadata: &Value) -> BTreeSet<&str> {
    let nodes = metadata["resolve"]["nodes"].as_array().expect("nodes");
    let node = |id: &str| nodes.iter().find(|node| text_of(node, "id") == id).expect("a node");
    let of_programs =
        |package: &&Value| ["filectx-service", "filectx-client"].contains(&text_of(package, "name"));
    let mut waiting: Vec<&str> =
        packages(metadata).filter(of_programs).map(|package| text_of(package, "id")).collect();
    let mut found = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if found.insert(id) {
            let dependencies = node(id)["deps"].as_array().expect("dependencies").iter();
            let not_of_tests = |dependency: &&Value| {
                dependency["dep_kinds"].as_array().expect("kinds").iter().any(|kind| kind["kind"] != "dev")
            };
            waiting.extend(dependencies.filter(not_of_tests).map(|dependency| text_of(dependency, "pkg")));
        }
    }
    assert!(found.len() > 50, "programs consist of many packages");
    found
}

/// Whether an SPDX expression can be met by the allowed licences: some alternative, all of whose parts are allowed.
fn permits(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let flat = expression.replace(['(', ')'], " ").replace('/', " OR ");
    // `(A OR B) AND C`: each part of an AND needs an allowed alternative; without parentheses OR binds weaker.
    if expression.contains('(') {
        return flat.split(" AND ").all(|part| part.split(" OR ").any(|name| allowed.contains(name.trim())));
    }
    flat.split(" OR ").any(|part| part.split(" AND ").all(|name| allowed.contains(name.trim())))
}

#[test]
fn expressions_of_licences() {
    let allowed = BTreeSet::from(["MIT", "Unicode-3.0"]);
    for (expression, expected) in [
        ("MIT", true),
        ("MIT OR GPL-3.0", true),
        ("Apache-2.0/MIT", true),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("MIT AND GPL-3.0", false),
        ("AGPL-3.0", false),
        ("", false),
    ] {
        assert_eq!(permits(expression, &allowed), expected, "{expression}");
    }
}
