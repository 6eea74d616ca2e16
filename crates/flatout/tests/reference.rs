//! `docs/reference` is generated: the help of every command in both languages, an index of all rules, the page of each rule.
//! `cargo xtask reference` writes it; this test fails when it is out of date.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

fn flatout(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_flatout"))
        .args(arguments)
        .env("COLUMNS", "100")
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

/// Names that are indented by two blanks, as the help lists commands.
fn names(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let word = line.strip_prefix("  ")?.split_whitespace().next()?;
        let plain = !line.starts_with("   ")
            && word
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        (plain && !word.starts_with('-')).then(|| word.to_owned())
    };
    text.lines().filter_map(name).collect()
}

/// A command's help, then that of its own commands.
fn chapter(path: &[&str], language: &str) -> String {
    let help = flatout(&[path, &["--help", "--lang", language]].concat());
    let mut text = format!(
        "## flatout {}\n\n```text\n{}\n```\n\n",
        path.join(" "),
        help.trim_end()
    );
    let heading = if language == "en" {
        "Commands:\n"
    } else {
        "命令:\n"
    };
    if let Some(listed) = help.split(heading).nth(1) {
        for name in names(listed.split("\n\n").next().unwrap()) {
            text += &chapter(&[path, &[name.as_str()]].concat(), language);
        }
    }
    text
}

fn commands(language: &str) -> String {
    let all = flatout(&["--help", "--lang", "en"]);
    let chapters = names(&all).into_iter().map(|name| chapter(&[&name], language));
    let title = match language {
        "en" => "# Every command\n\nWritten by `cargo xtask reference` from the program's own help.\n\n",
        _ => "# 全部命令\n\n由 `cargo xtask reference` 根据程序自身的帮助生成。\n\n",
    };
    title.to_owned() + chapters.collect::<String>().trim_end() + "\n"
}

/// What `flatout explain --list --json` says of every rule.
fn listed(language: &str) -> Vec<serde_json::Value> {
    let list = flatout(&["explain", "--list", "--json", "--lang", language]);
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    list["rules"].as_array().unwrap().clone()
}

fn rules(language: &str) -> String {
    let listed = listed(language);
    let ids: BTreeSet<&str> = listed.iter().map(|rule| rule["id"].as_str().unwrap()).collect();
    let lint = flatout_lint::rules::RULES.iter().map(|rule| rule.info.id);
    let registered: BTreeSet<&str> = flatout_diagnose::rule_infos()
        .map(|info| info.id)
        .chain(lint)
        .collect();
    assert_eq!(ids, registered, "left: explain --list; right: the registries");
    let mut text = match language {
        "en" => "# Every rule\n\nWritten by `cargo xtask reference`: an index, then the text of `flatout explain RULE` for each rule.\n\n| rule | found in | detects |\n| --- | --- | --- |\n",
        _ => "# 全部规则\n\n由 `cargo xtask reference` 生成：先是索引，然后是每条规则的 `flatout explain 规则` 说明。\n\n| 规则 | 来源 | 检测什么 |\n| --- | --- | --- |\n",
    }
    .to_owned();
    for rule in &listed {
        let id = rule["id"].as_str().unwrap();
        let found_in: Vec<&str> = rule["found_in"]
            .as_array()
            .unwrap()
            .iter()
            .map(|place| match (place.as_str().unwrap(), language) {
                (place, "en") => place,
                ("source", _) => "源码",
                _ => "运行",
            })
            .collect();
        let summary = rule["summary"].as_str().unwrap().replace('|', "\\|");
        text += &format!("| [{id}](#{id}) | {} | {summary} |\n", found_in.join(", "));
    }
    for id in listed.iter().map(|rule| rule["id"].as_str().unwrap()) {
        for line in flatout(&["explain", id, "--lang", language]).lines() {
            // One level deeper, below the page's own title.
            let deeper = if line.starts_with('#') { "#" } else { "" };
            text += &format!(
                "{}{deeper}{line}\n",
                if line.starts_with('#') { "\n" } else { "" }
            );
        }
    }
    text
}

/// Every command of the registry is in the help, and so in the reference.
#[test]
fn the_help_names_every_command() {
    let registry = include_str!("../src/commands.rs");
    let list = registry
        .split("\ncommands! {")
        .nth(1)
        .unwrap()
        .split("\n}")
        .next()
        .unwrap();
    let registered: BTreeSet<String> = list
        .split("= ")
        .skip(1)
        .map(|rest| rest.split(';').next().unwrap().replace('_', "-"))
        .collect();
    let named: BTreeSet<String> = names(&flatout(&["--help", "--lang", "en"])).into_iter().collect();
    assert!(registered.len() > 20, "{registered:?}");
    assert_eq!(registered, named, "left: commands.rs; right: flatout --help");
}

#[test]
fn the_reference_is_up_to_date() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let pages = [
        ("reference/commands.md", commands("en")),
        ("zh-CN/reference/commands.md", commands("zh-CN")),
        ("reference/rules.md", rules("en")),
        ("zh-CN/reference/rules.md", rules("zh-CN")),
    ];
    for (name, page) in pages {
        let path = docs.join(name);
        assert!(page.lines().count() > 20, "{name} is nearly empty:\n{page}");
        if std::env::var_os("FLATOUT_WRITE_REFERENCE").is_some() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &page).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == page,
            "docs/{name} is out of date: run `cargo xtask reference`"
        );
    }
}
