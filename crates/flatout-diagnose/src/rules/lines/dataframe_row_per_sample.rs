//! # dataframe-row-per-sample
//!
//! ## What it detects
//! A pandas DataFrame is indexed for every sample, with `iloc`, `loc` or a filter.
//!
//! ## Why it is slow
//! Each access builds a new Series, which takes tens of microseconds. Indexing an array takes less than one.
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
//! Stack samples of the training thread (or of a DataLoader worker) in this line and the functions it calls, and the source of the
//! line.
//!
//! ## Fix
//! Convert the columns to NumPy arrays or tensors once in `__init__`, and index those.
//!
//! ## When it is wrong
//! Never: the values are the same.
//!
//! ## References
//! The guide "Why was the GPU idle?" explains how time is assigned to lines. TraceML also warns from 10% of the time.
//! <https://pandas.pydata.org/docs/user_guide/enhancingperf.html>
//!
//! ---
//! ## 检测什么
//! 对每个样本都索引 pandas DataFrame：`iloc`、`loc` 或筛选。
//! ## 为什么慢
//! 每次访问都新建一个 Series，要几十微秒；数组访问不到一微秒。
//! ## 证据
//! 训练线程（或 DataLoader worker）停在该行及其调用中的采样，以及该行的源码。
//! ## 怎么改
//! 在 `__init__` 中把各列一次性转换为 NumPy 数组或 tensor，再对其索引。
//! ## 何时不成立
//! 没有坏处：取到的值相同。
//! ## 参考
//! 指南“GPU 为什么空闲？”说明了时间如何归到各行代码。TraceML 同样从 10% 起告警。
//! <https://pandas.pydata.org/docs/user_guide/enhancingperf.html>

use crate::analysis::Analysis;
use crate::candidate::Candidate;
use crate::known::{self, Known};
use flatout_core::Severity;

pub const ID: &str = "dataframe-row-per-sample";
pub const WORST: Severity = Severity::Critical;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    known::candidate(analysis, Known::DataframeRowPerSample, ID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CostlyLine, check as run, check_empty};

    fn costly(share: f64) -> CostlyLine {
        CostlyLine::new("__getitem__ (t.py:12)", r#"row = self.frame.iloc[index]"#)
            .calls("__getitem__ (/v/lib/python3.11/site-packages/pandas/core/indexing.py:9)")
            .in_batches(share)
    }

    #[test]
    fn fires() {
        let finding = run(check, costly(0.4).build()).unwrap();
        assert_eq!(
            (finding.rule.as_str(), finding.severity),
            (ID, Severity::Critical)
        );
        assert_eq!(finding.places[0].line, 12);
        assert_eq!(finding.fixes.len(), 1);
    }

    #[test]
    fn quiet() {
        assert!(run(check, costly(0.05).build()).is_none());
        let other = CostlyLine::new("other (t.py:12)", "x = self.rows[index] + 1").between_steps(0.05);
        assert!(run(check, other.build()).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
