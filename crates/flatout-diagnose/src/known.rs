//! Costs that a line is recognized by: from what it calls, what it is blocked in and what its source says. A rule of
//! `rules/lines` is one of them; what none recognizes stays a line with its share.

use crate::account::activity::Activity;
use crate::account::center::{Center, in_backward, in_optimizer};
use crate::advice;
use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use crate::lines::in_module;
use flatout_core::{Confidence, Evidence, Message, Place, message, units};
use flatout_telemetry::Phase;

/// What a line does that costs time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    FileReadPerSample,
    DataframeRowPerSample,
    SlowSampler,
    IteratorPerBatch,
    PythonLoopPerSample,
    ImageDecodedLarge,
    BlockingCall,
    Metrics,
    Logging,
    MemoryReleased,
    ModelCopied,
    PythonLoopInStep,
    CostlyOperator,
    HiddenSync,
    HostWork,
}

/// Where the line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// In the step or between two.
    Step,
    /// In the data set, its transforms, the sampler or the collate function.
    Batch,
}

/// A costly line, and the seconds of the window that it costs.
#[derive(Clone, Debug)]
pub struct Cost<'a> {
    pub center: &'a Center,
    pub part: Part,
    pub known: Known,
    /// Seconds it explains, and those that go when the line is gone; at most these, with all that its function costs elsewhere.
    pub seconds: f64,
    pub goes_s: f64,
    pub most_s: f64,
    pub in_worker: bool,
}

/// Workers per usable CPU from which on their number is the cause.
const TOO_MANY_WORKERS: u64 = 3;
/// Preparing a batch costs something: a line that nothing is known of is a finding from here on.
const NEEDED_SHARE: f64 = 0.25;
/// What the threads of an operator lose beside a worker that takes one of their CPUs.
const STALLED: f64 = 0.45;
/// The part of a line's time that surely goes when it is done once, or every N steps.
const CERTAIN: f64 = 0.7;
/// A loop in the step's own work is a finding from here on: a loop over layers holds the model's time, too.
const LOOP_SHARE: f64 = 0.2;

/// The costliest line of one kind, as a candidate.
pub fn candidate(analysis: &Analysis, known: Known, id: &str) -> Option<Candidate> {
    let cost = costs(analysis)
        .into_iter()
        .filter(|cost| cost.known == known)
        .max_by(|a, b| a.seconds.total_cmp(&b.seconds))?;
    build(analysis, &cost, id)
}

/// The costliest line that prepares batches and that no rule recognizes.
pub fn batch_code(analysis: &Analysis, id: &str) -> Option<Candidate> {
    let cost = costs(analysis)
        .into_iter()
        .filter(|cost| cost.known == Known::HostWork && cost.part == Part::Batch)
        .max_by(|a, b| a.seconds.total_cmp(&b.seconds))?;
    build(analysis, &cost, id)
}

/// Every costly line of the step that no rule recognizes.
pub fn host_work(analysis: &Analysis, id: &str) -> Vec<Candidate> {
    let costs = costs(analysis);
    let same = costs
        .iter()
        .filter(|cost| cost.known == Known::HostWork && cost.part == Part::Step);
    same.filter_map(|cost| build(analysis, cost, id)).collect()
}

/// Every costly line of the account, once.
pub fn costs<'a>(analysis: &'a Analysis<'_>) -> Vec<Cost<'a>> {
    let mut found = step_costs(analysis);
    found.extend(batch_costs(analysis));
    found
}

