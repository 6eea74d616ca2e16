//! STYLE.md, checked: the words that its glossary replaces do not appear in messages, help, rule pages, guides and the README.
//!
//! Files that do not hold to it yet are listed in `style-pending.txt`. A listed file that has become clean must be removed from the
//! list, so the list only shrinks.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Words and phrases with what to write instead. A `*` at the end stands for any ending.
const WORDS: &[(&str, &str)] = &[
    ("mend*", "fix"),
    ("reckon*", "compute, aggregate"),
    ("anew", "again, new; re-"),
    ("so many", "N, this many"),
    ("beside", "next to, in parallel with, compared with"),
    ("crew", "thread pool, workers"),
    ("how sure", "confidence"),
    ("say", "report, print, show, log, warn"),
    ("says", "report, print, show, log, warn"),
    ("said", "report, print, show, log, warn"),
    ("tell", "report, print, show, log, warn"),
    ("tells", "report, print, show, log, warn"),
    ("told", "report, print, show, log, warn"),
    ("card", "GPU"),
    ("cards", "GPUs"),
    ("picture", "image"),
    ("pictures", "images"),
    ("product", "matrix multiplication, matmul"),
    ("products", "matrix multiplications"),
    ("lie", "is, is located, contains"),
    ("lies", "is, is located, contains"),
    ("stands", "is, is located, contains"),
    ("stood", "was, was located"),
    ("utilisation", "utilization"),
    ("colour*", "color"),
    ("behaviour*", "behavior"),
    ("neighbour*", "neighbor"),
    ("favour*", "favor"),
    ("grey", "gray"),
    ("licence", "license"),
    ("analyse", "analyze"),
    ("analysed", "analyzed"),
    ("analysing", "analyzing"),
    ("optimis*", "optimiz…"),
    ("initialis*", "initializ…"),
    ("normalis*", "normaliz…"),
    ("standardis*", "standardiz…"),
    ("synchronis*", "synchroniz…"),
    ("recognis*", "recogniz…"),
    ("summaris*", "summariz…"),
    ("organis*", "organiz…"),
    ("serialis*", "serializ…"),
];

/// "samples a second" is "samples per second": a quantity, `a` or `an`, and what it is counted per.
const QUANTITIES: &[&str] = &[
    "once",
    "twice",
    "times",
    "seconds",
    "samples",
    "steps",
    "batches",
    "images",
    "rows",
    "tokens",
    "epochs",
    "bytes",
    "MB",
    "GB",
    "ms",
    "µs",
    "processes",
];
const PER: &[&str] = &[
    "step", "second", "epoch", "minute", "hour", "day", "batch", "GPU", "worker", "sample", "rank", "node",
    "process", "row", "core", "CPU", "run", "entity", "stock",
];

