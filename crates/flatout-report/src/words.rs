//! Words that text, HTML and Markdown share: how a number, a gain, a change or the end of a run is said.

use flatout_core::plural::counted;
use flatout_core::{Confidence, Finding, Gain, Kind, Linted, Message, Severity, message, units};
use flatout_diagnose::WindowSummary;
use flatout_record::{KernelKind, Phase, RunInfo};

/// `61%`, `3.2 ms`, `8`.
pub fn number(value: f64, unit: &str) -> String {
    let value = if value.is_finite() {
        units::significant(value)
    } else {
        "?".to_owned()
    };
    match unit {
        "" => value,
        "%" => format!("{value}%"),
        unit => format!("{value} {unit}"),
    }
}

/// A sign that needs no colour, and the word.
pub fn severity(severity: Severity) -> (&'static str, Message) {
    match severity {
        Severity::Critical => ("✗", message!(en: "CRITICAL", zh: "严重")),
        Severity::Warning => ("!", message!(en: "WARNING", zh: "警告")),
        Severity::Information => ("·", message!(en: "NOTE", zh: "提示")),
    }
}

/// `None` for a gain that is none by the figures shown.
pub fn gain(gain: Gain) -> Option<Message> {
    const SMALLEST: f64 = 1.005;
    if gain.low < SMALLEST && gain.high < SMALLEST && !gain.measured {
        return None;
    }
    let (low, high) = (format!("{:.2}×", gain.low), format!("{:.2}×", gain.high));
    let range = if low == high {
        low
    } else {
        format!("{low} – {high}")
    };
    Some(if gain.measured {
        message!(en: "throughput {range}, measured", zh: "吞吐 {range}（实测）")
    } else {
        message!(en: "throughput {range}, estimated from this run", zh: "吞吐 {range}（由本次运行估算）")
    })
}

pub fn certainty(finding: &Finding) -> Message {
    let sure = match finding.confidence {
        Confidence::High => message!(en: "high", zh: "高"),
        Confidence::Medium => message!(en: "medium", zh: "中"),
        Confidence::Low => message!(en: "low", zh: "低"),
    };
    let kind = match finding.kind {
        Kind::Cause => message!(en: " · cause", zh: " · 原因"),
        Kind::Symptom => message!(en: " · symptom of another finding", zh: " · 只是现象，另有原因"),
        Kind::Verdict => Message::default(),
    };
    Message {
        en: sure.en + &kind.en,
        zh: sure.zh + &kind.zh,
    }
}

/// `num_workers: 0 → 4`.
pub fn change(setting: &str, from: Option<&str>, to: &str) -> String {
    match from {
        Some(from) => format!("{setting}: {from} → {to}"),
        None => format!("{setting} = {to}"),
    }
}

/// What flatout can do about it by itself.
pub fn edits(count: usize, safe: bool) -> Message {
    if safe {
        message!(en: "flatout can make this edit ({count}); results stay the same", zh: "flatout 可自动修改（{count} 处），不影响结果")
    } else {
        message!(en: "flatout can make this edit ({count}); results may change", zh: "flatout 可自动修改（{count} 处），可能影响结果")
    }
}

/// What the lint knows of a line that costs time.
pub fn linted(linted: &Linted, finding: &Finding) -> Message {
    let (rule, place) = (&linted.rule, &linted.place);
    if finding.places.first() == Some(place) {
        return message!(en: "{rule} also reports this line", zh: "{rule} 也指出了这一行");
    }
    message!(en: "{rule} reports {place}", zh: "{rule} 指出了 {place}")
}

/// A part of the training thread's time.
pub fn phase(phase: Phase) -> Message {
    match phase {
        Phase::Data => message!(en: "batch", zh: "取 batch"),
        Phase::Transfer => message!(en: "copy to GPU", zh: "拷贝到 GPU"),
        Phase::Compute => message!(en: "compute", zh: "计算"),
        Phase::Sync => message!(en: "synchronize", zh: "同步"),
        Phase::Eval => message!(en: "evaluate", zh: "评估"),
        Phase::Checkpoint => message!(en: "checkpoint", zh: "checkpoint"),
        Phase::Other => message!(en: "between steps", zh: "两步之间"),
    }
}

/// The style class of what a kernel computes.
pub fn kernel_class(kind: KernelKind) -> &'static str {
    match kind {
        KernelKind::TensorCore => "matmul",
        KernelKind::MatrixFp32 => "fp32",
        KernelKind::MatrixFp64 => "fp64",
        KernelKind::FusedAttention => "attention",
        KernelKind::Softmax => "softmax",
        KernelKind::Recurrent => "recurrent",
        KernelKind::Elementwise => "elementwise",
        KernelKind::Layout => "layout",
        KernelKind::Reduction => "reduction",
        KernelKind::Optimizer => "optimizer",
        KernelKind::Communication => "communication",
        KernelKind::Other => "other",
    }
}

