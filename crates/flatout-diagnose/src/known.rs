//! Costs that a line is recognized by: from what it calls, what it is blocked in and what its source says. A rule of
//! `rules/lines` is one of them; what none recognizes stays a line with its share.
//!
//! - [`mod@costs`]: every costly line of the account, with the seconds that go when it is gone
//! - [`recognize`]: what a line does
//! - [`wording`]: its title, its detail and its fix

mod costs;
mod recognize;
mod wording;

use crate::account::center::Center;
use crate::advice;
use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use crate::rules::host::steps_slow_down;
pub use costs::costs;
use flatout_core::{Confidence, Evidence, message};
use wording::{detail, fix, title};

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
/// The part of a line's time that surely goes when it is done once, or every N steps.
const CERTAIN: f64 = 0.8;
/// The share of the time from which on a line is what the GPU waits for.
const WAITED_FOR: f64 = 0.3;
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
    // A loop's backward goes with it.
    let surely = match cost.known {
        Known::PythonLoopInStep => cost.goes_s,
        _ => cost.goes_s.min(cost.seconds),
    };
    let certain = surely * CERTAIN;
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
                    message!(en: "time in this line and its calls", zh: "该行及其调用所用的时间"),
                    share * 100.0,
                    "%",
                )
                .against(limit * 100.0),
            ),
        )
        .evidence_if(per_round(analysis, cost))
        .claims(stretch, reach(analysis, cost), certain, cost.goes_s)
        .explains(cost.seconds.max(cost.goes_s))
        .up_to(cost.most_s)
        .by_now(
            steps_slow_down::share_now(analysis, cost.center, surely / wall_s),
            wall_s,
        )
        .of_line();
    // A batch that the training process makes is made while the steps wait for it.
    if cost.part == Part::Step || cost.in_worker {
        candidate = candidate.or_in(other);
    }
    for place in cost.center.places() {
        candidate = candidate.place(Some(&place));
    }
    Some(candidate.code(Some(&line), fix(cost)))
}

/// What the line costs per step, or per iteration of a loop without steps.
fn per_round(analysis: &Analysis, cost: &Cost) -> Option<Evidence> {
    let window = analysis.window.as_ref()?;
    let (name, ms) = match (window.steps, &analysis.account.as_ref()?.iterations) {
        (0, None) => return None,
        (0, Some(iterations)) => (
            message!(en: "time in this line per iteration, about", zh: "该行在每次迭代中的时间，约"),
            cost.seconds / window.wall_s() * iterations.ms,
        ),
        (steps, _) => (
            message!(en: "time in this line per step", zh: "该行在每步中的时间"),
            cost.seconds * 1e3 / steps as f64,
        ),
    };
    Some(analysis.in_window(Evidence::new(name, ms, "ms")))
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
        // A GPU that is idle while the host is in one function waits for that function.
        (Part::Step, Known::HostWork)
            if cost.seconds >= analysis.wall_s() * WAITED_FOR && analysis.device() == Device::Cuda =>
        {
            Reach::Specific
        }
        // Without room for workers only the line itself can become cheaper.
        (Part::Batch, Known::HostWork) if !cost.in_worker && !hidden_by_workers() => Reach::Measured,
        (_, Known::HostWork | Known::CostlyOperator) => Reach::Likely,
        (_, Known::HiddenSync) => Reach::Specific,
        (Part::Batch, Known::PythonLoopPerSample | Known::ImageDecodedLarge) if hidden_by_workers() => {
            Reach::Likely
        }
        (Part::Batch | Part::Step, _) => Reach::Measured,
    }
}
