//! # element-loop-in-collate
//!
//! ## What it detects
//! A `collate_fn` fills its batch one element at a time, in nested loops with `out[i, j] = …`.
//!
//! ## Why it is slow
//! Each assignment to a tensor element is an operator call of several microseconds, and a batch has thousands of elements. Copying a
//! whole row (`out[i, :length] = row`), padding or stacking does the same with one operation per sample.
//!
//! ## Example
//! ```python
//! def collate(samples):
//!     out = torch.zeros(len(samples), length)
//!     for i, sample in enumerate(samples):
//!         for j, value in enumerate(sample):
//!             out[i, j] = value
//!     return out
//! ```
//!
//! ## Use instead
//! ```python
//! def collate(samples):
//!     return pad_sequence(samples, batch_first=True)
//! ```
//!
//! ## Evidence
//! The function is passed as `collate_fn`, and a nested loop in it assigns to a subscript with two indices.
//!
//! ## Fix
//! Use `torch.stack`, `torch.nn.utils.rnn.pad_sequence`, or one slice assignment per sample.
//!
//! ## When it is wrong
//! The batches are tiny.
//!
//! ## References
//! PyTorch documentation of `torch.utils.data`, "Working with collate_fn".
//! <https://docs.pytorch.org/docs/stable/data.html#working-with-collate-fn>
//!
//! ---
//! ## 检测什么
//! `collate_fn` 逐元素填充 batch：嵌套循环中的 `out[i, j] = …`。
//! ## 为什么慢
//! 对张量单个元素的每次赋值都是几微秒的一次算子分发，而一个 batch 有数千个元素。复制整行（`out[i, :length] = row`）、填充或堆叠，每个样本一次操作即可。
//! ## 证据
//! 该函数作为 `collate_fn` 传入，其中嵌套循环对带两个下标的元素赋值。
//! ## 怎么改
//! `torch.stack`、`torch.nn.utils.rnn.pad_sequence`，或每个样本一次切片赋值。
//! ## 何时不成立
//! 非常小的 batch。
//! ## 参考
//! PyTorch 文档 `torch.utils.data` “Working with collate_fn”。
//! <https://docs.pytorch.org/docs/stable/data.html#working-with-collate-fn>

use crate::rules::prelude::*;

pub const ID: &str = "element-loop-in-collate";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for call in loader_calls(project, module) {
        let Some(function) = call.keyword("collate_fn").and_then(Code::definition) else {
            continue;
        };
        if function.as_function().is_none() {
            continue;
        }
        let Some(place) = function
            .runs()
            .find(|code| assigns_element(*code) && loop_depth(*code) >= 2)
        else {
            continue;
        };
        let text = place.brief();
        report
            .at(
                place,
                message!(
                    en: "`{text}` fills the batch one element at a time",
                    zh: "`{text}` 逐个元素地填充 batch"
                ),
            )
            .see(call.place())
            .advice(message!(
                en: "copy whole rows, pad or stack: one operation per sample",
                zh: "整行复制、pad 或 stack：每个样本只用一次操作"
            ));
    }
}

/// `out[i, j] = value` or `out[i][j] = value`, with plain indices.
fn assigns_element(code: Code<'_>) -> bool {
    let Kind::Assign { targets, .. } = code.kind() else {
        return false;
    };
    let [target] = targets.as_slice() else {
        return false;
    };
    let Kind::Subscript { value, index } = code.at(*target).kind() else {
        return false;
    };
    let plain = |code: Code<'_>| matches!(code.kind(), Kind::Name);
    match code.at(*index).kind() {
        Kind::Sequence(items) => items.len() >= 2 && items.iter().all(|item| plain(code.at(*item))),
        Kind::Name => match code.at(*value).kind() {
            Kind::Subscript { index, .. } => plain(code.at(*index)),
            _ => false,
        },
        _ => false,
    }
}

fn loop_depth(code: Code<'_>) -> usize {
    code.ancestors()
        .take_while(|above| above.as_function().is_none())
        .filter(|above| above.is_loop())
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\ndef collate(batch):\n    out = torch.zeros(len(batch), 100)\n    for i, row in enumerate(batch):\n        for j, value in enumerate(row):\n            out[i, j] = value\n    return out\nloader = torch.utils.data.DataLoader(data, collate_fn=collate)\n";

    #[test]
    fn fires() {
        let found = findings_of(ID, &[("data.py", FIRES)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place().line, 6);
    }

    #[test]
    fn quiet() {
        let rows = FIRES.replace(
            "        for j, value in enumerate(row):\n            out[i, j] = value\n",
            "        out[i, :len(row)] = row\n",
        );
        assert!(findings_of(ID, &[("data.py", &rows)]).is_empty());
    }

    #[test]
    fn look_alike() {
        // The same loops, but not for every batch.
        let elsewhere = FIRES.replace("collate_fn=collate", "num_workers=2");
        assert!(findings_of(ID, &[("data.py", &elsewhere)]).is_empty());
    }
}
