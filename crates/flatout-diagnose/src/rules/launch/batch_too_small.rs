//! # batch-too-small
//!
//! ## What it detects
//! Most of each step is fixed cost: computing the batch itself would take only a fraction of the time.
//!
//! ## Why it is slow
//! Each step pays a fixed price for Python, kernel launches and the optimizer, whatever the batch size. With few samples per step,
//! the GPU (or the CPU's vector units) mostly waits.
//!
//! ## Example
//! ```python
//! loader = DataLoader(dataset, batch_size=16)
//! optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
//! ```
//!
//! ## Use instead
//! ```python
//! loader = DataLoader(dataset, batch_size=256)
//! optimizer = torch.optim.AdamW(model.parameters(), lr=4e-4)
//! ```
//!
//! ## Evidence
//! On a GPU: its busy share, or how many SMs work while it reads busy (if the GPU reports it), and the samples per step. On a CPU:
//! the time that the step's arithmetic would need at a moderate speed (or at the speed measured on this machine), compared with the
//! time it took.
//!
//! ## Fix
//! Use a larger batch as long as samples/s rise, and scale the learning rate with it. If the batch size must stay, compile the model
//! or use CUDA graphs.
//!
//! ## When it is wrong
//! The batch size was chosen for model quality, not speed. For models whose arithmetic is not in their parameters (attention over
//! long sequences) the estimate is too low, which is why flatout also considers the input shape.
//!
//! ## References
//! One LSTM on an H200: 4.9k samples/s at batch size 64, 37.7k at 512, 268k at 4096. SageMaker considers a batch small if CPU, GPU
//! and memory utilization all stay below 70%.
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>
//!
//! ---
//! ## 检测什么
//! 每步太小，大部分时间是固定开销：batch 本身的计算只需要其中一小部分。
//! ## 为什么慢
//! 无论 batch 多大，每步都要为下发每个算子和优化器各付一次代价，Python 程序还要加上 Python 本身的开销。样本太少时，设备（或 CPU 的向量单元）大部分时间都在等。
//! ## 证据
//! GPU 上：忙碌占比，或者显示忙碌时实际工作的 SM 占比（显卡能给出时），以及每步样本数。CPU 上：按保守速度（记录中有本机实测速度时用实测值）估算的计算时间，对比实际用时。
//! ## 怎么改
//! 只要每秒样本数还在上升就增大 batch，并相应缩放学习率。batch 不能改时：编译模型，或用 CUDA graph。
//! ## 何时不成立
//! 小 batch 是为了效果而不是速度；计算量不体现在参数上的模型（长序列的注意力）：估算会偏低，因此也看输入的形状。
//! ## 参考
//! 一个 LSTM 在 H200 上：batch 64 时每秒 4.9k 样本，512 时 37.7k，4096 时 268k。SageMaker：CPU、GPU 和内存都低于 70% 即为 batch 太小。
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>

use crate::analysis::{Analysis, Device, FEW_PROCESSORS};
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Confidence, Evidence, Severity, message, units};
use flatout_record::Phase;

pub const ID: &str = "batch-too-small";
pub const WORST: Severity = Severity::Critical;

