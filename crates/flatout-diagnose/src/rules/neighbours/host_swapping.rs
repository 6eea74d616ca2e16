//! # host-swapping
//!
//! ## What it detects
//! The machine reads memory back from swap while the steps run.
//!
//! ## Why it is slow
//! Reading swapped memory is thousands of times slower than reading memory, and every process waits for it.
//!
//! ## Example
//! ```python
//! data = [json.loads(line) for line in open("data.jsonl")]
//! ```
//!
//! ## Use instead
//! ```python
//! data = np.load("data.npy", mmap_mode="r")
//! ```
//!
//! ## Evidence
//! Bytes per second read from swap in the steady part.
//!
//! ## Fix
//! Use less memory: fewer workers, a smaller `prefetch_factor`, data in arrays or memory-mapped files. Or use a machine with more
//! memory.
//!
//! ## When it is wrong
//! A short burst when another program ends. Compressed swap in memory is faster.
//!
//! ## References
//! gpuprof reports swap-in above 1 MB/s.
//! See also `data-set-copied-per-worker` and `data-read-again`.
//! <https://man7.org/linux/man-pages/man8/vmstat.8.html>
//!
//! ---
//! ## 检测什么
//! 训练过程中机器在从 swap 读回内存。
//! ## 为什么慢
//! 被换出的内存读回来比内存慢数千倍；每个进程都要等它。
//! ## 证据
//! 稳定阶段中每秒从 swap 读取的字节数。
//! ## 怎么改
//! 减少内存：更少的 worker、更小的 `prefetch_factor`、用数组或内存映射文件存放数据；或换内存更大的机器。
//! ## 何时不成立
//! 其他程序结束时的短暂读取；内存中的压缩 swap 更快。
//! ## 参考
//! gpuprof：每秒换入超过 1 MB。
//! 另见 `data-set-copied-per-worker`、`data-read-again`。
//! <https://man7.org/linux/man-pages/man8/vmstat.8.html>

use crate::analysis::Analysis;
use crate::candidate::Candidate;
use flatout_core::{Evidence, Severity, message, units};

pub const ID: &str = "host-swapping";
pub const WORST: Severity = Severity::Warning;

/// gpuprof's limit.
const SWAP_IN_BYTES_S: f64 = 1e6;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    analysis.window.as_ref()?;
    let rate = analysis
        .host
        .swap_in_bytes_s
        .filter(|rate| *rate >= SWAP_IN_BYTES_S)?;
    let shown = units::bytes(rate);
    let workers = analysis
        .train_loader()
        .and_then(|loader| loader.num_workers)
        .filter(|workers| *workers > 1);
    let candidate = Candidate::new(
        ID,
        Severity::Warning,
        message!(
            en: "The machine is swapping: it reads {shown} per second back from disk",
            zh: "机器在使用交换空间：每秒从磁盘读回 {shown}"
        ),
    )
    .evidence(
        analysis.in_window(
            Evidence::new(
                message!(en: "read from swap", zh: "从交换空间读取"),
                rate / 1e6,
                "MB/s",
            )
            .against(SWAP_IN_BYTES_S / 1e6),
        ),
    );
    Some(match workers {
        Some(workers) => {
            let fewer = workers / 2;
            candidate.setting(
                "loader.num_workers",
                Some(workers.to_string()),
                fewer,
                message!(
                    en: "num_workers={fewer}: each worker needs memory of its own",
                    zh: "num_workers={fewer}：每个 worker 都占用自己的内存"
                ),
            )
        }
        None => candidate.code(
            None,
            message!(
                en: "Use less memory: arrays or memory-mapped files instead of Python objects",
                zh: "减少内存占用：用数组或内存映射文件代替 Python 对象"
            ),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};

    fn swapping(rate: f64) -> Build {
        Build::steady(20).host(|host| host.swap_in_bytes_s = Some(rate))
    }

    #[test]
    fn fires() {
        assert!(run(check, swapping(5e7)).is_some());
    }

    #[test]
    fn quiet() {
        assert!(run(check, swapping(100.0)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
