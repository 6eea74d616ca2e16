//! Where the wall time of the steady steps went, without remainder: every instant belongs to exactly one row.
//!
//! The probe knows exactly how long each phase took; samples of the training thread know which line it was in, whether the
//! interpreter ran and what the thread was blocked in. The time of a phase is split over its samples, so the rows add up to the
//! wall time however few samples there are. What no sample saw is `unexplained`.
//!
//! - [`frame`]: one frame of a stack, and whose code it is
//! - [`activity`]: what the host does in a sample
//! - [`center`]: the lines that stand for a part of the account
//! - [`collectives`]: waiting for other ranks, and transferring
//! - [`device`]: the GPU's computing time by kind of kernel and by launching line
//! - [`over_time`]: activities as the run goes on
//! - [`workers`]: the same of the loader's workers

pub mod activity;
pub mod center;
mod collectives;
pub mod device;
pub mod frame;
pub mod over_time;
pub mod workers;

use crate::analysis::Window;
use crate::analysis::efficiency::Efficiency;
use crate::analysis::pages::Pages;
use crate::analysis::spans::Spans;
use activity::Activity;
use center::Iterations;
use device::GpuKind;
use flatout_core::Place;
use flatout_record::{GpuState, KernelKind, Phase, RunData, StackCount};
use frame::Frame;
use serde::Serialize;
use std::collections::BTreeMap;

/// A phase with fewer samples in GPU windows keeps those of the whole run.
const FEWEST_TRACED: u64 = 15;
/// Fewer samples than this say little about shares.
pub const FEWEST_SAMPLES: u64 = 40;

/// The account of a run's steady part.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Account {
    /// Of several ranks, the one that it is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    pub wall_s: f64,
    pub steps: u64,
    /// Samples of the training thread it rests on.
    pub samples: u64,
    /// Iterations of the program's own loop, where nothing counts steps and the samples show them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<Iterations>,
    /// By time, the largest first; `unexplained` last.
    pub rows: Vec<Row>,
    /// What the GPU computes, by kind of kernel, the largest first; empty where it was not traced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpu_kinds: Vec<GpuKind>,
    /// The model's arithmetic compared with the GPU's peak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub efficiency: Option<Efficiency>,
    /// The samples behind the rows, for whoever asks for the lines of a part of them.
    #[serde(skip)]
    pub spans: Vec<Span>,
}

/// A part of the wall time: one activity at one line of the user's code.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Row {
    pub activity: Activity,
    pub seconds: f64,
    pub share: f64,
    /// The user's line, and the function it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The library function that the line called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The source of the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Of a row in which the GPU computes: the kind of kernel that takes most of it. Its line launched the kernels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelKind>,
}

/// Samples of one stack with the wall time they stand for.
#[derive(Clone, Debug)]
pub struct Span {
    pub activity: Activity,
    pub phase: Option<Phase>,
    pub gpu: Option<GpuState>,
    pub gil: bool,
    pub seconds: f64,
    /// All frames, outermost first.
    pub frames: Vec<Frame>,
}

impl Span {
    /// A stack without a time.
    pub fn of_frames(frames: Vec<Frame>) -> Self {
        Self {
            activity: Activity::Unexplained,
            phase: None,
            gpu: None,
            gil: false,
            seconds: 0.0,
            frames,
        }
    }

    /// The user's own frames, outermost first.
    pub fn own(&self) -> impl DoubleEndedIterator<Item = &Frame> {
        self.frames.iter().filter(|frame| frame.is_users())
    }

    /// The user's innermost frame.
    pub fn line(&self) -> Option<&Frame> {
        self.own().next_back()
    }

    /// The frames below the user's innermost one.
    pub fn called(&self) -> impl Iterator<Item = &Frame> {
        let last = self.frames.iter().rposition(Frame::is_users);
        self.frames.iter().skip(last.map_or(0, |at| at + 1))
    }

