//! # gpus-unbalanced
//!
//! ## What it detects
//! One GPU of several works much more than the others.
//! ## Why it is slow
//! The others wait for it at every step.
//! ## Evidence
//! Mean utilisation of each GPU in the steady window.
//! ## Fix
//! Equal batches for every rank; loss and metrics on all of them; no `DataParallel`.
//! ## When it is wrong
//! Pipelines whose stages differ on purpose.
//! ## References
//! A straggler of 10 and 20% (peers' levels).
//!
//! ---
//! ## 检测什么
//! 多块 GPU 中有一块比其他的忙得多。
//! ## 为什么慢
//! 其他 GPU 每步都要等它。
//! ## 证据
//! 稳定阶段中每块 GPU 的平均利用率。
//! ## 怎么改
//! 每个 rank 的 batch 相等；损失和指标在所有 rank 上计算；不用 `DataParallel`。
//! ## 何时不成立
//! 各段本来就不同的流水线。
//! ## 参考
//! 落后 10% 和 20%（同类工具的两级）。

use crate::analysis::{Analysis, Device};
use crate::candidate::Candidate;
use flatout_core::{Confidence, Evidence, Severity, message, units};

pub const ID: &str = "gpus-unbalanced";
pub const WORST: Severity = Severity::Warning;

/// The spread between the busiest and the least busy that works.
const SPREAD: f64 = 0.2;
/// A GPU below this does not take part; that is another rule's.
const TAKES_PART: f64 = 0.02;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    analysis.window.as_ref()?;
    // What happens on cards that the training does not use is no matter of this run.
    if analysis.device() == Device::Cpu {
        return None;
    }
    let utils: Vec<(u32, f64)> = analysis
        .gpus
        .iter()
        .filter_map(|gpu| Some((gpu.index, gpu.util.filter(|util| *util >= TAKES_PART)?)))
        .collect();
    let (most, high) = utils.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (least, low) = utils.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))?;
    if utils.len() < 2 || high - low < SPREAD {
        return None;
    }
    let (up, down) = (units::percent(high), units::percent(low));
    Some(
        Candidate::new(
            ID,
            Severity::Warning,
            message!(
                en: "The GPUs work unequally: GPU {most} {up}, GPU {least} {down}",
                zh: "各 GPU 负载不均：GPU {most} {up}，GPU {least} {down}"
            ),
        )
        .confidence(Confidence::Medium)
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "spread of utilisation", zh: "利用率差距"),
                    (high - low) * 100.0,
                    "%",
                )
                .against(SPREAD * 100.0),
            ),
        )
        .code(
            None,
            message!(
                en: "Give every rank equal batches, and compute loss and metrics on all of them",
                zh: "让每个 rank 的 batch 相等，并在所有 rank 上计算损失和指标"
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check_empty};
    use flatout_telemetry::record::RunData;

    fn pair(second: f64) -> RunData {
        let mut data = Build::steady(20).gpu(|gpu| gpu.util = Some(0.9)).done();
        for sample in &mut data.samples {
            let mut gpu = sample.gpus[&0].clone();
            gpu.util = Some(second);
            sample.gpus.insert(1, gpu);
        }
        data
    }

    #[test]
    fn fires() {
        assert!(check(&Analysis::new(&pair(0.4))).is_some());
    }

    #[test]
    fn quiet() {
        assert!(check(&Analysis::new(&pair(0.88))).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