/// Samples in a step up to which a batch may be called small; 64 was too small for every model in the references.
const SMALL: f64 = 64.0;
/// Share of a CPU step that its arithmetic needs; below it the rest is fixed cost.
pub const ARITHMETIC_SHARE: f64 = 0.2;
/// What one CPU core does easily in FP32: a tenth of a current core's peak, so that the estimate is not too kind.
pub const CORE_FLOPS: f64 = 10e9;
/// Busy share of a GPU below which it waits for its host (gpuprof and SageMaker call <70% low; NVML reads high).
const GPU_BUSY: f64 = 0.6;
/// Share of the window in which the host launches work or waits for it.
const COMPUTE_SHARE: f64 = 0.4;
/// What forward, backward and optimizer of one parameter tensor cost at most, however small: some twenty operations of 10
/// to 25 µs on a CPU.
const TENSOR_MS: f64 = 0.5;
/// Parameter tensors of a small model whose number is unknown.
const TENSORS: f64 = 40.0;
/// Batch growth that is suggested at once.
const GROWTH: f64 = 4.0;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let samples = samples_per_step(analysis).filter(|samples| *samples <= SMALL)?;
    // A batch that was chosen by measuring is as large as helps.
    let measured = analysis
        .facts
        .get("batch.measured")
        .is_some_and(|fact| fact.value == true);
    let compute_s = window.seconds(Phase::Compute);
    if measured || analysis.computing_share() < COMPUTE_SHARE {
        return None;
    }
    let Waste {
        seconds: wasted_s,
        stretch,
        evidence,
        confidence,
    } = match analysis.device() {
        Device::Cuda => idle_gpu(analysis).or_else(|| narrow_gpu(analysis))?,
        _ => on_cpu(analysis, compute_s)?,
    };
    let share = wasted_s / window.wall_s();
    if share < WARNING_SHARE {
        return None;
    }
    let (batch, step) = (samples.round(), units::duration(window.step_ms() / 1e3));
    let loader = analysis.train_loader().and_then(|loader| loader.place.clone());
    let place = loader.or_else(|| analysis.loop_place());
    let larger = (samples.max(1.0) * GROWTH).log2().ceil().exp2();
    let own = analysis.data.info.kind == "train";
    let candidate = Candidate::new(
        ID,
        severity_of(share),
        message!(
            en: "Batch size {batch} is too small: most of each {step} step is fixed cost",
            zh: "batch 为 {batch} 太小：每步 {step} 中大部分是固定开销"
        ),
    )
    .detail(if own {
        message!(
            en: "Launching each operation and running the optimizer cost the same for a larger batch; \
            with more samples per step, each sample costs less.",
            zh: "启动每个算子和优化器的开销与 batch 大小无关；每步样本越多，摊薄得越多。"
        )
    } else {
        message!(
            en: "Python, operator launches and the optimizer cost the same for a larger batch; with more \
            samples per step, each sample costs less.",
            zh: "Python、算子下发和优化器的开销与 batch 大小无关；每步样本越多，摊薄得越多。"
        )
    })
    .confidence(confidence)
    .evidence(analysis.in_window(
        Evidence::new(message!(en: "samples per step", zh: "每步样本数"), samples, "").against(SMALL),
    ))
    .evidence(evidence)
    .place(place.as_ref())
    // With GROWTH × the samples a step, all but 1/GROWTH of the fixed cost goes.
    .claims(
        stretch,
        Reach::Specific,
        wasted_s * 0.3,
        wasted_s * (1.0 - 1.0 / GROWTH),
    );
    if own {
        let say = message!(
            en: "--batch-size auto measures and picks the smallest batch that is nearly the fastest; it \
            scales the learning rate too",
            zh: "--batch-size auto 会实测并选用接近最快的最小值；学习率随之缩放"
        );
        return Some(candidate.setting("loader.batch_size", Some(format!("{batch}")), "auto", say));
    }
    // A loop without a loader has no such setting.
    let candidate = match analysis.train_loader() {
        None => candidate,
        Some(_) => candidate.setting(
            "loader.batch_size",
            Some(format!("{batch}")),
            larger,
            message!(
                en: "batch_size={larger} with a scaled learning rate; keep increasing it while samples/s rise",
                zh: "batch_size={larger}，学习率随之缩放；只要 samples/s 还在上升就继续增大"
            ),
        ),
    };
    Some(candidate.code(
        place.as_ref(),
        message!(
            en: "Use a larger batch here; if the batch size must stay, compile the model or capture the \
            step in a CUDA graph",
            zh: "在这里增大 batch；若 batch 不能改，则编译模型或用 CUDA graph 捕获整个步骤"
        ),
    ))
}

