//! # input-cpus-exhausted
//!
//! ## What it detects
//! Steps wait for the workers, and the run's own processes keep every usable CPU busy.
//!
//! ## Why it is slow
//! Preparing the batches needs more CPU time than there is. More workers would only share the same CPUs.
//!
//! ## Example
//! ```python
//! def __getitem__(self, index):
//!     image = Image.open(self.paths[index]).convert("RGB")  # 4000x3000
//!     return self.transform(image.resize((224, 224)))
//! ```
//!
//! ## Use instead
//! ```python
//! def __getitem__(self, index):
//!     image = Image.open(self.small_paths[index]).convert("RGB")  # resized once to 256x256
//!     return self.transform(image)
//! ```
//!
//! ## Evidence
//! Time waiting for batches, utilization of the usable CPUs, and CPU time per batch.
//!
//! ## Fix
//! Make batches cheaper: preprocess once and keep the result, decode smaller images, use faster transforms, or move them to the GPU.
//! Or give the job more CPUs. More workers do not help.
//!
//! ## When it is wrong
//! The CPUs are kept busy by the training process itself (many intra-op threads), not by the workers.
//!
//! ## References
//! SageMaker reports a CPU bottleneck when the CPU is above 90% while the GPU is low. Lightning issue 19391: no gain beyond 16
//! workers.
//! <https://github.com/Lightning-AI/pytorch-lightning/issues/19391>
//!
//! ---
//! ## 检测什么
//! 训练在等 worker，而本次运行自己的进程已占满全部可用 CPU。
//! ## 为什么慢
//! 准备 batch 所需的 CPU 时间超过了现有的 CPU。增加 worker 只会分摊同样的 CPU。
//! ## 证据
//! 等待 batch 的时间、可用 CPU 的使用率、一个 batch 消耗的 CPU 时间。
//! ## 怎么改
//! 降低 batch 的成本：预处理一次并保存结果、解码成更小的尺寸、使用更快的变换、把变换移到 GPU 上；或给作业更多 CPU。增加 worker 的建议会被拒绝。
//! ## 何时不成立
//! CPU 是被训练进程自己（大量算子内线程）而不是 worker 占满的。
//! ## 参考
//! SageMaker：CPU 高于 90% 而 GPU 很低即为 CPU 瓶颈。Lightning issue 19391：超过 16 个 worker 后没有收益。
//! <https://github.com/Lightning-AI/pytorch-lightning/issues/19391>

use crate::analysis::Analysis;
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Evidence, Severity, message, units};
use flatout_record::Phase;

pub const ID: &str = "input-cpus-exhausted";
pub const WORST: Severity = Severity::Critical;

/// SageMaker's limit; on few CPUs half of one must be free before another worker fits.
const CPU_FULL: f64 = 0.9;
/// The part of the usable CPUs that must be the run's own; else a neighbour is to blame.
const OWN_SHARE: f64 = 0.6;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let starved = analysis.starved_by_workers()?;
    let (window, loader, workers) = (starved.window, starved.loader, starved.workers);
    let usable = analysis.usable_cpus()?;
    let util = analysis.host.cpu_util?;
    if analysis.room_for_workers()? {
        return None;
    }
    // CPUs that the training process itself fills are not the input's doing.
    if starved.overloaded() == Some(false) {
        return None;
    }
    let full_share = 1.0 - (0.5 / usable as f64).max(1.0 - CPU_FULL);
    if analysis
        .host
        .tree_cpus
        .is_some_and(|own| own < usable as f64 * OWN_SHARE)
    {
        return None;
    }
    let (full, more) = (units::percent(util), workers * 2);
    let mut candidate = Candidate::new(
        ID,
        severity_of(starved.share),
        message!(
            en: "Preparing batches keeps all {usable} usable CPUs busy ({full})",
            zh: "准备 batch 占满了全部 {usable} 个可用 CPU（{full}）：数据准备的 CPU 成本太高"
        ),
    )
    .evidence(analysis.phase_evidence(Phase::Data, WARNING_SHARE))
    .evidence(
        analysis.in_window(
            Evidence::new(
                message!(en: "utilization of the usable CPUs", zh: "可用 CPU 的使用率"),
                util * 100.0,
                "%",
            )
            .against(full_share * 100.0),
        ),
    )
    .place(loader.place.as_ref())
    .claims(Stretch::Data, Reach::Likely, 0.0, window.seconds(Phase::Data))
    .refused(
        "loader.num_workers",
        message!(
            en: "{workers} → {more} workers will not help: the {usable} usable CPUs are {full} busy",
            zh: "worker {workers} → {more}：不行；{usable} 个可用 CPU 已用 {full}"
        ),
    )
    .code(
        loader.place.as_ref(),
        message!(
            en: "Make batches cheaper: cache what __getitem__ computes, or move transforms to the GPU",
            zh: "降低 batch 的成本：缓存 __getitem__ 的结果，或把变换移到设备上执行"
        ),
    );
    if let Some(cost_ms) = loader.prepare_ms() {
        let what = message!(en: "work per batch", zh: "一个 batch 的工作量");
        candidate = candidate.evidence(analysis.in_window(Evidence::new(what, cost_ms, "ms")));
    }
    Some(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use flatout_core::Fix;
    use serde_json::json;

    fn heavy(util: f64) -> Build {
        Build::steady(20)
            .phase(Phase::Data, 0.6)
            .phase(Phase::Compute, 0.4)
            .cpus(4)
            .host(|host| host.cpu_util = Some(util))
            .workers(4, 0.75, 1 << 20)
            .loader(0, json!({"num_workers": 4}))
            .worker_cost(0, 2900.0, 50.0, 100)
    }

    #[test]
    fn fires() {
        let finding = run(check, heavy(0.97)).unwrap();
        assert!(
            matches!(&finding.fixes[0], Fix::Refused { say, .. } if say.en.contains("4 → 8 workers will not help"))
        );
        assert_eq!(causes(heavy(0.97)), [ID]);
    }

    #[test]
    fn quiet() {
        assert!(run(check, heavy(0.5)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