fn step_costs<'a>(analysis: &'a Analysis<'_>) -> Vec<Cost<'a>> {
    let lines = &analysis.lines;
    let cost = |center, known, seconds: f64| Cost {
        center,
        part: Part::Step,
        known,
        seconds,
        goes_s: seconds,
        most_s: everywhere(analysis, center).max(seconds),
        in_worker: false,
    };
    let mut found: Vec<Cost> = lines
        .aside
        .iter()
        .chain(&lines.in_forward)
        .map(|center| cost(center, in_step(center), center.seconds))
        .collect();
    for center in &lines.looped {
        let Some(inner) = &center.inner_loop else { continue };
        if is_over_modules(&inner.text) {
            continue;
        }
        // The loop's line may already be there as Python work: then it is the same finding, with the loop's whole time.
        let same = |other: &&mut Cost| {
            let generic = matches!(other.known, Known::HostWork | Known::PythonLoopInStep);
            generic && (other.center.hot == center.hot || other.center.site == center.site)
        };
        let mut looped = cost(center, Known::PythonLoopInStep, center.seconds);
        looped.goes_s += backward_of(analysis, center);
        looped.most_s = looped.most_s.max(looped.goes_s);
        match found.iter_mut().find(same) {
            Some(other) if center.seconds >= other.seconds => *other = looped,
            Some(other) if center.seconds >= other.seconds * 0.5 => other.known = Known::PythonLoopInStep,
            Some(_) => {}
            None => found.push(looped),
        }
    }
    for center in &lines.helpers {
        let same = |other: &&mut Cost| other.center.site == center.site;
        match found.iter_mut().find(same) {
            Some(other) if center.seconds > other.seconds => {
                let known = match other.known {
                    Known::HostWork => in_step(center),
                    known => known,
                };
                *other = cost(center, known, center.seconds);
            }
            Some(_) => {}
            None => found.push(cost(center, in_step(center), center.seconds)),
        }
    }
    let wall_s = analysis.window.as_ref().map_or(0.0, |window| window.wall_s());
    let known: Vec<&Center> = found
        .iter()
        .filter(|cost| cost.seconds >= wall_s * WARNING_SHARE)
        .map(|cost| cost.center)
        .collect();
    let operators = lines.operators.iter().filter(|center| {
        let same = |other: &&Center| other.places().contains(&center.hot.place());
        !known.iter().any(same) && !is_the_models(center)
    });
    let syncs = syncs_per_step(analysis) >= SYNCS;
    let operators: Vec<Cost> = operators
        .map(|center| {
            let known = if syncs && waits_for_the_device(center) {
                Known::HiddenSync
            } else {
                Known::CostlyOperator
            };
            cost(center, known, center.seconds)
        })
        .collect();
    found.extend(operators);
    found
}

/// From this many waits per step on, they hold the step up.
const SYNCS: f64 = 2.5;

/// Times per step that the host waits for a stream of the GPU, from traces.
fn syncs_per_step(analysis: &Analysis) -> f64 {
    // Only some windows record them.
    let windows = || {
        let all = analysis.data.windows.iter();
        all.filter(|window| !window.syncs.is_empty())
    };
    let waits: u64 = windows()
        .flat_map(|window| &window.syncs)
        .filter(|sync| sync.name == "stream")
        .map(|sync| sync.count)
        .sum();
    let steps: u64 = windows().map(|window| window.steps).sum();
    if steps > 0 {
        waits as f64 / steps as f64
    } else {
        0.0
    }
}

/// Whether the line needs a value from the device to go on.
fn waits_for_the_device(center: &Center) -> bool {
    const MARKS: [&str; 14] = [
        ".any()",
        ".all()",
        "nonzero",
        ".item()",
        ".tolist()",
        "bool(",
        "if ",
        "while ",
        "unique",
        "masked_select",
        "mask]",
        ".cpu()",
        "assert ",
        "float(",
    ];
    let text = center.text().unwrap_or_default();
    MARKS.iter().any(|mark| text.contains(mark))
}

/// The part of backward that belongs to a loop in forward: what the loop launches one by one, backward does again.
fn backward_of(analysis: &Analysis, center: &Center) -> f64 {
    let Some(account) = &analysis.account else {
        return 0.0;
    };
    let sum = |keep: &dyn Fn(&crate::account::Span) -> bool| {
        let kept = account.spans.iter().filter(|span| keep(span));
        kept.map(|span| span.seconds).sum::<f64>()
    };
    let backward = sum(&|span| in_backward(span) && !span.activity.on_gpu());
    let forward =
        sum(&|span| in_module(span) && !in_backward(span) && !in_optimizer(span) && !span.activity.on_gpu());
    if forward <= 0.0 {
        return 0.0;
    }
    backward * (center.seconds / forward).min(1.0)
}

