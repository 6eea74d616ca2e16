//! What `docs/architecture.md`, `CONTRIBUTING.md` and `README.md` claim, checked.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Tracked files that exist, and new ones that git does not ignore.
fn files() -> Vec<String> {
    let output = Command::new("git")
        .current_dir(root())
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text.split_terminator('\0').map(str::to_owned);
    names.filter(|name| root().join(name).exists()).collect()
}

/// The crates of the workspace and those of ours that each one uses, without the ones of its tests.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().clone();
    let ours: BTreeSet<String> = packages
        .iter()
        .map(|package| package["name"].as_str().unwrap().to_owned())
        .collect();
    packages
        .iter()
        .map(|package| {
            let used = package["dependencies"].as_array().unwrap().iter();
            let used = used.filter(|dependency| dependency["kind"] != "dev");
            let used = used.map(|dependency| dependency["name"].as_str().unwrap().to_owned());
            (
                package["name"].as_str().unwrap().to_owned(),
                used.filter(|name| ours.contains(name)).collect(),
            )
        })
        .collect()
}

/// The table "crate | holds | may use" of the page: a crate's description, and what it may use (`None`: everything).
fn crate_table(page: &str) -> BTreeMap<String, (String, Option<BTreeSet<String>>)> {
    let rows = page
        .lines()
        .skip_while(|line| !line.starts_with("| crate | holds | may use |"));
    rows.skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let [name, holds, may_use] = cells[..] else {
                panic!("not three cells: {line}");
            };
            let used = match may_use {
                "all" => None,
                "–" => Some(BTreeSet::new()),
                names => Some(names.split(", ").map(|name| format!("flatout-{name}")).collect()),
            };
            (name.trim_matches('`').to_owned(), (holds.to_owned(), used))
        })
        .collect()
}

#[test]
fn the_crate_table_matches_cargo_metadata() {
    let table = crate_table(&read("docs/architecture.md"));
    let real = dependencies();
    assert!(real.len() > 10, "{real:?}");
    let listed: BTreeSet<&String> = table.keys().collect();
    let crates: BTreeSet<&String> = real.keys().collect();
    assert_eq!(listed, crates, "docs/architecture.md must list every crate");
    for (name, used) in &real {
        assert!(
            !used.contains("flatout") && !used.contains("xtask"),
            "{name} uses the command line"
        );
        if let (_, Some(allowed)) = &table[name] {
            assert_eq!(
                used, allowed,
                "left: what {name} uses; right: docs/architecture.md"
            );
        }
    }
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    for name in files().iter().filter(|name| name.ends_with("/Cargo.toml")) {
        assert!(
            read(name).contains("[lints]\nworkspace = true"),
            "{name} has no [lints] of the workspace: unwrap and undocumented unsafe would pass"
        );
    }
}

/// The part of a source file before its tests.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap()
}

#[test]
fn pure_crates_do_no_input_or_output_and_read_no_clock() {
    const IMPURE: [&str; 7] = [
        "std::fs",
        "std::net",
        "std::process",
        "std::thread",
        "Instant",
        "SystemTime",
        "std::env",
    ];
    let table = crate_table(&read("docs/architecture.md"));
    let pure: Vec<&String> = table
        .iter()
        .filter(|(_, (holds, _))| holds.contains("Pure"))
        .map(|(name, _)| name)
        .collect();
    assert!(pure.len() >= 2, "{pure:?}");
    for name in pure {
        let source = format!("crates/{name}/src/");
        for file in files()
            .iter()
            .filter(|file| file.starts_with(&source) && file.ends_with(".rs") && !file.contains("testing"))
        {
            let text = read(file);
            for line in without_tests(&text)
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"))
            {
                let found = IMPURE.iter().find(|word| line.contains(*word));
                assert!(found.is_none(), "{file} is not pure: {line}");
            }
        }
    }
}

/// What stands between backticks, outside of code blocks.
fn quoted(page: &str) -> Vec<String> {
    let prose: String = page.split("```").step_by(2).collect::<Vec<_>>().join("\n");
    prose.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// `a/{b, c}/d` and `a/<name>/d` as patterns of path parts: `None` matches any.
fn matches_path(pattern: &str, path: &str) -> bool {
    let mut wanted = pattern.trim_end_matches('/').rsplit('/');
    let mut real = path.rsplit('/');
    wanted.all(|part| {
        real.next().is_some_and(|name| {
            part == name
                || part.contains('<')
                || part.contains('{')
                || (part.contains('*')
                    && name.starts_with(part.split('*').next().unwrap())
                    && name.ends_with(part.split('*').next_back().unwrap()))
        })
    })
}

#[test]
fn every_file_named_by_the_docs_exists() {
    let files = files();
    let folders: BTreeSet<String> = files
        .iter()
        .flat_map(|file| Path::new(file).ancestors().skip(1))
        .map(|folder| folder.to_string_lossy().into_owned())
        .collect();
    let mut checked = 0;
    for page in [
        "docs/architecture.md",
        "docs/concepts/engine.md",
        "docs/concepts/records-and-findings.md",
        "CONTRIBUTING.md",
        "README.md",
        "SECURITY.md",
    ] {
        for name in quoted(&read(page)) {
            let source = [".rs", ".py", ".toml", ".sh", ".cu"]
                .iter()
                .any(|end| name.ends_with(end));
            let rooted = [
                "crates/",
                "xtask/",
                "python/",
                "faults/",
                "docs/",
                "benches/",
                "examples/",
            ]
            .iter()
            .any(|start| name.starts_with(start));
            let user_file = ["train.py", "train.sh", "flatout.toml", "model.py"].contains(&name.as_str());
            if name.contains(' ') && !name.contains('{') || !(source || rooted) || user_file {
                continue;
            }
            checked += 1;
            let name = name.split(" <").next().unwrap();
            let exists = files.iter().chain(&folders).any(|path| matches_path(name, path));
            assert!(exists, "{page} names `{name}`, which does not exist");
        }
    }
    assert!(checked > 25, "only {checked} names: the scan is broken");
}

#[test]
fn every_link_of_the_docs_leads_somewhere() {
    let mut checked = 0;
    for page in files().iter().filter(|file| file.ends_with(".md")) {
        let text = read(page);
        let prose: String = text.split("```").step_by(2).collect();
        for target in prose
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let path = target.split('#').next().unwrap();
            if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
                continue;
            }
            checked += 1;
            let file = root().join(page).parent().unwrap().join(path);
            assert!(file.exists(), "{page} links to {target}");
        }
    }
    assert!(checked > 20, "only {checked} links: the scan is broken");
}

