//! # config-value-never-matches
//!
//! ## What it detects
//! A key of a configuration file, or the default of a configuration class, has a value that the code never matches: `amp: true`,
//! while the code checks `config["train"].get("amp") == "bf16"`. The feature stays off without a warning.
//!
//! ## Why it is slow
//! Keys like this usually enable mixed precision, compilation or a faster kernel. The program runs, but without the speedup.
//!
//! ## Example
//! ```python
//! # config.yaml: amp: true
//! use_amp = config["train"].get("amp") == "bf16"
//! ```
//!
//! ## Use instead
//! ```python
//! # config.yaml: amp: bf16
//! use_amp = config["train"].get("amp") == "bf16"
//! ```
//!
//! ## Evidence
//! Every location that reads the key only compares it with constants of another type, or with another spelling of the same word
//! (`bfloat16` and `bf16`). A key that is also passed on or tested for truth is not reported.
//!
//! ## Fix
//! Write the value that the code checks for, or make the code accept the written one.
//!
//! ## Fix safety
//! `--fix --unsafe` writes the value that the code checks for. It is unsafe because it enables the feature, which changes what the
//! run computes.
//!
//! ## When it is wrong
//! Another program reads the same file, or the value is replaced on the command line before it is compared.
//!
//! ## References
//! Seen in practice: this mistake cost a team a third of the speed for weeks, while the configuration looked right.
//! See also `config-key-never-read` and `mixed-precision-inactive`.
//! <https://docs.pytorch.org/docs/stable/amp.html>
//!
//! ---
//! ## 检测什么
//! 配置文件的键或配置类的默认值永远不可能与代码匹配：`amp: true`，而代码判断的是 `config["train"].get("amp") == "bf16"`。该键所指的功能一直关闭，而且没有任何提示。
//! ## 为什么慢
//! 这样写的键用来打开混合精度、编译或更快的 kernel。程序能运行，但速度是没有它们时的速度。
//! ## 证据
//! 读取该键的每一处都只与另一种类型的常量比较，或与同一个词的另一种写法比较（`bfloat16` 与 `bf16`）。还被传递或判断真假的键不在此列。
//! ## 怎么改
//! 写成代码要的值，或让代码接受现在的写法。
//! ## 修改是否安全
//! `--fix --unsafe` 写入代码所期望的值。之所以不安全，是因为它会真正启用该功能，从而改变运行的计算结果。
//! ## 何时不成立
//! 另一个程序读取同一文件，或值在比较之前被命令行替换。
//! ## 参考
//! 实际案例：这个问题使一个团队数周内损失了三分之一的速度；配置看起来一直是对的。
//! 另见 `config-key-never-read`、`mixed-precision-inactive`。
//! <https://docs.pytorch.org/docs/stable/amp.html>

use crate::rules::prelude::*;

pub const ID: &str = "config-value-never-matches";
pub const SEVERITY: Severity = Severity::Critical;
pub const CHECK: Check = Check::Project(check);

/// Different spellings of the same thing.
const SAME: [&[&str]; 5] = [
    &["bf16", "bfloat16", "bf16-mixed", "torch.bfloat16"],
    &["fp16", "float16", "half", "16-mixed", "torch.float16"],
    &["fp32", "float32", "full"],
    &["adamw", "adam_w", "adamw_torch"],
    &["max-autotune", "max_autotune", "maxautotune"],
];

fn check(project: &Project, report: &mut Report<'_>) {
    for (source, entries) in project.settings() {
        for entry in entries {
            let reads: Vec<_> = project.reads().of(entry).collect();
            if reads.is_empty() {
                continue;
            }
            let mut constants = Vec::new();
            let only_compared = reads.iter().all(|read| match &read.used {
                Use::Compared(more) => {
                    constants.extend(more.iter().cloned());
                    true
                }
                _ => false,
            });
            let wanted = only_compared
                .then(|| replacement(&entry.value, &constants))
                .flatten();
            let Some(wanted) = wanted else { continue };
            let (key, is) = (entry.path.join("."), entry.span.text(&source.text));
            let asked = list(&constants);
            let first = project.code(reads[0].module, reads[0].id);
            let found = report.at_entry(
                source,
                entry,
                message!(
                    en: "`{key}` is `{is}`, but the code only compares it with {asked}, so it never takes \
                    effect",
                    zh: "`{key}` 的值是 `{is}`，而代码只拿它与 {asked} 比较：这项设置从未生效"
                ),
            );
            found.see(first.place());
            let quoted = quote(&wanted, is, &source.path);
            if source.is_python() {
                // The field has a declared type too, which a person has to change with it.
                found.advice(message!(
                    en: "set it to {quoted}, which the code checks for, and update its type annotation",
                    zh: "改为 {quoted}（代码所期望的值），类型标注也要一起改"
                ));
                continue;
            }
            let edit = flatout_core::Edit {
                file: source.path.clone(),
                start: entry.span.start as usize,
                end: entry.span.end as usize,
                text: quoted.clone(),
            };
            found.unsafe_fix(
                vec![edit],
                message!(en: "write `{key}: {quoted}`, which the code checks for", zh: "改为 `{key}: {quoted}`，这是代码所期望的值"),
            );
        }
    }
}