/// Operators that models are made of: a line with one of them is expected to take time.
fn is_the_models(center: &Center) -> bool {
    const CORE: [&str; 20] = [
        " @ ",
        "matmul",
        "bmm",
        "einsum",
        "conv",
        "linear(",
        "attention",
        "lstm",
        "gru",
        "loss",
        "criterion",
        "backward",
        ".step(",
        "model(",
        "net(",
        "_norm(",
        "pool",
        "interpolate",
        "relu",
        "gelu",
    ];
    const AVOIDABLE: [&str; 16] = [
        "one_hot",
        "isfinite",
        "isnan",
        "isinf",
        "arange",
        "eye(",
        "inverse",
        "linalg",
        "nonzero",
        "torch.tensor(",
        "triu",
        "tril",
        "repeat",
        "sort(",
        "unique",
        "assert ",
    ];
    let Some(text) = center.text() else { return true };
    let has = |marks: &[&str]| marks.iter().any(|mark| text.contains(mark));
    !has(&AVOIDABLE) && has(&CORE)
}

fn batch_costs<'a>(analysis: &'a Analysis<'_>) -> Vec<Cost<'a>> {
    let Some(window) = &analysis.window else {
        return Vec::new();
    };
    let wait_s = window.seconds(Phase::Data);
    let in_process: f64 = analysis.lines.data.iter().map(|center| center.seconds).sum();
    if in_process >= wait_s * 0.5 {
        let cost = |center: &'a Center| Cost {
            center,
            part: Part::Batch,
            known: in_batch(center),
            seconds: center.seconds,
            goes_s: center.seconds,
            // A fix that prepares everything at once takes the rest of the batch's cost along.
            most_s: everywhere(analysis, center)
                .max(center.seconds)
                .max(wait_s * 0.97),
            in_worker: false,
        };
        return analysis.lines.data.iter().map(cost).collect();
    }
    let work_s: f64 = analysis.lines.worker.iter().map(|center| center.seconds).sum();
    if work_s <= 0.0 {
        return Vec::new();
    }
    // On CPUs that are all busy the workers slow the steps down without being waited for.
    let crowding = crowding(analysis);
    // Workers that are waited for are the pace: with less work a batch comes that much sooner, until the steps are the pace.
    let rest_s = window.wall_s() - wait_s;
    // Threads that wait for each other lose more than the CPU that a worker takes: about half of what is left, measured 1.7 to 2.6×
    // where the workers' load went.
    let stalled_s = if crowding > 0.0 { rest_s * STALLED } else { 0.0 };
    let cost = |center: &'_ Center| {
        let share = center.seconds / work_s;
        let goes_s = window.wall_s() - rest_s.max(window.wall_s() * (1.0 - share));
        let taken_s = crowding * share * window.wall_s();
        let goes_s = goes_s.clamp(0.0, wait_s).max(taken_s * CERTAIN);
        ((share * wait_s).max(taken_s), goes_s, goes_s + share * stalled_s)
    };
    let workers = analysis.lines.worker.iter();
    workers
        .map(|center| {
            let (seconds, goes_s, most_s) = cost(center);
            Cost {
                center,
                part: Part::Batch,
                known: in_batch(center),
                seconds,
                goes_s,
                most_s,
                in_worker: true,
            }
        })
        .collect()
}

