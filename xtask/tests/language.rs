//! Every message has both languages: the macro demands two texts, this test that the second one is Chinese.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::{Path, PathBuf};

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// The string literal that begins at `text`, without its quotes, and what follows it.
fn literal(text: &str) -> Option<(&str, &str)> {
    let body = text.strip_prefix('"')?;
    let mut escaped = false;
    let end = body.find(|character| {
        let closes = character == '"' && !escaped;
        escaped = character == '\\' && !escaped;
        closes
    })?;
    Some((&body[..end], &body[end + 1..]))
}

fn placeholders(text: &str) -> Vec<String> {
    let text = text.replace("{{", "").replace("}}", "");
    let mut all: Vec<String> = text
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}'))
        .map(|(inside, _)| inside.split(':').next().unwrap_or("").to_owned())
        .collect();
    all.sort();
    all.dedup();
    all
}

#[test]
fn every_message_is_chinese_too_and_with_the_same_values() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .join("crates");
    let mut files = Vec::new();
    rust_files(&root, &mut files);
    let mut seen = 0;
    let mut wrong = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for after in text.split("message!").skip(1) {
            let Some(start) = after.find("en:").filter(|at| *at < 40) else {
                continue;
            };
            let Some((english, rest)) = literal(after[start + 3..].trim_start()) else {
                continue;
            };
            let Some(rest) = rest.trim_start().strip_prefix(',').map(str::trim_start) else {
                continue;
            };
            let Some((chinese, _)) = rest
                .strip_prefix("zh:")
                .and_then(|rest| literal(rest.trim_start()))
            else {
                continue;
            };
            seen += 1;
            let spoken = |text: &str| text.chars().filter(|c| c.is_ascii_alphabetic()).count() > 0;
            let is_chinese = chinese.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
            let outside: String = english
                .split('{')
                .map(|part| part.split_once('}').map_or(part, |p| p.1))
                .collect();
            if english.is_empty()
                || chinese.is_empty()
                || (!is_chinese && spoken(&outside) && !chinese.eq_ignore_ascii_case(english))
            {
                wrong.push(format!("{}: {english:?} / {chinese:?}", file.display()));
            } else if placeholders(english) != placeholders(chinese) {
                wrong.push(format!(
                    "{}: values differ: {english:?} / {chinese:?}",
                    file.display()
                ));
            }
        }
    }
    assert!(seen > 20, "only {seen} messages found: the scan is broken");
    assert!(
        wrong.is_empty(),
        "{} messages:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
