//! # dataset-of-tensor-list
//!
//! ## What it detects
//! A dataset keeps one small tensor per sample in a Python list: `self.x = [torch.tensor(row) for row in rows]`.
//!
//! ## Why it is slow
//! Every sample is a Python object with its own allocation. Workers copy them one by one as reference counts change, memory grows,
//! and collating a batch touches hundreds of scattered objects instead of one slice.
//!
//! ## Example
//! ```python
//! self.x = [torch.tensor(row) for row in rows]
//! ```
//!
//! ## Use instead
//! ```python
//! self.x = torch.as_tensor(rows)
//! ```
//!
//! ## Evidence
//! A list of tensors is built in `__init__` of a class that inherits `torch.utils.data.Dataset`, and `__getitem__` indexes into it.
//!
//! ## Fix
//! Keep all samples in one tensor (`torch.as_tensor(rows)`, `torch.stack(list)`). If it fits on the GPU, keep it there and index
//! whole batches.
//!
//! ## When it is wrong
//! The samples differ in shape and cannot form one tensor. Lists built by calls that load files are not reported.
//!
//! ## References
//! PyTorch issue 13246, "DataLoader num_workers > 0 causes CPU memory from parent process to be replicated".
//! <https://github.com/pytorch/pytorch/issues/13246>
//!
//! ---
//! ## 检测什么
//! 数据集把每个样本的小张量放在 Python 列表中：`self.x = [torch.tensor(row) for row in rows]`。
//! ## 为什么慢
//! 每个样本都是单独分配的 Python 对象。引用计数变化时 worker 会逐个复制它们，内存增长；拼一个 batch 要访问数百个分散的对象，而不是一个切片。
//! ## 证据
//! 继承 `torch.utils.data.Dataset` 的类在 `__init__` 中构建张量列表，`__getitem__` 按下标取其中之一。
//! ## 怎么改
//! 所有样本用一个张量（`torch.as_tensor(rows)`、`torch.stack(list)`）；GPU 放得下时就放在那里，按整个 batch 索引。
//! ## 何时不成立
//! 样本形状不同，不能成为一个张量。由加载文件的调用构建的不在此列。
//! ## 参考
//! PyTorch issue 13246：“DataLoader num_workers > 0 causes CPU memory from parent process to be replicated”。
//! <https://github.com/pytorch/pytorch/issues/13246>

use crate::rules::prelude::*;

pub const ID: &str = "dataset-of-tensor-list";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for method in dataset_getitems(project, module) {
        let Some(class) = method.class_around() else {
            continue;
        };
        let Some(init) = class.method("__init__").filter(|init| init.module == module) else {
            continue;
        };
        for statement in init.subtree() {
            let Kind::Assign { targets, value } = statement.kind() else {
                continue;
            };
            let Some((owner, name)) = targets
                .first()
                .and_then(|target| statement.at(*target).as_attribute())
            else {
                continue;
            };
            if !owner.is_self() || !is_tensor_list(statement.at(*value)) || !indexes(method, name) {
                continue;
            }
            report
                .at(
                    statement,
                    message!(
                        en: "`self.{name}` holds a separate tensor object per sample",
                        zh: "`self.{name}` 为每个样本各存一个张量对象"
                    ),
                )
                .advice(message!(
                    en: "keep all samples in one tensor and index into it",
                    zh: "把所有样本放进一个张量，再按下标读取"
                ));
        }
    }
}

/// `[torch.tensor(row) for row in rows]`
fn is_tensor_list(code: Code<'_>) -> bool {
    let Kind::Comprehension { elements, .. } = code.kind() else {
        return false;
    };
    let [element] = elements.as_slice() else {
        return false;
    };
    code.text().starts_with('[')
        && code.at(*element).calls_one_of(&[
            "torch.tensor",
            "torch.as_tensor",
            "torch.FloatTensor",
            "torch.LongTensor",
            "torch.from_numpy",
        ])
}

fn indexes(method: Code<'_>, name: &str) -> bool {
    method.subtree().any(|code| match code.kind() {
        Kind::Subscript { value, .. } => code
            .at(*value)
            .as_attribute()
            .is_some_and(|(owner, attribute)| owner.is_self() && attribute == name),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nfrom torch.utils.data import Dataset\nclass Data(Dataset):\n    def __init__(self, rows):\n        self.x = [torch.tensor(row) for row in rows]\n    def __getitem__(self, index):\n        return self.x[index]\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("data.py", FIRES)]).len(), 1);
    }

    #[test]
    fn quiet() {
        let one = FIRES.replace("[torch.tensor(row) for row in rows]", "torch.tensor(rows)");
        assert!(findings_of(ID, &[("data.py", &one)]).is_empty());
    }

    #[test]
    fn look_alike() {
        let stacked = FIRES.replace(
            "[torch.tensor(row) for row in rows]",
            "torch.stack([torch.tensor(row) for row in rows])",
        );
        assert!(findings_of(ID, &[("data.py", &stacked)]).is_empty());
        let loaded = FIRES.replace("torch.tensor(row)", "load(row)");
        assert!(findings_of(ID, &[("data.py", &loaded)]).is_empty());
    }
}