/// All the time with the line's function in the stack, in whatever phase, and its part of the time without a CPU.
fn everywhere(analysis: &Analysis, center: &Center) -> f64 {
    let Some(account) = &analysis.account else {
        return 0.0;
    };
    let here = |span: &&crate::account::Span| {
        let mut own = span.own();
        own.any(|frame| frame.file == center.hot.file && frame.function == center.hot.function)
    };
    let seconds: f64 = account.spans.iter().filter(here).map(|span| span.seconds).sum();
    let waiting = account.seconds(Activity::Descheduled) / account.wall_s.max(f64::MIN_POSITIVE);
    // The function that contains the loop itself is everything.
    if seconds > account.wall_s * 0.9 && center.hot.function == center.site.function {
        return center.seconds;
    }
    (seconds / (1.0 - waiting).max(0.1)).min(account.wall_s * 0.97)
}

/// The share of the CPUs that the workers take while the training thread has to wait for one; at most what it waits.
fn crowding(analysis: &Analysis) -> f64 {
    let (Some(account), Some(window)) = (&analysis.account, &analysis.window) else {
        return 0.0;
    };
    let Some(usable) = analysis.usable_cpus().filter(|usable| *usable > 0) else {
        return 0.0;
    };
    let waited = account.seconds(Activity::Descheduled) + window.seconds(Phase::Data);
    let waited = waited / window.wall_s();
    let workers = &analysis.workers;
    let taken = workers.count as f64 * workers.cpus_each.unwrap_or(0.0) / usable as f64;
    if analysis.device() == Device::Cuda || waited < WARNING_SHARE {
        return 0.0;
    }
    taken.clamp(0.0, 1.0).min(waited)
}

/// What a line of the step does.
fn in_step(center: &Center) -> Known {
    let text = center.text().unwrap_or_default();
    let via = center.via.as_ref();
    let called = |names: &[&str]| {
        via.is_some_and(|frame| names.contains(&frame.qualified().as_str()))
            || names.iter().any(|name| mentions_call(text, name))
    };
    if called(&[
        "gc.collect",
        "collect",
        "torch.empty_cache",
        "torch.cuda.empty_cache",
        "empty_cache",
    ]) {
        return Known::MemoryReleased;
    }
    if called(&["copy.deepcopy", "deepcopy"]) || text.contains(".state_dict()") {
        return Known::ModelCopied;
    }
    if is_logging(center, text) {
        return Known::Logging;
    }
    if matches!(
        center.activity(),
        Activity::Sleeping | Activity::Waiting | Activity::FileAccess
    ) {
        return Known::BlockingCall;
    }
    const METRICS: [&str; 4] = ["sklearn", "scipy", "torchmetrics", "evaluate"];
    if METRICS.iter().any(|package| center.share_in(package) >= 0.5) {
        return Known::Metrics;
    }
    if center
        .inner_loop
        .as_ref()
        .is_some_and(|inner| !is_over_modules(&inner.text))
    {
        return Known::PythonLoopInStep;
    }
    Known::HostWork
}

/// What a line of the data set does.
fn in_batch(center: &Center) -> Known {
    let text = center.text().unwrap_or_default();
    if center.hot.function.contains("ampler") || is_sampler(center) {
        return Known::SlowSampler;
    }
    if mentions_call(text, "iter") && text.contains("next(") {
        return Known::IteratorPerBatch;
    }
    if center.share_in("pandas") >= 0.5 && !text.contains("read_") {
        return Known::DataframeRowPerSample;
    }
    if reads_files(center, text) {
        return Known::FileReadPerSample;
    }
    if matches!(center.activity(), Activity::Sleeping | Activity::Waiting) {
        return Known::BlockingCall;
    }
    if center.share_in("PIL") >= 0.5 || center.share_in("cv2") >= 0.5 {
        return Known::ImageDecodedLarge;
    }
    if center.inner_loop.is_some() {
        return Known::PythonLoopPerSample;
    }
    Known::HostWork
}

fn is_sampler(center: &Center) -> bool {
    let path = |frame: &crate::account::frame::Frame| frame.in_file("torch/utils/data/sampler.py");
    center.via.as_ref().is_some_and(path)
}

