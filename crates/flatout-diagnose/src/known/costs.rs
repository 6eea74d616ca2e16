//! Every costly line of the account, once, with the seconds that it explains and those that go when it is gone.

use super::recognize::{in_batch, in_step, is_the_models, waits_for_the_device};
use super::{CERTAIN, Cost, Known, Part};
use crate::account::Span;
use crate::account::activity::Activity;
use crate::account::center::{Center, in_backward, in_optimizer, is_over_modules};
use crate::analysis::{Analysis, Device};
use crate::candidate::WARNING_SHARE;
use crate::lines::in_module;
use flatout_record::Phase;

/// What the threads of an operator lose beside a worker that takes one of their CPUs.
const STALLED: f64 = 0.45;

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
        most_s: with_side_effects(
            analysis,
            everywhere(analysis, center).max(seconds) + backward_of(analysis, center),
        ),
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
        looped.most_s = looped.most_s.max(with_side_effects(analysis, looped.goes_s));
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
        let is_model = is_the_models(center) && is_trained(analysis, center);
        !is_model && !known.iter().any(same)
    });
    let syncs = syncs_per_step(analysis) >= SYNCS;
    let operators: Vec<Cost> = operators
        .map(|center| {
            let known = if syncs && waits_for_the_device(center) {
                Known::HiddenSync
            } else {
                Known::CostlyOperator
            };
            let mut cost = cost(center, known, center.seconds);
            if is_the_models(center) {
                // It has a purpose: a cheaper way takes some of the time.
                cost.goes_s *= CHEAPER;
            }
            cost
        })
        .collect();
    found.extend(operators);
    found
}

/// What goes of a convolution or a matmul that is needed, but can be had cheaper.
const CHEAPER: f64 = 0.7;

/// Backward of an operator of the model takes about twice its time; where all of backward takes less than this part of it, the line
/// computes something that is not trained: an augmentation, a filter, a target.
const BACKWARD: f64 = 0.15;

/// Whether backward takes long enough to include this line. On a GPU the stacks do not show what backward takes.
fn is_trained(analysis: &Analysis, center: &Center) -> bool {
    let Some(account) = analysis
        .account
        .as_ref()
        .filter(|_| analysis.device() == Device::Cpu)
    else {
        return true;
    };
    let backward = account.spans.iter().filter(|span| in_backward(span));
    let backward_s: f64 = backward.map(|span| span.seconds).sum();
    // A loop without backward may be all model: unknown.
    backward_s <= 0.0 || backward_s >= center.seconds * BACKWARD
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

/// What is gone leaves caches, memory and the allocator to the rest, which then runs faster, too: up to a tenth more in the programs
/// whose fix was measured.
fn with_side_effects(analysis: &Analysis, seconds: f64) -> f64 {
    let wall_s = analysis.window.as_ref().map_or(0.0, |window| window.wall_s());
    (seconds * 1.1).min(wall_s * 0.95)
}

/// The part of backward that belongs to a loop in forward: what the loop launches one by one, backward does again.
fn backward_of(analysis: &Analysis, center: &Center) -> f64 {
    let Some(account) = &analysis.account else {
        return 0.0;
    };
    // Anomaly detection makes backward several times as long: that part is its own.
    if !center.in_forward || analysis.facts.switch("debug.anomaly") == Some(true) {
        return 0.0;
    }
    let sum = |keep: &dyn Fn(&Span) -> bool| {
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
    let here = |span: &&Span| {
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