    /// The first library frame called from the user's innermost one.
    pub fn via(&self) -> Option<&Frame> {
        let last = self.frames.iter().rposition(Frame::is_users)?;
        self.frames.get(last + 1)
    }
}

impl Account {
    /// `None` without a steady window, or without samples of the training thread.
    pub fn new(data: &RunData, window: &Window) -> Option<Self> {
        let mut samples = with_gpu_windows(data, samples_within(data, window.range()));
        if window.steps == 0 {
            // Nothing tells where the loop begins: imports are no part of it.
            samples.retain(|stack| !imports(stack));
        }
        let count: u64 = samples.iter().map(|stack| stack.count).sum();
        if count < FEWEST_SAMPLES {
            return None;
        }
        let mut spans = weighed(data, &samples, window);
        agree_with_traces(data, &mut spans);
        device::credit_launches(data, &mut spans);
        collectives::split(data, window.range(), &mut spans);
        deduct_descheduled(data, window, &mut spans);
        deduct_collections(data, window, &mut spans);
        deduct_faults(data, window, &mut spans);
        let wall_s = window.wall_s();
        let mut account = Self {
            rank: None,
            wall_s,
            steps: window.steps,
            samples: count,
            iterations: None,
            rows: Vec::new(),
            gpu_kinds: device::kinds(data),
            efficiency: None,
            spans,
        };
        account.rows = account.sum_up(data);
        if account.steps == 0 {
            account.iterations = Iterations::of(&account, data);
        }
        Some(account)
    }

    fn sum_up(&self, data: &RunData) -> Vec<Row> {
        type Key = (Activity, Option<Place>, Option<String>, Option<String>);
        let mut rows: BTreeMap<Key, f64> = BTreeMap::new();
        for span in &self.spans {
            let line = span.line();
            let key = (
                span.activity,
                line.map(Frame::place),
                line.map(|frame| frame.function.clone()),
                span.via().map(Frame::qualified),
            );
            *rows.entry(key).or_default() += span.seconds;
        }
        let explained: f64 = rows.values().sum();
        let mut rows: Vec<Row> = rows
            .into_iter()
            .map(|((activity, place, function, via), seconds)| Row {
                activity,
                seconds,
                share: seconds / self.wall_s,
                text: place.as_ref().and_then(|place| source(data, place)),
                place,
                function,
                via,
                kernel: None,
            })
            .collect();
        device::name_kernels(data, &mut rows);
        rows.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        let rest = self.wall_s - explained;
        if rest > self.wall_s * 1e-6 {
            rows.push(Row {
                activity: Activity::Unexplained,
                seconds: rest,
                share: rest / self.wall_s,
                place: None,
                function: None,
                via: None,
                text: None,
                kernel: None,
            });
        }
        rows
    }

    /// The time of an activity.
    pub fn seconds(&self, activity: Activity) -> f64 {
        let rows = self.rows.iter().filter(|row| row.activity == activity);
        rows.map(|row| row.seconds).sum()
    }

    /// Activities with their share, the largest first.
    pub fn by_activity(&self) -> Vec<(Activity, f64)> {
        let mut shares: BTreeMap<Activity, f64> = BTreeMap::new();
        for row in &self.rows {
            *shares.entry(row.activity).or_default() += row.share;
        }
        let mut shares: Vec<(Activity, f64)> = shares.into_iter().collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1));
        shares
    }
}

/// The share of the traced time in which the GPU did nothing; `None` without traces.
pub fn gpu_idle_share(data: &RunData) -> Option<f64> {
    let wall: f64 = data.windows.iter().map(|window| window.wall_ms).sum();
    let idle: f64 = data.windows.iter().map(|window| window.idle_ms).sum();
    (wall > 0.0).then(|| (idle / wall).clamp(0.0, 1.0))
}

/// The source of a line, where the record has it.
pub fn source(data: &RunData, place: &Place) -> Option<String> {
    let file = place.file.to_str()?;
    let found = data
        .lines
        .iter()
        .find(|line| line.line == place.line && line.file == file);
    found.map(|line| line.text.clone())
}