/// As the loader tells; in a loop that takes its batches out of tensors, the fewest rows that a layer of the model sees.
fn samples_per_step(analysis: &Analysis) -> Option<f64> {
    let told = analysis.window.as_ref()?.samples_per_step();
    let one = analysis
        .facts
        .number("step.backwards")
        .is_some_and(|calls| calls < 2.0);
    let rows = || analysis.facts.number("backward.rows").filter(|_| one);
    told.filter(|samples| *samples > 0.0).or_else(rows)
}

/// Seconds that a larger batch would share, where they lie, and what shows them.
struct Waste {
    seconds: f64,
    stretch: Stretch,
    evidence: Evidence,
    confidence: Confidence,
}

/// The compute time in which the GPU waits.
fn idle_gpu(analysis: &Analysis) -> Option<Waste> {
    let window = analysis.window.as_ref()?;
    if window.share(Phase::Compute) < COMPUTE_SHARE {
        return None;
    }
    let busy = analysis.device_busy_share().filter(|busy| *busy < GPU_BUSY)?;
    let what = message!(en: "time the GPU was busy", zh: "GPU 忙碌的时间");
    Some(Waste {
        seconds: analysis.dispatch_idle_s()?,
        stretch: Stretch::Dispatch,
        evidence: analysis.in_window(Evidence::new(what, busy * 100.0, "%").against(GPU_BUSY * 100.0)),
        confidence: Confidence::High,
    })
}

/// The time in which some kernel runs, so that the GPU reads busy, on a few of its processors.
fn narrow_gpu(analysis: &Analysis) -> Option<Waste> {
    let window = analysis.window.as_ref()?;
    let busy = analysis.device_busy_share().filter(|busy| *busy >= GPU_BUSY)?;
    let working = analysis
        .processors_at_work()
        .filter(|working| *working < FEW_PROCESSORS)?;
    let what = message!(en: "SMs at work while the GPU reads busy", zh: "GPU 显示忙碌时实际工作的 SM");
    Some(Waste {
        seconds: busy * window.wall_s() * (1.0 - working),
        stretch: Stretch::Device,
        evidence: analysis
            .in_window(Evidence::new(what, working * 100.0, "%").against(FEW_PROCESSORS * 100.0)),
        confidence: Confidence::Medium,
    })
}

/// The compute time beyond what the arithmetic needs at [`CORE_FLOPS`] a usable core.
fn on_cpu(analysis: &Analysis, compute_s: f64) -> Option<Waste> {
    let window = analysis.window.as_ref()?;
    if window.share(Phase::Compute) < COMPUTE_SHARE {
        return None;
    }
    let counted = analysis.facts.number("step.flops");
    let flops = counted.or_else(|| flops_per_step(analysis, samples_per_step(analysis)?))?;
    let cores = analysis.facts.number("threads.torch").unwrap_or(1.0).max(1.0);
    let measured = analysis.facts.number("device.flops").filter(|speed| *speed > 0.0);
    let needed_ms = flops / measured.unwrap_or(CORE_FLOPS * cores) * 1e3;
    let took_ms = window.ms_per_step(Phase::Compute);
    // Longer than its operations can cost, the step was held up by something else: CPUs that others use, say.
    let tensors = analysis.facts.number("model.tensors").unwrap_or(TENSORS);
    if needed_ms > took_ms * ARITHMETIC_SHARE || took_ms > tensors * TENSOR_MS {
        return None;
    }
    let what =
        message!(en: "arithmetic, share of the step's compute time", zh: "算术运算占每步计算时间的比例");
    let evidence = Evidence::new(what, needed_ms / took_ms * 100.0, "%").against(ARITHMETIC_SHARE * 100.0);
    Some(Waste {
        seconds: compute_s * (1.0 - needed_ms / took_ms),
        stretch: Stretch::Dispatch,
        evidence: analysis.in_window(evidence),
        confidence: Confidence::Medium,
    })
}

