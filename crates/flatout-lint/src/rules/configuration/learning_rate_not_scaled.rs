//! # learning-rate-not-scaled
//!
//! ## What it detects
//! Two sections or configuration files have batch sizes that differ by a factor of four or more but the same learning rate, and no
//! code computes the learning rate from the batch size.
//!
//! ## Why it is slow
//! A larger batch means fewer updates per epoch. With the learning rate of the small batch, each update is no larger, so training
//! needs more epochs for the same loss and loses what the GPU gained.
//!
//! ## Example
//! ```yaml
//! small: {batch_size: 64, learning_rate: 1e-3}
//! large: {batch_size: 1024, learning_rate: 1e-3}
//! ```
//!
//! ## Use instead
//! ```yaml
//! small: {batch_size: 64, learning_rate: 1e-3}
//! large: {batch_size: 1024, learning_rate: 4e-3}
//! ```
//!
//! ## Evidence
//! Both values in both sections, and no expression in the code that uses a learning rate and a batch size. This is informational.
//!
//! ## Fix
//! Scale the learning rate with the batch size, linearly for SGD or by the square root for Adam, with a warm-up; or try several
//! learning rates.
//!
//! ## When it is wrong
//! The learning rate was tuned at both batch sizes, or the sections train different models.
//!
//! ## References
//! Goyal et al., "Accurate, Large Minibatch SGD" (2017). Malladi et al., "On the SDEs and Scaling Rules for Adaptive Gradient
//! Algorithms" (2022).
//! <https://arxiv.org/abs/1706.02677>
//!
//! ---
//! ## 检测什么
//! 配置的两节或两个文件，batch 相差四倍以上而学习率相同，并且项目代码中没有按 batch 计算学习率。
//! ## 为什么慢
//! batch 越大，每个 epoch 的更新越少。沿用小 batch 的学习率，每次更新走得并不更远，达到同样的损失需要更多 epoch：GPU 省下的时间又被训练用掉。
//! ## 证据
//! 两节各自的两个值，且代码中没有同时包含学习率和 batch 的表达式。只作提示。
//! ## 怎么改
//! 随 batch 缩放学习率，SGD 用线性，Adam 用平方根，并加预热；或试几个学习率。
//! ## 何时不成立
//! 两种大小的学习率都是搜索得到的，或两节训练的是不同的模型。
//! ## 参考
//! Goyal 等，“Accurate, Large Minibatch SGD”；Malladi 等，“On the SDEs and Scaling Rules for Adaptive Gradient Algorithms”。
//! <https://arxiv.org/abs/1706.02677>

use crate::config::Entry;
use crate::rules::prelude::*;
use crate::source::Source;

pub const ID: &str = "learning-rate-not-scaled";
pub const SEVERITY: Severity = Severity::Information;
pub const CHECK: Check = Check::Project(check);

/// Smaller changes of the batch hardly need another rate.
const FAR_APART: i64 = 4;

/// A section that sets both.
struct Pair<'p> {
    source: &'p Source,
    entry: &'p Entry,
    batch: i64,
    rate: f64,
}

fn check(project: &Project, report: &mut Report<'_>) {
    let pairs = pairs(project);
    if pairs.len() < 2 || project.module_ids().any(|module| scales(project, module)) {
        return;
    }
    for large in &pairs {
        let mut smaller = pairs.iter().filter(|small| {
            small.rate.to_bits() == large.rate.to_bits()
                && large.batch >= FAR_APART.saturating_mul(small.batch)
        });
        let Some(small) = smaller.next() else { continue };
        let (batch, other, rate) = (large.batch, small.batch, large.rate);
        report
            .at_entry(
                large.source,
                large.entry,
                message!(
                    en: "batch size {batch} has learning rate {rate}, the same as batch size {other}",
                    zh: "batch 为 {batch}，学习率 {rate} 却与 batch 为 {other} 时相同"
                ),
            )
            .confidence(Confidence::Low)
            .see(small.source.place(small.entry.key))
            .advice(message!(
                en: "scale the learning rate with the batch size (linearly for SGD, by the square root for \
                Adam) and warm it up",
                zh: "学习率随 batch 放大（SGD 按比例，Adam 按平方根），并加 warm-up"
            ));
    }
}

fn pairs(project: &Project) -> Vec<Pair<'_>> {
    let mut found = Vec::new();
    for (source, entries) in project.settings() {
        for entry in entries.iter().filter(|entry| is_batch(entry.name())) {
            let Value::Integer(batch) = entry.value else {
                continue;
            };
            let beside = entries.iter().filter(|other| other.section() == entry.section());
            let rate = beside
                .filter(|other| is_rate(other.name()))
                .find_map(|other| match other.value {
                    Value::Float(rate) => Some(rate),
                    _ => None,
                });
            if let Some(rate) = rate.filter(|_| batch > 0) {
                found.push(Pair {
                    source,
                    entry,
                    batch,
                    rate,
                });
            }
        }
    }
    found
}

fn is_batch(name: &str) -> bool {
    matches!(
        name,
        "batch_size" | "train_batch_size" | "batch" | "per_device_train_batch_size"
    )
}

fn is_rate(name: &str) -> bool {
    matches!(name, "lr" | "learning_rate" | "base_lr" | "lr0")
}

/// An expression that holds both: `lr * batch_size / 256`.
fn scales(project: &Project, module: ModuleId) -> bool {
    let nodes = project.code(module, crate::python::NodeId(0)).subtree();
    nodes
        .filter(|code| matches!(code.kind(), Kind::Binary { .. }))
        .any(|code| {
            let text = code.text().to_ascii_lowercase();
            let rate = text.contains("lr") || text.contains("learning_rate");
            rate && (text.contains("batch") || text.contains("bs"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "train:\n  batch_size: 32\n  lr: 0.001\n";
    const LARGE: &str = "train:\n  batch_size: 512\n  lr: 0.001\n";
    const CODE: &str = "def f(config):\n    return config['train']['batch_size'], config['train']['lr']\n";

    #[test]
    fn fires() {
        let found = findings_of(
            ID,
            &[("small.yaml", SMALL), ("large.yaml", LARGE), ("train.py", CODE)],
        );
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place().file, std::path::Path::new("large.yaml"));
    }

    #[test]
    fn quiet() {
        let scaled = LARGE.replace("0.001", "0.004");
        assert!(
            findings_of(
                ID,
                &[("small.yaml", SMALL), ("large.yaml", &scaled), ("train.py", CODE)]
            )
            .is_empty()
        );
        let near = LARGE.replace("512", "64");
        assert!(
            findings_of(
                ID,
                &[("small.yaml", SMALL), ("large.yaml", &near), ("train.py", CODE)]
            )
            .is_empty()
        );
    }

    #[test]
    fn look_alike() {
        // The code scales it.
        let code = format!("{CODE}def rate(lr, batch_size):\n    return lr * batch_size / 256\n");
        assert!(
            findings_of(
                ID,
                &[("small.yaml", SMALL), ("large.yaml", LARGE), ("train.py", &code)]
            )
            .is_empty()
        );
    }
}