/// A word of the list in a place where it is right: part of the line, and why.
const ALLOWED: &[(&str, &str)] = &[
    ("tell apart", "no other word for it"),
    ("told apart", "no other word for it"),
    ("docs/pictures", "a folder"),
    (
        "neighbours",
        "the domain of rules about other jobs keeps its name",
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn files() -> Vec<String> {
    let output = Command::new("git")
        .current_dir(root())
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text.split_terminator('\0').map(str::to_owned);
    names.filter(|name| root().join(name).exists()).collect()
}

/// English pages that people read. Measurements keep the words of their day, the reference is generated from what is checked here.
fn is_page(file: &str) -> bool {
    let generated = ["docs/reference/commands.md", "docs/reference/rules.md"];
    file.ends_with(".md")
        && !generated.contains(&file)
        && !file.contains("zh-CN")
        && file != "STYLE.md"
        && !["benches/", "faults/", "crates/"]
            .iter()
            .any(|start| file.starts_with(start))
}

/// The Python package that users import. What the probe contains is for programs.
fn is_python(file: &str) -> bool {
    file.ends_with(".py") && file.starts_with("python/flatout/")
}

fn is_source(file: &str) -> bool {
    file.ends_with(".rs") && file.starts_with("crates/") && file.contains("/src/")
}

/// The string literal that begins at the quote at `start`, and the position after it. Continued lines are joined.
fn literal(text: &str, start: usize) -> (String, usize) {
    let bytes = text.as_bytes();
    let mut at = start + 1;
    let mut found = Vec::new();
    while at < bytes.len() && bytes[at] != b'"' {
        if bytes[at] == b'\\' && bytes.get(at + 1) == Some(&b'\n') {
            at += 2;
            while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
                at += 1;
            }
            continue;
        }
        if bytes[at] == b'\\' && bytes.get(at + 1) == Some(&b'n') {
            found.push(b'\n');
            at += 2;
            continue;
        }
        if bytes[at] == b'\\' {
            at += 1;
        }
        found.push(bytes[at.min(bytes.len() - 1)]);
        at += 1;
    }
    (String::from_utf8_lossy(&found).into_owned(), at + 1)
}

/// The texts of a source file that users see, each with its line.
fn texts_of_source(file: &str, text: &str) -> Vec<(usize, String)> {
    let line_of = |at: usize| text[..at].matches('\n').count() + 1;
    let mut found = Vec::new();
    for (at, _) in text.match_indices("en:") {
        let rest = text[at + 3..].trim_start();
        // Both `en: "…"` and `en: format!("…", …)`.
        let rest = rest.strip_prefix("format!(").unwrap_or(rest).trim_start();
        let quote = text.len() - rest.len();
        if rest.starts_with('"') {
            found.push((line_of(at), literal(text, quote).0));
        }
    }
    if file.contains("/rules/") {
        let head = text.lines().enumerate();
        let head = head.map_while(|(at, line)| Some((at, line.strip_prefix("//!")?)));
        let page = head.take_while(|(_, line)| line.trim() != "---");
        found.extend(page.map(|(at, line)| (at + 1, line.to_owned())));
    }
    if file.starts_with("crates/flatout/src/commands") || file == "crates/flatout/src/main.rs" {
        let code = text.split("#[cfg(test)]").next().unwrap();
        for (at, line) in code.lines().enumerate() {
            // Doc comments of arguments are their help; those of functions are not indented.
            if let Some(help) = line
                .strip_prefix("    ")
                .and_then(|line| line.trim_start().strip_prefix("/// "))
            {
                found.push((at + 1, help.to_owned()));
            }
        }
        for (at, mark) in code.match_indices("EXAMPLES: &str = ") {
            let (examples, _) = literal(code, at + mark.len());
            let first = line_of(at);
            found.extend(
                examples
                    .lines()
                    .enumerate()
                    .map(|(more, line)| (first + more, line.to_owned())),
            );
        }
    }
    found
}

/// The string literals of a Python file, each with its line: docstrings are help, and what else is prose is a message.
fn texts_of_python(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let code = line.split_once("  #").map_or(line, |(code, _)| code);
        if line.trim_start().starts_with('#') {
            continue;
        }
        let strings = code.split('"').skip(1).step_by(2);
        found.extend(strings.map(|string| (at + 1, string.to_owned())));
    }
    found
}

/// The lines of a Markdown page outside of code blocks.
fn texts_of_page(text: &str) -> Vec<(usize, String)> {
    let mut code = false;
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            code = !code;
        } else if !code {
            found.push((at + 1, line.to_owned()));
        }
    }
    found
}

/// Without what is quoted as code, the values of a message and the targets of links.
fn prose(text: &str) -> String {
    let mut plain = String::new();
    for (at, part) in text.split('`').enumerate() {
        plain.push_str(if at % 2 == 0 { part } else { "x" });
    }
    for (open, close) in [("](", ')'), ("{", '}')] {
        while let Some(start) = plain.find(open) {
            let end = plain[start..]
                .find(close)
                .map_or(plain.len(), |end| start + end + 1);
            plain.replace_range(start..end, "x");
        }
    }
    plain
}

