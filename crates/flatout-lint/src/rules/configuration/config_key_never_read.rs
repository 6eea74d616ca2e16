//! # config-key-never-read
//!
//! ## What it detects
//! No Python file of the project mentions a key of a configuration file or a field of a configuration class, although the other keys
//! of its section are read one by one: `compile_model: true` next to `batch_size`, but no code reads `compile_model`.
//!
//! ## Why it is slow
//! A performance setting without effect looks like one that works. People tune it for weeks and measure noise.
//!
//! ## Example
//! ```python
//! # config.yaml: compile_model: true
//! model = Model()
//! ```
//!
//! ## Use instead
//! ```python
//! model = Model()
//! if config["compile_model"]:
//!     model = torch.compile(model)
//! ```
//!
//! ## Evidence
//! The key occurs nowhere in the code: not as a string, an attribute, a keyword or a parameter. At least half of the keys next to it
//! do, and the section is never passed on as a whole (`**config["train"]`, `instantiate(cfg.train)`).
//!
//! ## Fix
//! Read the key where it belongs, or delete it. flatout cannot know which, so it offers no fix.
//!
//! ## When it is wrong
//! A program outside the linted folder reads the file: lint the folder that contains both.
//!
//! ## References
//! Seen in practice: `compile_model` and `compile_mode` in the configuration, and no call of `torch.compile` in the code.
//! See also `config-value-never-matches` and `compile-not-applied`.
//! <https://docs.pytorch.org/docs/stable/generated/torch.compile.html>
//!
//! ---
//! ## 检测什么
//! 配置文件的某个键，或配置类的某个字段，项目中没有任何 Python 文件提到，而同一节的其他键都被逐个读取：`compile_model: true` 就在 `batch_size` 旁边，却从没有人读取 `compile_model`。
//! ## 为什么慢
//! 没有接到任何东西的加速开关看起来像是已经打开。人们调了几周，测到的都是噪声。
//! ## 证据
//! 该键在代码中从未出现：不是字符串、属性、关键字或参数；同一节至少一半的键出现过；并且这一节没有作为整体传递（`**config["train"]`、`instantiate(cfg.train)`）。
//! ## 怎么改
//! 在该读取的地方读取它，或删除它。flatout 不知道是哪一种，所以不提供修改。
//! ## 何时不成立
//! 读取该文件的程序不在被检查的目录中。请检查同时包含两者的目录。
//! ## 参考
//! 实际案例：配置里有 `compile_model` 和 `compile_mode`，代码里没有调用 `torch.compile`。
//! 另见 `config-value-never-matches`、`compile-not-applied`。
//! <https://docs.pytorch.org/docs/stable/generated/torch.compile.html>

use crate::config::Entry;
use crate::rules::prelude::*;
use crate::source::Source;

pub const ID: &str = "config-key-never-read";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Project(check);

/// Of the keys of a section, this share must be read by name before a missing one counts: the code then reads this file, and key by key.
const READ_SHARE: f64 = 0.5;
/// And at least this many of them.
const FEWEST_READ: usize = 2;

/// Words that make a key one about speed; other keys are informational.
const SPEED_WORDS: [&str; 30] = [
    "amp",
    "bf16",
    "fp16",
    "precision",
    "autocast",
    "compile",
    "channels",
    "cudnn",
    "benchmark",
    "tf32",
    "workers",
    "pin",
    "prefetch",
    "persistent",
    "blocking",
    "fused",
    "batch",
    "accumulation",
    "accumulate",
    "cache",
    "checkpointing",
    "interval",
    "freq",
    "every",
    "flash",
    "sdpa",
    "graph",
    "graphs",
    "memory",
    "threads",
];

fn check(project: &Project, report: &mut Report<'_>) {
    if project.modules.is_empty() {
        return;
    }
    for (source, entries) in project.settings() {
        for entry in entries {
            if is_unread(project, source, entries, entry) {
                tell(source, entry, report);
            }
        }
    }
}

