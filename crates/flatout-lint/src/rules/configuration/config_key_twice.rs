//! # config-key-twice
//!
//! ## What it detects
//! A key appears twice in the same section of a YAML or JSON file.
//!
//! ## Why it is slow
//! Parsers keep the last value without a warning. Whoever changes the first one (the batch size, the workers, the precision) measures
//! a run in which nothing changed.
//!
//! ## Example
//! ```yaml
//! num_workers: 8
//! batch_size: 256
//! num_workers: 0
//! ```
//!
//! ## Use instead
//! ```yaml
//! num_workers: 8
//! batch_size: 256
//! ```
//!
//! ## Evidence
//! Both lines and both values.
//!
//! ## Fix
//! Delete the one you do not want. flatout cannot know which, so it offers no fix.
//!
//! ## When it is wrong
//! The file is a template that is filled in before it is read.
//!
//! ## References
//! YAML 1.2, "Mappings": keys are unique. RFC 8259: names within an object should be unique.
//! <https://yaml.org/spec/1.2.2/#mapping>
//!
//! ---
//! ## 检测什么
//! YAML 或 JSON 文件的同一节中出现两次的键。
//! ## 为什么慢
//! 读取时只保留最后一个，不作任何提示。修改第一个（batch、worker、精度）的人，测的是什么都没变的运行。
//! ## 证据
//! 两行的位置；两个值。
//! ## 怎么改
//! 删除不需要的那个。flatout 不知道是哪一个，所以不提供修改。
//! ## 何时不成立
//! 该文件是读取之前才填充的模板。
//! ## 参考
//! YAML 1.2 “Mappings”：键是唯一的。RFC 8259：对象中的名称应当唯一。
//! <https://yaml.org/spec/1.2.2/#mapping>

use crate::rules::prelude::*;

pub const ID: &str = "config-key-twice";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Project(check);

fn check(project: &Project, report: &mut Report<'_>) {
    for document in &project.documents {
        for before in &document.lost {
            let (entry, before) = (&document.entries[before.by], &before.entry);
            let text = &document.source.text;
            let (key, kept, lost) = (
                entry.path.join("."),
                entry.span.text(text),
                before.span.text(text),
            );
            let (kept, lost) = (crate::brief(kept), crate::brief(lost));
            report
                .at_entry(
                    &document.source,
                    entry,
                    message!(
                        en: "`{key}` is set twice: `{kept}` wins, `{lost}` is ignored",
                        zh: "`{key}` 设置了两次：`{kept}` 生效，`{lost}` 被忽略"
                    ),
                )
                .see(document.source.place(before.key))
                .advice(message!(en: "delete the one you do not want", zh: "删除不需要的那一个"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires() {
        let found = findings_of(
            ID,
            &[(
                "config.yaml",
                "train:\n  batch_size: 32\n  lr: 0.1\n  batch_size: 64\n",
            )],
        );
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place().line, 4);
        assert_eq!(
            findings_of(ID, &[("config.json", "{\"a\": 1, \"a\": 2}")]).len(),
            1
        );
    }

    #[test]
    fn only_the_value_that_counts_is_judged() {
        let code = (
            "train.py",
            "import yaml\ncfg = yaml.safe_load(open('config.yaml'))\nif cfg['amp'] == 'bf16':\n    pass\n",
        );
        let of = |config| findings_of("config-value-never-matches", &[code, ("config.yaml", config)]).len();
        assert_eq!(of("amp: bf16\namp: true\n"), 1);
        assert_eq!(of("amp: true\namp: bf16\n"), 0);
        let nested = "train:\n  amp: true\ntrain:\n  lr: 1\n";
        assert_eq!(findings_of(ID, &[("config.yaml", nested)]).len(), 1);
    }

    #[test]
    fn quiet() {
        assert!(
            findings_of(
                ID,
                &[(
                    "config.yaml",
                    "train:\n  batch_size: 32\nval:\n  batch_size: 64\n"
                )]
            )
            .is_empty()
        );
    }

    #[test]
    fn look_alike() {
        // Items of a list have the same keys each; anchors repeat values, not keys.
        assert!(
            findings_of(
                ID,
                &[("config.yaml", "a:\n  - lr: 1\n  - lr: 2\nb: &x 3\nc: *x\n")]
            )
            .is_empty()
        );
    }
}