fn reads_files(center: &Center, text: &str) -> bool {
    const CALLS: [&str; 16] = [
        "torch.load",
        "np.load",
        "numpy.load",
        "np.loadtxt",
        "np.genfromtxt",
        "json.load",
        "pickle.load",
        "pd.read_csv",
        "pd.read_parquet",
        "pd.read_json",
        "csv.reader",
        "yaml.safe_load",
        "sqlite3.connect",
        "zipfile.ZipFile",
        "tarfile.open",
        "h5py.File",
    ];
    const PACKAGES: [&str; 9] = [
        "json", "pickle", "csv", "zipfile", "tarfile", "gzip", "bz2", "lzma", "h5py",
    ];
    CALLS.iter().any(|call| text.contains(call))
        || text.contains("open(") && !text.contains("Image.open")
        || PACKAGES.iter().any(|package| center.share_in(package) >= 0.5)
        || center.activity() == Activity::FileAccess
        || center.via.as_ref().is_some_and(|frame| {
            frame.in_file("torch/serialization.py") || frame.in_file("numpy/lib/_npyio_impl.py")
        })
}

fn is_logging(center: &Center, text: &str) -> bool {
    const PACKAGES: [&str; 5] = ["logging", "tensorboard", "wandb", "mlflow", "tqdm"];
    const CALLS: [&str; 9] = [
        "print(",
        ".flush()",
        "os.fsync",
        "json.dump",
        ".writerow",
        "add_scalar",
        "add_histogram",
        "logger.",
        "log.write",
    ];
    PACKAGES.iter().any(|package| center.share_in(package) >= 0.5)
        || CALLS.iter().any(|call| text.contains(call))
        || center
            .via
            .as_ref()
            .is_some_and(|frame| frame.file.contains("torch/utils/tensorboard/"))
}

/// A loop over the model's own parts is the model.
fn is_over_modules(header: &str) -> bool {
    const PARTS: [&str; 12] = [
        "layers", "blocks", "modules", "children", "stages", "convs", "heads", "encoders", "decoders",
        "towers", "experts", "cells",
    ];
    let Some((_, over)) = header.split_once(" in ") else {
        return false;
    };
    !over.contains("range(") && PARTS.iter().any(|part| over.contains(part))
}

/// Whether the text calls a function of this name.
fn mentions_call(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].trim_start().starts_with('(');
        after && before.is_none_or(|before| !before.is_alphanumeric() && before != '_')
    })
}

fn build(analysis: &Analysis, cost: &Cost, id: &str) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let wall_s = window.wall_s();
    let share = cost.seconds / wall_s;
    // What a loop costs includes its backward.
    let whole = match cost.known {
        Known::PythonLoopInStep => share.max(cost.goes_s / wall_s),
        _ => share,
    };
    let limit = match cost.known {
        Known::PythonLoopInStep | Known::CostlyOperator => LOOP_SHARE,
        Known::HiddenSync => WARNING_SHARE,
        Known::HostWork if cost.part == Part::Batch => NEEDED_SHARE,
        _ => WARNING_SHARE,
    };
    if whole < limit || share < WARNING_SHARE || !share.is_finite() {
        return None;
    }
    let line = cost.center.hot.place();
    let certain = cost.goes_s.min(cost.seconds) * CERTAIN;
    let (stretch, other) = match cost.part {
        Part::Batch => (Stretch::Data, Stretch::Dispatch),
        Part::Step if cost.center.activity().on_gpu() => (Stretch::Device, Stretch::Dispatch),
        Part::Step if cost.center.between_steps_s * 2.0 >= cost.center.seconds => {
            (Stretch::Other, Stretch::Dispatch)
        }
        Part::Step => (Stretch::Dispatch, Stretch::Other),
    };
    let mut candidate = Candidate::new(id, severity_of(cost.goes_s / wall_s), title(cost, share))
        .detail(detail(cost))
        .confidence(if cost.known == Known::HostWork {
            Confidence::Medium
        } else {
            Confidence::High
        })
        .evidence(
            analysis.in_window(
                Evidence::new(
                    message!(en: "time at this line and below it", zh: "该行及其调用所用的时间"),
                    share * 100.0,
                    "%",
                )
                .against(limit * 100.0),
            ),
        )
        .evidence(analysis.in_window(Evidence::new(
            message!(en: "time per step", zh: "每步时间"),
            cost.seconds * 1e3 / window.steps.max(1) as f64,
            "ms",
        )))
        .claims(stretch, reach(analysis, cost), certain, cost.goes_s)
        .explains(cost.seconds.max(cost.goes_s))
        .up_to(cost.most_s)
        .or_in(other);
    for place in cost.center.places() {
        candidate = candidate.place(Some(&place));
    }
    Some(candidate.code(Some(&line), fix(cost)))
}