/// Two operations a parameter forward and four backward, at every position the input has.
fn flops_per_step(analysis: &Analysis, samples: f64) -> Option<f64> {
    let parameters = analysis.facts.number("model.parameters")?;
    let shape: Vec<f64> = analysis
        .facts
        .get("input.shape")
        .and_then(|fact| fact.value.as_array())
        .map(|shape| shape.iter().filter_map(serde_json::Value::as_f64).collect())
        .unwrap_or_default();
    let tokens = analysis
        .facts
        .text("input.dtype")
        .is_some_and(|dtype| dtype.contains("int"));
    // (N, C, H, W): every pixel is a position. (N, T, F): every time step. (N, T) of integers: every token.
    let positions = match shape.len() {
        4.. => shape.iter().product::<f64>() / shape.get(1).copied().unwrap_or(1.0).max(1.0),
        3 => shape[0] * shape[1],
        2 if tokens => shape[0] * shape[1],
        _ => samples,
    };
    Some(6.0 * parameters * positions.max(samples))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use serde_json::json;

    fn small(parameters: u64) -> Build {
        Build::steady(20)
            .steps_per_s(1000)
            .batch(4)
            .fact("device", "cpu")
            .fact("threads.torch", 2)
            .fact("model.parameters", parameters)
            .fact("model.tensors", 22)
            .fact("input.shape", json!([4, 128]))
    }

    fn narrow(working: f64) -> Build {
        Build::steady(20).batch(4).gpu(|gpu| {
            gpu.util = Some(0.9);
            gpu.sm_activity = Some(working);
        })
    }

    #[test]
    fn fires() {
        assert!(run(check, small(20_000)).is_some());
        assert_eq!(causes(small(20_000)), [ID]);
        let gpu = || Build::steady(20).batch(16).gpu(|gpu| gpu.util = Some(0.2));
        assert!(run(check, gpu()).is_some());
        // It reads busy, but most of it has nothing to do; faster arithmetic would not help.
        assert!(run(check, narrow(0.06)).is_some());
        assert_eq!(causes(narrow(0.06).fact("amp.dtype", "off")), [ID]);
    }

    #[test]
    fn quiet() {
        // Held up by others for ten times its cost; enough arithmetic, a larger batch, a GPU that is full, images whose pixels count.
        assert!(run(check, small(20_000).steps_per_s(20)).is_none());
        assert!(run(check, small(2_000_000)).is_none());
        assert!(run(check, small(20_000).batch(512)).is_none());
        assert!(
            run(
                check,
                Build::steady(20).batch(16).gpu(|gpu| gpu.util = Some(0.95))
            )
            .is_none()
        );
        assert!(run(check, narrow(0.7)).is_none());
        assert!(run(check, small(20_000).fact("input.shape", json!([4, 3, 128, 128]))).is_none());
    }

    #[test]
    fn our_own_trainer_measures_the_batch_itself() {
        let own = |flops: f64| {
            let mut data = small(2_000_000)
                .fact("device.flops", 80e9)
                .fact("step.flops", flops)
                .done();
            data.info.kind = "train".into();
            data.info.command = ["flatout", "train", "--batch-size=4", "--data", "my data"]
                .map(str::to_owned)
                .to_vec();
            crate::diagnose(&data).findings
        };
        let found = own(4e6);
        assert_eq!(found[0].rule, ID);
        let commands: Vec<&str> = found[0]
            .fixes
            .iter()
            .filter_map(|fix| match fix {
                flatout_core::Fix::Command { command, .. } => Some(command.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(commands, ["flatout train --data 'my data' --batch-size auto"]);
        let texts = format!("{:?}", found[0]);
        assert!(
            !texts.contains("Python"),
            "the trainer is no Python program: {texts}"
        );
        // Half of what the machine can do: nothing is wrong with the batch.
        assert!(run(check, small(20_000).fact("batch.measured", true)).is_none());
        assert!(own(40e6).iter().all(|finding| finding.rule != ID));
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