/// What STYLE.md replaces in a text, each with what to write instead.
fn wrong_words(text: &str) -> Vec<(String, String)> {
    let text = prose(text);
    let allowed = |word: &str| {
        let lower = text.to_lowercase();
        ALLOWED
            .iter()
            .any(|(part, _)| part.contains(word) && lower.contains(part))
    };
    // Part of `--name`, `a-b` or a path is not prose. Punctuation stays as a word of its own: a phrase does not reach across it.
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '\'' | 'µ' | '%');
    let spaced: String = text
        .chars()
        .flat_map(|c| match c {
            c if is_word(c) => [None, Some(c), None],
            c if c.is_whitespace() => [None, Some(' '), None],
            _ => [Some(' '), Some('.'), Some(' ')],
        })
        .flatten()
        .collect();
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut found = Vec::new();
    for at in 0..words.len() {
        for (wanted, instead) in WORDS {
            let mut parts = wanted.split(' ').enumerate();
            let matches = parts.all(|(more, part)| {
                let Some(word) = words.get(at + more).map(|word| word.to_lowercase()) else {
                    return false;
                };
                match part.strip_suffix('*') {
                    Some(stem) => word.starts_with(stem) && !word.contains(['-', '_', '/']),
                    None => word == part,
                }
            });
            let name = wanted.trim_end_matches('*');
            if matches && !allowed(name) {
                found.push(((*wanted).to_owned(), (*instead).to_owned()));
            }
        }
        // "is no text" is "is not a text file"; "there is no GPU" is right, and so is "no longer".
        if let [subject, "is" | "are" | "was" | "were", "no", noun] = words[at..words.len().min(at + 4)]
            && !subject.eq_ignore_ascii_case("there")
            && !["longer", "more"].contains(&noun)
            && !noun.ends_with("er")
        {
            found.push((format!("is no {noun}"), format!("is not a {noun}")));
        }
        if let [quantity, article, per] = words[at..words.len().min(at + 3)]
            && ["a", "an"].contains(&article)
            && PER.contains(&per)
            && (QUANTITIES.contains(&quantity.to_lowercase().as_str()) || QUANTITIES.contains(&quantity))
        {
            found.push((
                format!("{quantity} {article} {per}"),
                format!("{quantity} per {per}"),
            ));
        }
        if let [one, _, article, per] = words[at..words.len().min(at + 4)]
            && one.eq_ignore_ascii_case("one")
            && ["a", "an"].contains(&article)
            && PER.contains(&per)
        {
            found.push((format!("one … {article} {per}"), format!("one … per {per}")));
        }
    }
    found
}

#[test]
fn texts_use_the_words_of_the_style_guide() {
    let pending = fs::read_to_string(root().join("xtask/tests/style-pending.txt")).unwrap();
    let pending: BTreeSet<&str> = pending
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let (mut checked, mut errors, mut dirty) = (0, Vec::new(), BTreeSet::new());
    let files = files();
    for file in files
        .iter()
        .filter(|file| is_page(file) || is_source(file) || is_python(file))
    {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let texts = if is_page(file) {
            texts_of_page(&text)
        } else if is_python(file) {
            texts_of_python(&text)
        } else {
            texts_of_source(file, &text)
        };
        for (line, text) in texts {
            checked += 1;
            for (word, instead) in wrong_words(&text) {
                dirty.insert(file.as_str());
                if !pending.contains(file.as_str()) {
                    errors.push(format!(
                        "{file}:{line}: `{word}`: write {instead}\n    {}",
                        text.trim()
                    ));
                }
            }
        }
    }
    assert!(checked > 3000, "only {checked} texts: the scan is broken");
    assert!(
        errors.is_empty(),
        "{} words that STYLE.md replaces:\n{}",
        errors.len(),
        errors.join("\n")
    );
    let clean: Vec<&&str> = pending.iter().filter(|file| !dirty.contains(**file)).collect();
    assert!(
        clean.is_empty(),
        "clean or gone; remove from xtask/tests/style-pending.txt: {clean:#?}"
    );
}

#[test]
fn finds_left_out_words_and_rates() {
    let found = |text: &str| -> Vec<String> { wrong_words(text).into_iter().map(|(word, _)| word).collect() };
    assert_eq!(found("Mended 3 files"), ["mend*"]);
    assert_eq!(
        found("13 samples a second, one process a GPU"),
        ["samples a second", "one … a GPU"]
    );
    assert_eq!(found("the GPU's utilisation is told"), ["utilisation", "told"]);
    assert_eq!(
        found("`x.bin` is no text, 5 is no date"),
        ["is no text", "is no date"]
    );
    assert!(found("there is no GPU; it is no longer used, and is no larger").is_empty());
    assert!(found("2.1 times (a step takes 13 ms), one thread, a batch").is_empty());
    assert_eq!(
        found("call `x.say()` in a step, {told} times"),
        Vec::<String>::new()
    );
    assert_eq!(
        found("[text](docs/pictures/so many.png) classes to tell apart"),
        Vec::<String>::new()
    );
    assert_eq!(
        found("recommended, discard, production, --low-utilisation"),
        Vec::<String>::new()
    );
}

#[test]
fn every_allowed_phrase_is_used() {
    for (phrase, why) in ALLOWED {
        let words = WORDS.iter().map(|(word, _)| word.trim_end_matches('*'));
        assert!(
            words.into_iter().any(|word| phrase.contains(word)),
            "{phrase}: {why}"
        );
    }
}