/// What is redundant by nature comes before "more workers"; what is needed can also be hidden by them, where there is room.
fn reach(analysis: &Analysis, cost: &Cost) -> Reach {
    let hidden_by_workers = || {
        analysis
            .train_loader()
            .is_some_and(|loader| advice::workers(analysis, loader).is_some_and(|workers| workers > 1))
    };
    // Far more workers than CPUs are too many workers, whatever they do.
    let too_many = || {
        let workers = analysis.train_loader().and_then(|loader| loader.num_workers);
        let usable = analysis.usable_cpus().unwrap_or(usize::MAX) as u64;
        workers.is_some_and(|workers| workers > usable.saturating_mul(TOO_MANY_WORKERS))
    };
    match (cost.part, cost.known) {
        (Part::Batch, _) if cost.in_worker && too_many() => Reach::Likely,
        (_, Known::HostWork | Known::CostlyOperator) => Reach::Likely,
        (_, Known::HiddenSync) => Reach::Specific,
        (Part::Batch, Known::PythonLoopPerSample | Known::ImageDecodedLarge) if hidden_by_workers() => {
            Reach::Likely
        }
        (Part::Batch | Part::Step, _) => Reach::Measured,
    }
}

fn title(cost: &Cost, share: f64) -> Message {
    let shown = units::percent(share);
    let at = cost.center.described();
    let function = &cost.center.hot.function;
    match (cost.known, cost.part) {
        (Known::FileReadPerSample, _) => message!(
            en: "A file is read for every sample at {at}: {shown} of the time",
            zh: "{at} 对每个样本都读取文件：占 {shown} 的时间"
        ),
        (Known::DataframeRowPerSample, _) => message!(
            en: "A DataFrame is indexed for every sample at {at}: {shown} of the time",
            zh: "{at} 对每个样本都索引 DataFrame：占 {shown} 的时间"
        ),
        (Known::SlowSampler, _) => message!(
            en: "The sampler at {at} takes {shown} of the time",
            zh: "{at} 的 sampler 占 {shown} 的时间"
        ),
        (Known::IteratorPerBatch, _) => message!(
            en: "An iterator is built for every batch at {at}: {shown} of the time",
            zh: "{at} 为每个 batch 新建迭代器：占 {shown} 的时间"
        ),
        (Known::PythonLoopPerSample, _) => message!(
            en: "A Python loop prepares samples at {at}: {shown} of the time",
            zh: "{at} 用 Python 循环准备样本：占 {shown} 的时间"
        ),
        (Known::ImageDecodedLarge, _) => message!(
            en: "Images are decoded and transformed at {at}: {shown} of the time",
            zh: "{at} 解码并变换图像：占 {shown} 的时间"
        ),
        (Known::BlockingCall, _) => {
            let what = blocked_in(cost.center);
            Message {
                en: format!("The loop {} at {at}: {shown} of the time", what.en),
                zh: format!("训练循环在 {at} {}：占 {shown} 的时间", what.zh),
            }
        }
        (Known::Metrics, _) => message!(
            en: "Metrics are computed on the CPU in every step at {at}: {shown} of the time",
            zh: "{at} 每一步都在 CPU 上计算指标：占 {shown} 的时间"
        ),
        (Known::Logging, _) => message!(
            en: "Logging in every step at {at} takes {shown} of the time",
            zh: "{at} 每一步都写日志：占 {shown} 的时间"
        ),
        (Known::MemoryReleased, _) => message!(
            en: "Memory is collected or released in every step at {at}: {shown} of the time",
            zh: "{at} 每一步都回收或释放内存：占 {shown} 的时间"
        ),
        (Known::ModelCopied, _) => message!(
            en: "The model is copied again and again at {at}: {shown} of the time",
            zh: "{at} 反复复制模型：占 {shown} 的时间"
        ),
        (Known::PythonLoopInStep, _) => {
            let header = cost
                .center
                .inner_loop
                .as_ref()
                .map_or("", |inner| inner.text.as_str());
            message!(
                en: "Python loop `{header}` at {at} takes {shown} of the time",
                zh: "{at} 的 Python 循环 `{header}` 占 {shown} 的时间"
            )
        }
        (Known::HiddenSync, _) => message!(
            en: "The host waits for the GPU inside the step at {at}: {shown} of the time",
            zh: "主机在一步之内于 {at} 等待 GPU：占 {shown} 的时间"
        ),
        (Known::CostlyOperator, _) => message!(
            en: "An operator at {at} takes {shown} of the time: is it needed in every step?",
            zh: "{at} 的算子占 {shown} 的时间：每一步都需要它吗？"
        ),
        (Known::HostWork, Part::Batch) => message!(
            en: "Preparing samples in {function}() at {at} takes {shown} of the time",
            zh: "{at} 的 {function}() 准备样本，占 {shown} 的时间"
        ),
        (Known::HostWork, Part::Step) => message!(
            en: "{function}() at {at} takes {shown} of the time outside the model",
            zh: "{at} 的 {function}()（模型之外）占 {shown} 的时间"
        ),
    }
}