fn is_unread(project: &Project, source: &Source, entries: &[Entry], entry: &Entry) -> bool {
    let name = entry.name();
    let plain = name
        .chars()
        .all(|character| character.is_alphanumeric() || character == '_')
        && name.starts_with(|first: char| first.is_alphabetic());
    if !plain || name.len() < 3 || matches!(entry.value, Value::Mapping | Value::Sequence) {
        return false;
    }
    // A field of a class is mentioned where it is declared; that reads nothing.
    let mentioned = if source.is_python() {
        project.mentions().uses(name)
    } else {
        project.mentions().has(name)
    };
    if mentioned || in_sequence(entry) || project.reads().section_is_passed(entry) {
        return false;
    }
    let beside = entries
        .iter()
        .filter(|other| other.section() == entry.section() && other.name() != name);
    let (mut count, mut read) = (0, 0);
    for other in beside {
        count += 1;
        read += usize::from(is_read(project, other));
    }
    read >= FEWEST_READ && read as f64 >= READ_SHARE * count as f64
}

fn is_read(project: &Project, entry: &Entry) -> bool {
    project.reads().of(entry).any(|read| read.used != Use::Written)
}

fn in_sequence(entry: &Entry) -> bool {
    entry
        .path
        .iter()
        .any(|part| part.starts_with(|first: char| first.is_ascii_digit()))
}

fn tell(source: &Source, entry: &Entry, report: &mut Report<'_>) {
    let key = entry.path.join(".");
    let is = entry.span.text(&source.text);
    let about_speed =
        crate::words(entry.name()).any(|word| SPEED_WORDS.contains(&word.to_ascii_lowercase().as_str()));
    let severity = if about_speed {
        SEVERITY
    } else {
        Severity::Information
    };
    report
        .at_entry(
            source,
            entry,
            message!(en: "`{key}: {is}` is never read", zh: "`{key}: {is}` 没有任何代码读取"),
        )
        .severity(severity)
        .because(message!(
            en: "The other keys in this section are read by name, but this one appears nowhere in the code, \
            so changing it has no effect.",
            zh: "同一节的其他键都按名字读取，唯独它没有在代码中出现：改它不会有任何效果。"
        ))
        .advice(
            message!(en: "read the key in the code, or delete it", zh: "在应该用到的地方读取它，或者删除它"),
        );
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "def f(config):\n    a = config['train']['batch_size']\n    b = config['train'].get('epochs')\n    c = config['train']['lr']\n";
    const YAML: &str = "train:\n  batch_size: 8\n  epochs: 3\n  lr: 0.1\n  compile_model: true\n";

    #[test]
    fn fires() {
        let found = findings_of(ID, &[("config.yaml", YAML), ("train.py", CODE)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place().line, 5);
        assert_eq!(found[0].finding.severity, Severity::Warning);
    }

    #[test]
    fn fires_on_a_field_of_a_class() {
        let class = "from dataclasses import dataclass\n@dataclass\nclass Config:\n    batch_size: int = 8\n    epochs: int = 3\n    compile_model: bool = True\n";
        let code = "def f(config):\n    return config.batch_size * config.epochs\n";
        let found = findings_of(ID, &[("settings.py", class), ("train.py", code)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place().line, 6);
        let read = format!("{code}    torch.compile(m, disable=not config.compile_model)\n");
        assert!(findings_of(ID, &[("settings.py", class), ("train.py", &read)]).is_empty());
        let whole = format!("{code}    save(asdict(config))\n");
        assert!(findings_of(ID, &[("settings.py", class), ("train.py", &whole)]).is_empty());
    }

    #[test]
    fn quiet() {
        let reads = format!("{CODE}    d = config['train'].get('compile_model', False)\n");
        assert!(findings_of(ID, &[("config.yaml", YAML), ("train.py", &reads)]).is_empty());
        // Nothing of the file is read: it belongs to somebody else.
        assert!(findings_of(ID, &[("config.yaml", YAML), ("train.py", "x = 1\n")]).is_empty());
    }

    #[test]
    fn look_alike() {
        let splat = format!("{CODE}    return Trainer(**config['train'])\n");
        assert!(findings_of(ID, &[("config.yaml", YAML), ("train.py", &splat)]).is_empty());
        let all = format!("{CODE}    for key, value in config['train'].items():\n        print(key)\n");
        assert!(findings_of(ID, &[("config.yaml", YAML), ("train.py", &all)]).is_empty());
    }
}