/// The training thread's samples of the steady part.
fn samples_within(data: &RunData, (start_s, end_s): (f64, f64)) -> Vec<&StackCount> {
    let ticks = || data.stacks.iter().filter(move |tick| tick.t <= end_s + 60.0);
    // A line of stacks holds the seconds before it: the first one inside may begin in the warm-up.
    let inside = || ticks().filter(move |tick| tick.t > start_s);
    let begun = |tick: &&flatout_record::StackTick| {
        let before = ticks().filter(|other| other.t < tick.t).map(|other| other.t);
        before.fold(0.0, f64::max) >= start_s - 1.0
    };
    let whole: Vec<&StackCount> = inside()
        .filter(begun)
        .flat_map(|tick| &tick.stacks)
        .filter(|stack| !stack.worker)
        .collect();
    if whole.iter().map(|stack| stack.count).sum::<u64>() >= FEWEST_SAMPLES {
        return whole;
    }
    inside()
        .flat_map(|tick| &tick.stacks)
        .filter(|stack| !stack.worker)
        .collect()
}

/// A module of a library is being imported.
fn imports(stack: &StackCount) -> bool {
    let mut frames = stack.frames.iter().filter_map(|text| Frame::parse(text));
    frames.any(|frame| !frame.is_users() && frame.function == "<module>" && frame.package().is_some())
}

/// Samples taken while the GPU was traced stand for their phase: they know what the GPU did. Phases that the traces hardly saw
/// keep the samples of the whole run.
fn with_gpu_windows<'a>(data: &'a RunData, ordinary: Vec<&'a StackCount>) -> Vec<&'a StackCount> {
    let traced: Vec<&StackCount> = data.windows.iter().flat_map(|window| &window.stacks).collect();
    let of = |phase: Option<Phase>| {
        let same = traced.iter().filter(move |stack| stack.phase == phase);
        same.map(|stack| stack.count).sum::<u64>()
    };
    let all: u64 = traced.iter().map(|stack| stack.count).sum();
    if all < FEWEST_SAMPLES {
        return ordinary;
    }
    let seen = |stack: &&StackCount| of(stack.phase) >= FEWEST_TRACED;
    let rest = ordinary.into_iter().filter(|stack| !seen(stack));
    let kept: Vec<&StackCount> = traced.iter().filter(|stack| seen(stack)).copied().collect();
    kept.into_iter().chain(rest).collect()
}

/// Traces know exactly how long the GPU was idle; samples only estimate it. Within what was traced, the exact shares count.
fn agree_with_traces(data: &RunData, spans: &mut [Span]) {
    let traced = |span: &Span| span.gpu.is_some();
    let all: f64 = spans
        .iter()
        .filter(|span| traced(span))
        .map(|span| span.seconds)
        .sum();
    let wall: f64 = data.windows.iter().map(|window| window.wall_ms).sum();
    if all <= 0.0 || wall <= 0.0 {
        return;
    }
    let exact = |state: GpuState| {
        let ms = data.windows.iter().map(|window| match state {
            GpuState::Computing => window.computing_ms,
            GpuState::Copying => window.copying_ms,
            GpuState::Communicating => window.communicating_ms,
            GpuState::Idle => window.idle_ms,
        });
        ms.sum::<f64>() / wall
    };
    const STATES: [GpuState; 4] = [
        GpuState::Computing,
        GpuState::Copying,
        GpuState::Communicating,
        GpuState::Idle,
    ];
    let sampled = STATES.map(|state| {
        let same = spans.iter().filter(|span| span.gpu == Some(state));
        same.map(|span| span.seconds).sum::<f64>()
    });
    // A state without a sample keeps none: its part goes to the others.
    let reachable: f64 = STATES
        .iter()
        .zip(sampled)
        .filter(|(_, seconds)| *seconds > 0.0)
        .map(|(state, _)| exact(*state))
        .sum();
    if reachable <= 0.0 {
        return;
    }
    for (state, seconds) in STATES.iter().zip(sampled).filter(|(_, seconds)| *seconds > 0.0) {
        let factor = exact(*state) / reachable * all / seconds;
        for span in spans.iter_mut().filter(|span| span.gpu == Some(*state)) {
            span.seconds *= factor;
        }
    }
}