/// The words that follow `before` in a text.
fn words_after<'a>(text: &'a str, before: &str) -> Vec<&'a str> {
    let word = |rest: &'a str| {
        let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '-');
        &rest[..end.unwrap_or(rest.len())]
    };
    let found = text.split(before).skip(1).map(word);
    found
        .filter(|word| !word.is_empty() && !word.starts_with('-'))
        .collect()
}

#[test]
fn every_command_named_by_the_docs_exists() {
    let tasks = read("xtask/src/main.rs");
    let commands = read("crates/flatout/src/commands.rs");
    let mut checked = 0;
    let pages = files();
    let pages = pages
        .iter()
        .filter(|file| file.ends_with(".md") || file.starts_with(".github/") || file.starts_with(".ci/"));
    for page in pages.filter(|file| *file != "CHANGELOG.md") {
        let text = read(page);
        for task in words_after(&text, "cargo xtask ") {
            checked += 1;
            assert!(
                tasks.contains(&format!("name: \"{task}\"")),
                "{page}: cargo xtask {task}"
            );
        }
        for command in words_after(&text, "`flatout ") {
            checked += 1;
            let line = format!("= {};", command.replace('-', "_"));
            let known = commands.contains(&line) || command == "help";
            assert!(known, "{page}: flatout {command}");
        }
    }
    assert!(checked > 50, "only {checked} commands: the scan is broken");
}

/// A module of a registry is declared by its line there; a file without one would not even be compiled.
#[test]
fn every_file_of_a_registry_is_registered() {
    let registries = [
        (
            "crates/flatout/src/commands.rs",
            "crates/flatout/src/commands/",
            0,
        ),
        (
            "crates/flatout-lint/src/rules.rs",
            "crates/flatout-lint/src/rules/",
            1,
        ),
        (
            "crates/flatout-diagnose/src/rules.rs",
            "crates/flatout-diagnose/src/rules/",
            1,
        ),
    ];
    for (registry, folder, depth) in registries {
        let text = read(registry);
        let list = text
            .split("commands! {")
            .last()
            .unwrap()
            .split("\nrules! {")
            .last()
            .unwrap();
        let listed: BTreeSet<&str> = list
            .split(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit() && c != '_')
            .collect();
        let mut checked = 0;
        for file in files() {
            let Some(rest) = file.strip_prefix(folder) else {
                continue;
            };
            let Some(name) = rest.strip_suffix(".rs") else {
                continue;
            };
            // The verdicts of `health` have a registry of their own.
            if rest.matches('/').count() != depth || rest.starts_with("health/") {
                continue;
            }
            checked += 1;
            let name = name.rsplit('/').next().unwrap();
            assert!(listed.contains(name), "{file} is not in the list of {registry}");
        }
        assert!(checked > 10, "{folder}: only {checked} files");
    }
}

#[test]
fn every_ignored_test_has_a_reason() {
    const REASONS: [&str; 4] = [
        "needs a GPU",
        "needs a Python 3.14 with torch",
        "takes minutes: ",
        "tune sees no steps of this program",
    ];
    for file in files().iter().filter(|file| file.ends_with(".rs")) {
        // Spelled so that this file does not contain it.
        for rest in read(file).split(concat!("#[", "ignore")).skip(1) {
            let known = REASONS
                .iter()
                .any(|reason| rest.starts_with(&format!(" = \"{reason}")));
            assert!(
                known,
                "{file}: a test is ignored without one of the reasons {REASONS:?}"
            );
        }
    }
}

/// `crates/flatout-record/src/lib.rs` lists the files of a run record.
#[test]
fn the_page_of_the_record_lists_every_file() {
    let page = read("crates/flatout-record/src/lib.rs");
    let listed: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("//! | `")?.split('`').next())
        .collect();
    let mut written = BTreeSet::new();
    for file in files()
        .iter()
        .filter(|file| file.starts_with("crates/flatout-record/src/"))
    {
        let text = read(file);
        for quoted in without_tests(&text).split('"').skip(1).step_by(2) {
            let name = !quoted.contains(' ');
            if name && (quoted.ends_with(".json") || quoted.ends_with(".jsonl")) {
                written.insert(quoted.to_owned());
            }
        }
        // The writer names a file of lines without its extension: `samples: lines("samples")?`.
        for stem in text
            .split("lines(\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
        {
            written.insert(format!("{stem}.jsonl"));
        }
    }
    let written: BTreeSet<&str> = written.iter().map(String::as_str).collect();
    assert_eq!(listed, written, "left: the page in lib.rs; right: the code");
}