/// The constant that the value was surely meant to be; `None` when the value may be meant to match nothing.
fn replacement(value: &Value, constants: &[Value]) -> Option<String> {
    let texts: Vec<&str> = constants
        .iter()
        .filter_map(|one| {
            if let Value::Text(text) = one {
                Some(text.as_str())
            } else {
                None
            }
        })
        .collect();
    match value {
        // Switched on, while the code asks for a name. `false` against names is off either way.
        Value::Boolean(true) if texts.len() == constants.len() && !texts.is_empty() => {
            let off = |text: &&&str| matches!(**text, "none" | "no" | "off" | "false" | "fp32" | "");
            let mut on = texts.iter().filter(|text| !off(text));
            let preferred = texts.iter().find(|text| text.eq_ignore_ascii_case("true"));
            preferred.or_else(|| on.next()).map(|text| (*text).to_owned())
        }
        Value::Text(is) if !constants.contains(value) => {
            let wanted = texts.iter().find(|text| same_meaning(is, text));
            wanted.map(|text| (*text).to_owned())
        }
        Value::Integer(is) if texts.len() == constants.len() => texts
            .iter()
            .find(|text| **text == is.to_string())
            .map(|text| (*text).to_owned()),
        _ => None,
    }
}

fn same_meaning(one: &str, other: &str) -> bool {
    let (one, other) = (one.to_ascii_lowercase(), other.to_ascii_lowercase());
    one == other
        || SAME
            .iter()
            .any(|group| group.contains(&one.as_str()) && group.contains(&other.as_str()))
}

fn list(constants: &[Value]) -> String {
    let mut shown: Vec<String> = constants
        .iter()
        .map(|one| match one {
            Value::Text(text) => format!("'{text}'"),
            Value::Boolean(flag) => if *flag { "True" } else { "False" }.to_owned(),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            _ => "None".to_owned(),
        })
        .collect();
    shown.dedup();
    shown.join(", ")
}

/// Quoted as the old value was; JSON and TOML always quote.
fn quote(wanted: &str, old: &str, path: &std::path::Path) -> String {
    let is_yaml = path
        .extension()
        .is_some_and(|extension| extension == "yaml" || extension == "yml");
    let mark = if is_yaml {
        old.chars().next().filter(|first| matches!(first, '"' | '\''))
    } else {
        Some('"')
    };
    // An unquoted number or word with a meaning of its own must be quoted to stay a string.
    let needs_quotes = is_yaml
        && (wanted.parse::<f64>().is_ok() || matches!(wanted, "true" | "false" | "null" | "yes" | "no"));
    match mark.or(needs_quotes.then_some('"')) {
        Some(mark) => format!("{mark}{wanted}{mark}"),
        None => wanted.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "import torch\n\nclass Engine:\n    def __init__(self, config):\n        self.use_amp = config['train'].get('amp', 'none') == 'bf16'\n";

    #[test]
    fn fires() {
        let files = [
            (
                "config/training_config.yaml",
                "train:\n  amp: true   # mixed precision\n  epochs: 3\n",
            ),
            ("engine.py", CODE),
        ];
        let found = findings_of(ID, &files);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place().line, 2);
        assert_eq!(
            fixed(ID, &files)[0].1,
            "train:\n  amp: bf16   # mixed precision\n  epochs: 3\n"
        );
        let spelling = [
            ("c.json", "{\"train\": {\"amp\": \"bfloat16\"}}"),
            ("engine.py", CODE),
        ];
        assert_eq!(findings_of(ID, &spelling).len(), 1);
        assert_eq!(fixed(ID, &spelling)[0].1, "{\"train\": {\"amp\": \"bf16\"}}");
    }

    #[test]
    fn fires_on_a_default_of_a_class() {
        let class = "from dataclasses import dataclass\n@dataclass\nclass TrainConfig:\n    amp: bool = True\n@dataclass\nclass Config:\n    train: TrainConfig\n";
        let code = "def f(cfg):\n    return cfg.train.amp == 'bf16'\n";
        let found = findings_of(ID, &[("settings.py", class), ("engine.py", code)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place().line, 4);
        let right = class.replace("bool = True", "str = 'bf16'");
        assert!(findings_of(ID, &[("settings.py", &right), ("engine.py", code)]).is_empty());
    }

    #[test]
    fn quiet() {
        for yaml in [
            "train:\n  amp: bf16\n",
            "train:\n  amp: none\n",
            "train:\n  amp: false\n",
            "train:\n  amp: fp16\n",
        ] {
            assert!(
                findings_of(ID, &[("config.yaml", yaml), ("engine.py", CODE)]).is_empty(),
                "{yaml}"
            );
        }
    }

    #[test]
    fn look_alike() {
        // The value is also used as it is, so `true` does something.
        let code = "def f(config):\n    amp = config['train'].get('amp')\n    if amp == 'bf16':\n        pass\n    return bool(amp)\n";
        assert!(
            findings_of(
                ID,
                &[("config.yaml", "train:\n  amp: true\n"), ("engine.py", code)]
            )
            .is_empty()
        );
        // Another section of the same name.
        assert!(
            findings_of(
                ID,
                &[("config.yaml", "model:\n  amp: true\n"), ("engine.py", CODE)]
            )
            .is_empty()
        );
    }
}