/// Splits the exact time of each phase over its samples. What no sample could be read for belongs to those in which Python ran.
fn weighed(data: &RunData, samples: &[&StackCount], window: &Window) -> Vec<Span> {
    // Without steps there are no exact times: every sample stands for the same part of the whole.
    let phase_of = |stack: &StackCount| stack.phase.filter(|_| window.steps > 0);
    let mut sampled: BTreeMap<Option<Phase>, f64> = BTreeMap::new();
    let mut in_python: BTreeMap<Option<Phase>, f64> = BTreeMap::new();
    for stack in samples {
        *sampled.entry(phase_of(stack)).or_default() += stack.time_ms();
        if stack.gil {
            *in_python.entry(phase_of(stack)).or_default() += stack.time_ms();
        }
    }
    let lost = Lost::of(data, samples, window);
    // Samples without a phase stand for the time in no phase, and for nothing where the probe knows every phase.
    let exact = |phase: Option<Phase>| match phase {
        Some(phase) => window.seconds(phase),
        None => window.unexplained_s(),
    };
    let unseen = window
        .phase_s
        .iter()
        .filter(|(phase, _)| window.steps > 0 && !sampled.contains_key(&Some(**phase)))
        .map(|(phase, seconds)| Span {
            activity: activity::of_phase(*phase),
            phase: Some(*phase),
            gpu: None,
            gil: false,
            seconds: *seconds,
            frames: Vec::new(),
        });
    samples
        .iter()
        .filter_map(|stack| {
            let phase = phase_of(stack);
            let all_ms = sampled.get(&phase).copied().filter(|ms| *ms > 0.0)?;
            let python_ms = in_python.get(&phase).copied().filter(|ms| *ms > 0.0);
            let lost = python_ms.map_or(0.0, |_| lost.share(phase));
            let frames: Vec<Frame> = stack
                .frames
                .iter()
                .filter_map(|text| Frame::parse(text))
                .collect();
            let of_lost = match python_ms {
                Some(ms) if stack.gil => lost * stack.time_ms() / ms,
                _ => 0.0,
            };
            let share = (1.0 - lost) * stack.time_ms() / all_ms + of_lost;
            let seconds = exact(phase) * share;
            (seconds > 0.0).then(|| Span {
                activity: activity::of(stack, &frames),
                phase: stack.phase,
                gpu: stack.gpu,
                gil: stack.gil,
                seconds,
                frames,
            })
        })
        .chain(unseen)
        .collect()
}

/// Time of phases for which no stack could be read. A read fails if Python calls or returns meanwhile, so this time was Python's; newer
/// recorders read again and lose hardly any.
struct Lost(BTreeMap<Phase, f64>);

impl Lost {
    /// Less is noise.
    const LEAST: f64 = 0.08;
    /// What was hardly sampled is not known.
    const MOST: f64 = 0.8;
    /// Phases with less time say nothing.
    const LEAST_S: f64 = 1.5;
    /// Samples that stand for more were late themselves: then time is missing whatever the program did.
    const LATE_MS: f64 = 60.0;

