//! # file-read-per-sample
//!
//! ## What it detects
//! The dataset reads, opens or parses a file for every sample: `torch.load`, `np.load`, JSON, CSV, an archive, a database.
//!
//! ## Why it is slow
//! The same bytes are read and parsed again and again, although reading them once at the start would serve every sample.
//!
//! ## Example
//! ```python
//! def __getitem__(self, index):
//!     return torch.load(self.path)[index]
//! ```
//!
//! ## Use instead
//! ```python
//! def __init__(self, path):
//!     self.data = torch.load(path)
//!
//! def __getitem__(self, index):
//!     return self.data[index]
//! ```
//!
//! ## Evidence
//! Stack samples of the training thread (or of a DataLoader worker) in this line and the functions it calls, and the source of the
//! line.
//!
//! ## Fix
//! Read the file once, in `__init__` or on first access, and keep it. Open archives and databases once per worker.
//!
//! ## When it is wrong
//! Every sample has its own file, and the files do not fit in memory: use more workers instead.
//!
//! ## References
//! The guide "Why was the GPU idle?" explains how time is assigned to lines. TraceML also warns from 10% of the time.
//! See also `file-reopened-in-getitem` and `storage-bound-input`.
//! <https://github.com/flatout/flatout/blob/main/docs/guide/diagnose.md>
//! <https://numpy.org/doc/stable/reference/generated/numpy.memmap.html>
//!
//! ---
//! ## 检测什么
//! 数据集对每个样本都读取、打开或解析文件：`torch.load`、`np.load`、JSON、CSV、压缩包、数据库。
//! ## 为什么慢
//! 同样的内容被反复读取和解析；开始时读一次就够所有样本使用。
//! ## 证据
//! 训练线程（或 DataLoader worker）停在该行及其调用中的采样，以及该行的源码。
//! ## 怎么改
//! 在 `__init__` 中或首次访问时读取一次并保留。压缩包和数据库每个 worker 只打开一次。
//! ## 何时不成立
//! 每个样本各有一个文件且内存放不下时：应增加 worker。
//! ## 参考
//! 指南“GPU 为什么空闲？”说明了时间如何归到各行代码。TraceML 同样从 10% 起告警。
//! 另见 `file-reopened-in-getitem`、`storage-bound-input`。
//! <https://github.com/flatout/flatout/blob/main/docs/guide/diagnose.md>
//! <https://numpy.org/doc/stable/reference/generated/numpy.memmap.html>

use crate::analysis::Analysis;
use crate::candidate::Candidate;
use crate::known::{self, Known};
use flatout_core::Severity;

pub const ID: &str = "file-read-per-sample";
pub const WORST: Severity = Severity::Critical;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    known::candidate(analysis, Known::FileReadPerSample, ID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CostlyLine, check as run, check_empty};

    fn costly(share: f64) -> CostlyLine {
        CostlyLine::new("__getitem__ (t.py:12)", r#"scale = torch.load(self.scale)"#).in_batches(share)
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
