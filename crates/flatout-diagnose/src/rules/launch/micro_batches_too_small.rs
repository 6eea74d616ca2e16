//! # micro-batches-too-small
//!
//! ## What it detects
//! A step accumulates gradients over many micro-batches of a few samples each, and most of the time is their fixed cost.
//!
//! ## Why it is slow
//! Each micro-batch pays the launch cost of every operator and the Python cost of every line again. With few samples per micro-batch,
//! this is most of the step.
//!
//! ## Example
//! ```python
//! loader = DataLoader(dataset, batch_size=1)
//! accumulation = 64
//! ```
//!
//! ## Use instead
//! ```python
//! loader = DataLoader(dataset, batch_size=64)
//! accumulation = 1
//! ```
//!
//! ## Evidence
//! Calls of `backward()` per step, operators per call, and the rows that the model's layers receive, from the autograd graph of a few
//! steps. On a CPU: the time per operator, or the arithmetic relative to the time it took. On a GPU: its busy share.
//!
//! ## Fix
//! Use fewer, larger micro-batches, as large as memory allows, ideally one per step. The accumulated gradient is the same.
//!
//! ## When it is wrong
//! The samples differ in shape and cannot be batched. The model uses batch norm, whose result depends on the micro-batch.
//!
//! ## References
//! Gradient accumulation exists to save memory: PyTorch's and Hugging Face's guides recommend the largest micro-batch that fits.
//! <https://huggingface.co/docs/transformers/perf_train_gpu_one>
//!
//! ---
//! ## 检测什么
//! 一步在许多只有几个样本的 micro-batch 上累积梯度，大部分时间是它们的固定开销。
//! ## 为什么慢
//! 每个 micro-batch 的前向和反向都要为启动每个算子、为每行 Python 付一次代价。样本很少时，这就是一步的大部分时间，真正的计算只占一小部分。
//! ## 证据
//! 从几步的计算图得到的每步 `backward()` 次数、每次的算子数和模型各层看到的行数；CPU 上是每个算子的时间，或计算量对比实际用时；GPU 上是忙碌占比。
//! ## 怎么改
//! 更大、更少的 micro-batch：梯度相同。以显存允许为限，最好每步一个。
//! ## 何时不成立
//! 形状不同、无法放进一个 batch 的样本；batch norm 的结果取决于 micro-batch。
//! ## 参考
//! 梯度累积是为了节省显存：PyTorch 与 Hugging Face 的指南都建议用能放下的最大 micro-batch。
//! <https://huggingface.co/docs/transformers/perf_train_gpu_one>

use super::batch_too_small::CORE_FLOPS;
use crate::account::center::in_optimizer;
use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Confidence, Evidence, Severity, message, units};
use flatout_record::Phase;

pub const ID: &str = "micro-batches-too-small";
pub const WORST: Severity = Severity::Critical;

/// Two models or two losses have two or three calls of `backward()` per step.
const BACKWARDS: f64 = 4.0;
/// Rows in a micro-batch up to which it may be called small.
const ROWS: f64 = 16.0;
/// Forward and backward of an operator together, its Python included, cost this much however little they compute: 8 µs for a small linear
/// layer, 41 µs for the mean operator of a transformer layer of one sample (one core of a Xeon, PyTorch 2.11, 2026-11-18).
const OPERATOR_US: f64 = 60.0;
/// Busy share of a GPU below which it waits for its host.
const GPU_BUSY: f64 = 0.6;
/// One batch costs as much to start as one of the micro-batches, and its larger operators take a little longer; of the rest, two thirds
/// surely go. 32 convolutional micro-batches of one sample on two CPUs: 4.1 times as fast as one batch.
const GOES: f64 = 0.9;
const SURELY: f64 = 0.65;

/// Share of the step that its arithmetic needs at a tenth of a core's peak; below it most of the rest is fixed cost.
const ARITHMETIC_SHARE: f64 = 0.35;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let facts = &analysis.facts;
    let backwards = facts
        .number("step.backwards")
        .filter(|calls| *calls >= BACKWARDS)?;
    // A graph may count the tokens of a sample as rows; the loader knows its samples.
    let loaded = analysis.train_loader().and_then(|loader| loader.batch_size);
    let counted = facts.number("backward.rows")?;
    let rows = loaded.map_or(counted, |batch| counted.min(batch as f64));
    if rows > ROWS {
        return None;
    }
    let (wasted_s, evidence) = match analysis.device() {
        Device::Cuda => idle_gpu(analysis)?,
        _ => on_cpu(analysis)?,
    };
    // The optimizer runs once per step, whatever the micro-batches.
    let goes_s = wasted_s * (1.0 - optimizer_share(analysis)) * (1.0 - 1.0 / backwards) * GOES;
    let share = goes_s / window.wall_s();
    if share < WARNING_SHARE {
        return None;
    }
    let place = facts.place("step.backwards");
    let (calls, shown) = (backwards.round(), units::count(rows));
    let title = if rows <= 1.0 {
        message!(
            en: "{calls} micro-batches of one row per step: most of the time is fixed cost",
            zh: "每步 {calls} 个只有一行的 micro-batch：大部分时间是固定开销"
        )
    } else {
        message!(
            en: "{calls} micro-batches of {shown} rows per step: most of the time is fixed cost",
            zh: "每步 {calls} 个只有 {shown} 行的 micro-batch：大部分时间是固定开销"
        )
    };
    Some(
        Candidate::new(
            ID,
            severity_of(share),
            title,
        )
        .confidence(Confidence::High)
        .evidence(
            analysis.in_window(
                Evidence::new(message!(en: "backward() calls per step", zh: "每步 backward() 次数"), backwards, "")
                    .against(BACKWARDS),
            ),
        )
        .evidence(evidence)
        .place(place.as_ref())
        .claims(Stretch::Dispatch, Reach::Measured, goes_s * SURELY, goes_s)
        .code(
            place.as_ref(),
            message!(
                en: "Use larger micro-batches, one per step if memory allows: the accumulated gradient is the same",
                zh: "使用更大的 micro-batch，显存允许时每步一个：累积的梯度相同"
            ),
        ),
    )
}