    fn of(data: &RunData, samples: &[&StackCount], window: &Window) -> Self {
        let nothing = Self(BTreeMap::new());
        let joined = samples.iter().any(|stack| stack.gpu.is_some());
        if window.steps == 0 || joined || samples.iter().any(|stack| stack.ms <= 0.0) {
            return nothing;
        }
        let (start_s, end_s) = window.range();
        let ends = data.stacks.iter().map(|tick| tick.t);
        let before = ends
            .clone()
            .filter(|t| *t <= start_s + 1.0)
            .fold(start_s, f64::max);
        let last = ends
            .filter(|t| *t <= end_s + 60.0)
            .fold(start_s, f64::max)
            .min(end_s);
        let covered_s = last - before;
        let mut found = BTreeMap::new();
        for phase in Phase::ALL {
            let expected_s = window.share(phase) * covered_s;
            let same = || samples.iter().filter(|stack| stack.phase == Some(phase));
            let (ms, count) = same().fold((0.0, 0), |sum, stack| (sum.0 + stack.ms, sum.1 + stack.count));
            if expected_s < Self::LEAST_S || count == 0 || ms / count as f64 > Self::LATE_MS {
                continue;
            }
            let share = 1.0 - ms / 1e3 / expected_s;
            if share >= Self::LEAST {
                found.insert(phase, share.min(Self::MOST));
            }
        }
        Self(found)
    }

    fn share(&self, phase: Option<Phase>) -> f64 {
        phase.and_then(|phase| self.0.get(&phase)).copied().unwrap_or(0.0)
    }
}

/// A thread that is ready to run but has no CPU looks as if it ran: its time is taken from what seems to run.
fn deduct_descheduled(data: &RunData, window: &Window, spans: &mut Vec<Span>) {
    let (start_s, end_s) = window.range();
    let ticks = data
        .stacks
        .iter()
        .filter(|tick| tick.t > start_s && tick.t <= end_s + 60.0);
    let (waited, of) = ticks
        .filter_map(|tick| tick.descheduled_ms)
        .fold((0.0, 0.0), |sum, tick| (sum.0 + tick.0, sum.1 + tick.1));
    if of > 0.0 {
        let all: f64 = spans.iter().map(|span| span.seconds).sum();
        deduct(spans, Activity::Descheduled, waited / of * all, |span| {
            span.activity.runs()
        });
    }
}

/// The collector runs wherever Python allocates: the line it interrupts is not its cause. Collections that the program asks for stay
/// at their line.
fn deduct_collections(data: &RunData, window: &Window, spans: &mut Vec<Span>) {
    let collected_s = Spans::new(data, window.range()).collection.seconds;
    let asked = |span: &&Span| {
        let text = span.line().and_then(|line| source(data, &line.place()));
        text.is_some_and(|text| text.contains("gc.collect"))
    };
    let asked_s: f64 = spans.iter().filter(asked).map(|span| span.seconds).sum();
    deduct(
        spans,
        Activity::CollectingGarbage,
        collected_s - asked_s,
        |span| span.activity.runs() && span.gil,
    );
}

/// Memory that is taken page by page costs CPU time in whatever touches it first.
fn deduct_faults(data: &RunData, window: &Window, spans: &mut Vec<Span>) {
    let Some(pages) = Pages::new(data, window.range()) else {
        return;
    };
    let runs = |span: &Span| span.activity.runs();
    let running: f64 = spans
        .iter()
        .filter(|span| runs(span))
        .map(|span| span.seconds)
        .sum();
    deduct(spans, Activity::FaultingPages, pages.share() * running, runs);
}

/// Less than this share of the account is not told apart.
const LEAST_DEDUCTED: f64 = 0.005;

/// Takes seconds from some spans, from each its part, and gives them a row of their own.
fn deduct(spans: &mut Vec<Span>, activity: Activity, seconds: f64, from: impl Fn(&Span) -> bool) {
    let all: f64 = spans.iter().map(|span| span.seconds).sum();
    let there: f64 = spans
        .iter()
        .filter(|span| from(span))
        .map(|span| span.seconds)
        .sum();
    let seconds = seconds.min(there * 0.9);
    if there <= 0.0 || seconds.is_nan() || seconds < all * LEAST_DEDUCTED {
        return;
    }
    let kept = 1.0 - seconds / there;
    for span in spans.iter_mut().filter(|span| from(span)) {
        span.seconds *= kept;
    }
    spans.push(Span {
        activity,
        phase: None,
        gpu: None,
        gil: false,
        seconds,
        frames: Vec::new(),
    });
}

#[cfg(test)]
mod tests;
