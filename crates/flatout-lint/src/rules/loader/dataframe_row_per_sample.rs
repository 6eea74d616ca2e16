//! # dataframe-row-per-sample
//!
//! ## What it detects
//! A dataset reads one row of a pandas `DataFrame` per sample: `self.df.iloc[index]` in `__getitem__`.
//!
//! ## Why it is slow
//! `iloc` on a single row builds a `Series`, which takes tens of microseconds. In a NumPy array the same row is a view that takes
//! less than one. At batch size 512, this adds milliseconds of Python per step.
//!
//! ## Example
//! ```python
//! def __getitem__(self, index):
//!     row = self.frame.iloc[index]
//!     return torch.tensor(row[COLUMNS].values), row["label"]
//! ```
//!
//! ## Use instead
//! ```python
//! def __init__(self, frame):
//!     self.x = torch.as_tensor(frame[COLUMNS].to_numpy())
//!     self.y = torch.as_tensor(frame["label"].to_numpy())
//!
//! def __getitem__(self, index):
//!     return self.x[index], self.y[index]
//! ```
//!
//! ## Evidence
//! `.iloc[…]`, `.loc[…]` or `iterrows()` in `__getitem__`.
//!
//! ## Fix
//! Convert the columns once in `__init__` (`self.values = torch.as_tensor(df[columns].to_numpy())`) and index the array.
//!
//! ## When it is wrong
//! A sample costs far more than its row, for example because an image file is decoded for each one. The finding is then
//! informational.
//!
//! ## References
//! pandas documentation, "Enhancing performance".
//! <https://pandas.pydata.org/docs/user_guide/enhancingperf.html>
//!
//! ---
//! ## 检测什么
//! 数据集为每个样本取 pandas `DataFrame` 的一行：`__getitem__` 中的 `self.df.iloc[index]`。
//! ## 为什么慢
//! 对单行使用 `iloc` 要构造一个 `Series`，每次几十微秒；从 NumPy 数组取同一行只是一个视图，不到一微秒。batch 512 时，每步就是几毫秒的 Python。
//! ## 证据
//! `__getitem__` 中的 `.iloc[…]`、`.loc[…]` 或 `iterrows()`。
//! ## 怎么改
//! 在 `__init__` 中一次转换（`self.values = torch.as_tensor(df[columns].to_numpy())`），然后对数组索引。
//! ## 何时不成立
//! 样本的成本远高于取行：例如每个样本解码一个图像文件。此时只作提示。
//! ## 参考
//! pandas 文档“Enhancing performance”。
//! <https://pandas.pydata.org/docs/user_guide/enhancingperf.html>

use crate::rules::prelude::*;

pub const ID: &str = "dataframe-row-per-sample";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for method in dataset_getitems(project, module) {
        let Some(access) = method.subtree().find(|code| is_row_access(*code)) else {
            continue;
        };
        let text = access.brief();
        let found = report.at(
            access,
            message!(
                en: "`{text}` builds a pandas object for every sample",
                zh: "`{text}` 为每个样本构建一个 pandas 对象"
            ),
        );
        if reads_a_file(method) {
            found.severity(Severity::Information);
        }
        found.advice(message!(
            en: "convert the columns to an array once in `__init__` and index into it",
            zh: "在 `__init__` 里一次性转换成数组，再按下标读取"
        ));
    }
}

fn is_row_access(code: Code<'_>) -> bool {
    match code.kind() {
        Kind::Subscript { value, .. } => code
            .at(*value)
            .as_attribute()
            .is_some_and(|(_, name)| matches!(name, "iloc" | "loc")),
        Kind::Call { .. } => code.is_method("iterrows"),
        _ => false,
    }
}

fn reads_a_file(method: Code<'_>) -> bool {
    method.calls_inside().any(|call| {
        call.call_name().is_some_and(|name| {
            let last = name.rsplit('.').next().unwrap_or("");
            matches!(
                last,
                "open" | "imread" | "read_image" | "load" | "imdecode" | "decode_image" | "decode_jpeg"
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nfrom torch.utils.data import Dataset\nclass Data(Dataset):\n    def __getitem__(self, index):\n        row = self.df.iloc[index]\n        return torch.tensor(row.values)\n";

    #[test]
    fn fires() {
        let found = findings_of(ID, &[("data.py", FIRES)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place().line, 5);
    }

    #[test]
    fn quiet() {
        assert!(findings_of(ID, &[("data.py", &FIRES.replace("self.df.iloc", "self.values"))]).is_empty());
    }

    #[test]
    fn look_alike() {
        let once = FIRES.replace("__getitem__(self, index)", "__init__(self, index)");
        assert!(findings_of(ID, &[("data.py", &once)]).is_empty());
        let image = FIRES.replace(
            "        return",
            "        image = Image.open(row.path)\n        return",
        );
        assert_eq!(
            findings_of(ID, &[("data.py", &image)])[0].finding.severity,
            Severity::Information
        );
    }
}