/// The optimizer's share of the time, as far as samples tell.
fn optimizer_share(analysis: &Analysis) -> f64 {
    let Some(account) = &analysis.account else {
        return 0.0;
    };
    let inside = account.spans.iter().filter(|span| in_optimizer(span));
    (inside.map(|span| span.seconds).sum::<f64>() / account.wall_s).clamp(0.0, 1.0)
}

/// The compute time in which the GPU waits.
fn idle_gpu(analysis: &Analysis) -> Option<(f64, Evidence)> {
    let busy = analysis.device_busy_share().filter(|busy| *busy < GPU_BUSY)?;
    let what = message!(en: "time the GPU was busy", zh: "GPU 忙碌的时间");
    let evidence = Evidence::new(what, busy * 100.0, "%").against(GPU_BUSY * 100.0);
    Some((analysis.dispatch_idle_s()?, analysis.in_window(evidence)))
}

/// The compute time of operators that take hardly longer than their start, or beyond what the counted arithmetic needs.
fn on_cpu(analysis: &Analysis) -> Option<(f64, Evidence)> {
    let window = analysis.window.as_ref()?;
    let facts = &analysis.facts;
    // Without batches from a loader, nothing tells the step's own time from the program's.
    let took_s = window.seconds(Phase::Compute);
    let operators = facts.number("backward.nodes")? * facts.number("step.backwards")? * window.steps as f64;
    let each_us = took_s * 1e6 / operators;
    if each_us <= OPERATOR_US {
        let what =
            message!(en: "time per operator, forward and backward", zh: "每个算子的时间（前向与反向）");
        let evidence = Evidence::new(what, each_us, "µs").against(OPERATOR_US);
        return Some((took_s, analysis.in_window(evidence)));
    }
    let cores = facts.number("threads.torch").unwrap_or(1.0).max(1.0);
    let needed_s = facts.number("step.flops")? / (CORE_FLOPS * cores) * window.steps as f64;
    let needed = needed_s / took_s;
    if !needed.is_finite() || needed > ARITHMETIC_SHARE {
        return None;
    }
    let what =
        message!(en: "arithmetic, share of the step's compute time", zh: "算术运算占每步计算时间的比例");
    let evidence = Evidence::new(what, needed * 100.0, "%").against(ARITHMETIC_SHARE * 100.0);
    Some((took_s - needed_s, analysis.in_window(evidence)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use flatout_core::Place;

    /// 20 steps per second.
    fn accumulating(backwards: u64, rows: u64, flops: f64) -> Build {
        Build::steady(20)
            .steps_per_s(20)
            .batch(512)
            .fact("device", "cpu")
            .fact("threads.torch", 2)
            .fact("step.flops", flops)
            .fact_at("step.backwards", backwards, 51)
            .fact("backward.rows", rows)
            .fact("backward.nodes", 20)
    }

    #[test]
    fn fires() {
        let finding = run(check, accumulating(32, 1, 1e7)).unwrap();
        assert_eq!(finding.places, [Place::new("t.py", 51)]);
        assert_eq!(causes(accumulating(32, 1, 1e7)), [ID]);
    }

    #[test]
    fn judges_by_the_time_per_operator() {
        let quick = accumulating(32, 1, 1e10).steps_per_s(40);
        let finding = run(check, quick).unwrap();
        assert!(
            (finding.evidence[1].value - 39.0).abs() < 0.5,
            "{:?}",
            finding.evidence
        );
    }

    #[test]
    fn quiet() {
        assert!(run(check, accumulating(1, 1, 1e7)).is_none());
        assert!(run(check, accumulating(32, 128, 1e7)).is_none());
        // 50 ms per step for 640 operators: 78 µs each.
        assert!(
            run(check, accumulating(32, 1, 1e10)).is_none(),
            "the arithmetic takes the time"
        );
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