fn blocked_in(center: &Center) -> Message {
    match center.activity() {
        Activity::Sleeping => message!(en: "sleeps", zh: "睡眠"),
        Activity::FileAccess => message!(en: "reads or writes files", zh: "读写文件"),
        _ => message!(en: "waits for a lock, a thread or a process", zh: "等待锁、线程或进程"),
    }
}

/// The line, and what it does in how many words the samples allow.
fn detail(cost: &Cost) -> Message {
    let text = cost.center.text().unwrap_or_default();
    let via = cost.center.via.as_ref().map(|frame| frame.qualified());
    let what = cost.center.activity().name();
    let (en_via, zh_via) = match via {
        Some(via) => (format!(", mostly in {via}"), format!("，主要在 {via} 中")),
        None => (String::new(), String::new()),
    };
    let (en_worker, zh_worker) = if cost.in_worker {
        (" of a loader worker", "（DataLoader worker）")
    } else {
        ("", "")
    };
    if text.is_empty() {
        return Message {
            en: format!("The samples{en_worker} show {}{en_via}.", what.en),
            zh: format!("采样{zh_worker}显示：{}{zh_via}。", what.zh),
        };
    }
    Message {
        en: format!("`{text}`: the samples{en_worker} show {}{en_via}.", what.en),
        zh: format!("`{text}`：采样{zh_worker}显示：{}{zh_via}。", what.zh),
    }
}