/// How a run ended, and whether that is well.
pub fn ending(info: &RunInfo) -> (Message, bool) {
    match info.exit {
        None => (message!(en: "running or killed", zh: "运行中或被终止"), false),
        Some(exit) => match (exit.signal, exit.code) {
            (Some(signal), _) => (
                message!(en: "killed by signal {signal}", zh: "被信号 {signal} 终止"),
                false,
            ),
            (None, Some(code)) if code != 0 => (message!(en: "exit code {code}", zh: "退出码 {code}"), false),
            _ => (message!(en: "done", zh: "完成"), true),
        },
    }
}

/// When, where, on what, how long, how it ended: one line under the name.
pub fn about_run(info: &RunInfo, length_s: Option<f64>) -> Message {
    about(info, length_s, ending(info).0)
}

/// The same of a run that is known to go on.
pub fn about_running(info: &RunInfo, length_s: Option<f64>) -> Message {
    about(info, length_s, message!(en: "running", zh: "运行中"))
}

fn about(info: &RunInfo, length_s: Option<f64>, ending: Message) -> Message {
    let mut parts = Vec::new();
    if info.started_unix_ms > 0 {
        parts.push(Message::verbatim(flatout_record::utc(
            info.started_unix_ms / 1000,
        )));
    }
    if let Some(seconds) = length_s {
        let time = units::duration(seconds);
        parts.push(message!(en: "took {time}", zh: "用时 {time}"));
    }
    // A log of another tool does not tell how the program ended.
    if info.kind != "import" {
        parts.push(ending);
    }
    if let Some(host) = &info.host {
        let (name, cpus) = (&host.name, host.cpus.count());
        parts.push(message!(en: "{name}, {cpus} CPUs", zh: "{name}，{cpus} 个 CPU"));
    }
    if let Some(gpu) = info.gpus.values().find_map(|gpu| gpu.name.as_deref()) {
        let count = info.gpus.len();
        parts.push(Message::verbatim(format!("{count}× {gpu}")));
    }
    if let Some(job) = &info.job {
        let (system, id) = (&job.system, &job.id);
        parts.push(message!(en: "{system} job {id}", zh: "{system} 作业 {id}"));
    }
    join(&parts, " · ")
}

pub fn join(parts: &[Message], between: &str) -> Message {
    let of = |pick: fn(&Message) -> &String| {
        let texts: Vec<&str> = parts.iter().map(|part| pick(part).as_str()).collect();
        texts.join(between)
    };
    Message {
        en: of(|message| &message.en),
        zh: of(|message| &message.zh),
    }
}

/// What the findings rest on.
pub fn window(window: &WindowSummary) -> Message {
    let (start, end, steps) = (
        units::significant(window.start_s),
        units::significant(window.end_s),
        window.steps,
    );
    let how = &window.how;
    let (en, zh) = (&how.en, &how.zh);
    let mut line = Message {
        en: counted(format!("Based on {steps} steps from {start} to {end} s ({en}).")),
        zh: format!("依据 {start} 到 {end} 秒之间的 {steps} 步（{zh}）。"),
    };
    let mut add = |more: Message| {
        line.en += &more.en;
        line.zh += &more.zh;
    };
    if let (Some(p50), Some(p95)) = (window.step_p50_ms, window.step_p95_ms) {
        let mean = units::duration(window.step_mean_ms / 1e3);
        let (p50, p95) = (units::rough_duration(p50 / 1e3), units::rough_duration(p95 / 1e3));
        add(message!(
            en: " Step time: mean {mean}, median about {p50}, p95 about {p95}.",
            zh: "每步平均 {mean}，中位数约 {p50}，p95 约 {p95}。"
        ));
    }
    if let Some(rate) = window.samples_per_s {
        let rate = units::count(rate);
        add(message!(en: " {rate} samples/s.", zh: "每秒 {rate} 个样本。"));
    }
    line
}

/// The title of an account; with several ranks it is of one of them.
pub fn account_title(rank: Option<u32>, step: &str, steps: u64) -> Message {
    match rank {
        Some(rank) => {
            message!(en: "Where rank {rank}'s step time goes ({step} per step, {steps} steady steps)", zh: "rank {rank} 一步的时间去向（每步 {step}，共 {steps} 个稳定步）")
        }
        None => {
            message!(en: "Where step time goes ({step} per step, {steps} steady steps)", zh: "一步的时间去向（每步 {step}，共 {steps} 个稳定步）")
        }
    }
}

/// A run's name, or its id where it has none.
pub fn run_name(info: &RunInfo) -> &str {
    if info.name.is_empty() {
        &info.id
    } else {
        &info.name
    }
}
