//! `docs/reference` is what the program says of itself: every command's help in both languages, every rule's own text.
//! `cargo xtask reference` writes it anew; this test fails when it is no longer true.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

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

/// Names that stand indented by two blanks, as the help lists commands and `explain --list` rules.
fn names(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let word = line.strip_prefix("  ")?.split_whitespace().next()?;
        let plain = !line.starts_with("   ") && word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
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

fn rules(language: &str) -> String {
    let list = flatout(&["explain", "--list", "--lang", language]);
    let mut text = match language {
        "en" => "# Every rule\n\nWritten by `cargo xtask reference`: the text of `flatout explain RULE` for each of them.\n",
        _ => "# 全部规则\n\n由 `cargo xtask reference` 生成：每条规则的 `flatout explain 规则` 说明。\n",
    }
    .to_owned();
    for name in names(&list) {
        for line in flatout(&["explain", &name, "--lang", language]).lines() {
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

#[test]
fn the_reference_is_what_the_program_says() {
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
            "docs/{name} is no longer what the program says: cargo xtask reference"
        );
    }
}