fn fix(cost: &Cost) -> Message {
    match (cost.known, cost.part) {
        (Known::FileReadPerSample, _) => message!(
            en: "Read it once, in __init__ or on the first access, and keep it; open archives and databases once per worker",
            zh: "只读取一次（在 __init__ 或首次访问时）并保留；压缩包和数据库每个 worker 只打开一次"
        ),
        (Known::DataframeRowPerSample, _) => message!(
            en: "Convert the columns to NumPy arrays or tensors once, in __init__, and index those",
            zh: "在 __init__ 中把各列一次性转换为 NumPy 数组或 tensor，再对其索引"
        ),
        (Known::SlowSampler, _) => message!(
            en: "Draw the indices of a whole epoch at once: torch.randperm, torch.multinomial, or NumPy",
            zh: "一次性生成整个 epoch 的索引：torch.randperm、torch.multinomial 或 NumPy"
        ),
        (Known::IteratorPerBatch, _) => message!(
            en: "Build the iterator once and call next() on it; start a new one only when it is exhausted",
            zh: "只建立一次迭代器并对它调用 next()；耗尽后再新建"
        ),
        (Known::PythonLoopPerSample, _) => message!(
            en: "Replace the loop by operations on whole arrays, or prepare the result once before the training",
            zh: "用整个数组的运算代替循环，或在训练前一次性准备好结果"
        ),
        (Known::ImageDecodedLarge, _) => message!(
            en: "Decode at the size that is needed (Image.draft, reduced JPEG decoding) or store smaller images once; decode in workers",
            zh: "按所需尺寸解码（Image.draft、缩小的 JPEG 解码），或预先存成小图；在 worker 中解码"
        ),
        (Known::BlockingCall, _) => message!(
            en: "Take it out of the loop, do it every N steps, or do it in another thread",
            zh: "移出循环、每 N 步做一次，或放到另一个线程"
        ),
        (Known::Metrics, _) => message!(
            en: "Compute it every N steps or once per epoch, or on tensors where the predictions already are",
            zh: "每 N 步或每个 epoch 计算一次，或直接在预测所在的 tensor 上计算"
        ),
        (Known::Logging, _) => message!(
            en: "Log every N steps, keep the file open, and do not flush after each line",
            zh: "每 N 步记录一次，保持文件打开，不要逐行 flush"
        ),
        (Known::MemoryReleased, _) => message!(
            en: "Remove the call: Python and the caching allocator release memory by themselves",
            zh: "删除该调用：Python 和缓存分配器会自行释放内存"
        ),
        (Known::ModelCopied, _) => message!(
            en: "Copy it every N steps, or update the copy in place with torch._foreach_lerp_ or torch.optim.swa_utils",
            zh: "每 N 步复制一次，或用 torch._foreach_lerp_、torch.optim.swa_utils 就地更新副本"
        ),
        (Known::PythonLoopInStep, _) => message!(
            en: "Replace the loop by one operation over the whole dimension (batched matmul, cumsum, gather, nn.LSTM, vmap)",
            zh: "用对整个维度的一次运算代替循环（批量 matmul、cumsum、gather、nn.LSTM、vmap）"
        ),
        (Known::HiddenSync, _) => message!(
            en: "Keep the decision on the device (torch.where, clamp, masks by multiplication), or check every N steps",
            zh: "把判断留在设备上（torch.where、clamp、乘以掩码），或每 N 步检查一次"
        ),
        (Known::CostlyOperator, _) => message!(
            en: "Compute it once before the loop if it does not change, use a cheaper operator (an embedding for a one-hot product), or do it every N steps",
            zh: "若结果不变就在循环前计算一次，换用更便宜的算子（用 embedding 代替 one-hot 乘法），或每 N 步做一次"
        ),
        (Known::HostWork, Part::Batch) => message!(
            en: "Do it once before the training, or make it cheaper",
            zh: "在训练前一次做完，或降低其成本"
        ),
        (Known::HostWork, Part::Step) => message!(
            en: "Do it every N steps, on whole tensors, or in another thread",
            zh: "改为每 N 步做一次、对整个 tensor 操作，或放到另一个线程"
        ),
    }
}

/// The line to look at for a stretch of time, for rules that know the stretch and not the line.
pub fn place_of(analysis: &Analysis, part: Part) -> Option<Place> {
    let costs = costs(analysis);
    let same = costs.iter().filter(|cost| cost.part == part);
    same.max_by(|a, b| a.seconds.total_cmp(&b.seconds))
        .map(|cost| cost.center.hot.place())
}
