//! The user's line behind a stretch of time: where the training thread, or a worker of its loader, stood while it passed.
//!
//! Rules know which stretch they answer for, the stacks know the lines; they meet here, so that no rule has to look at stacks.

use crate::account::Span;
use crate::account::activity::Activity;
use crate::account::center::{Center, centers};
use crate::analysis::Analysis;
use crate::analysis::stacks::{HotLine, hottest_within};
use crate::candidate::{Candidate, Stretch};
use flatout_core::{Evidence, Fix, Message, Place, message};
use flatout_record::{Phase, StackCount};

/// A line that holds less of its stretch is not worth a look.
const SHARE: f64 = 0.2;
/// Fewer stacks than this say little: one second at 20 a second.
const FEWEST: u64 = 20;

/// Adds the line to a finding whose stretch of time the stacks can explain.
pub fn to_the_line(analysis: &Analysis, candidate: Candidate) -> Candidate {
    let Some(claim) = &candidate.claim else {
        return candidate;
    };
    let stretch = claim.stretches.first().copied();
    if let Some(phase) = phase_of(stretch) {
        return to_the_calls(analysis, candidate, phase);
    }
    let found = match stretch {
        Some(Stretch::Data) => batch_line(analysis),
        Some(Stretch::Dispatch) => within(analysis, launching, |stack| stack.phase == Some(Phase::Compute)),
        _ => None,
    };
    let profiled = profiled(analysis, stretch.as_ref());
    let candidate = profiled.into_iter().fold(candidate, Candidate::evidence);
    let Some((line, name)) = found else {
        return candidate;
    };
    let mut candidate = candidate;
    for fix in &mut candidate.finding.fixes {
        // What to do has a line now.
        if let Fix::Code {
            place: place @ None, ..
        } = fix
        {
            *place = Some(line.place.clone());
        }
    }
    let mut candidate = candidate
        .evidence(analysis.in_window(Evidence::new(name, line.share * 100.0, "%")))
        .place(Some(&line.place));
    // The calls that lead to the line, for batches: the data set's own method is often a frame above it.
    for place in leading_to(analysis, &line) {
        candidate = candidate.place(Some(&place));
    }
    candidate
}

/// Phases that the user's own calls begin: an evaluation, a checkpoint, a copy to the device.
fn phase_of(stretch: Option<Stretch>) -> Option<Phase> {
    match stretch? {
        Stretch::Eval => Some(Phase::Eval),
        Stretch::Checkpoint => Some(Phase::Checkpoint),
        Stretch::Transfer => Some(Phase::Transfer),
        _ => None,
    }
}

/// Names the lines behind a phase. An evaluation or a checkpoint is made rarer where the loop calls it; a copy is changed where it is.
fn to_the_calls(analysis: &Analysis, mut candidate: Candidate, phase: Phase) -> Candidate {
    let profiled = profiled(
        analysis,
        candidate.claim.as_ref().and_then(|claim| claim.stretches.first()),
    );
    candidate = profiled.into_iter().fold(candidate, Candidate::evidence);
    let Some(center) = costliest(analysis, phase) else {
        return candidate;
    };
    let mut places = center.places();
    if phase != Phase::Transfer {
        places.reverse();
        // What the rule itself knows comes first: where a framework is told how often, or where `eval()` is called.
        for place in &places {
            candidate = candidate.place(Some(place));
        }
        return candidate;
    }
    for fix in &mut candidate.finding.fixes {
        if let Fix::Code { place, .. } = fix {
            *place = Some(center.hot.place());
        }
    }
    let others = std::mem::take(&mut candidate.finding.places);
    for place in places.iter().chain(&others) {
        candidate = candidate.place(Some(place));
    }
    candidate
}

/// The line with most of a phase's time, where it has most of it.
fn costliest(analysis: &Analysis, phase: Phase) -> Option<Center> {
    let account = analysis.account.as_ref()?;
    let copies = |span: &Span| phase == Phase::Transfer && span.activity == Activity::GpuCopying;
    let found = centers(account, analysis.data, |span| {
        span.phase == Some(phase) || copies(span)
    });
    let all: f64 = found.iter().map(|center| center.seconds).sum();
    let first = found.into_iter().next()?;
    (first.seconds >= all * SHARE).then_some(first)
}

fn leading_to(analysis: &Analysis, line: &HotLine) -> Vec<Place> {
    let lines = &analysis.lines;
    let found = lines
        .data
        .iter()
        .chain(&lines.worker)
        .find(|center| center.hot.place() == line.place);
    found.map(|center| center.places()).unwrap_or_default()
}

/// What the profiler measured of a stretch.
fn profiled(analysis: &Analysis, stretch: Option<&Stretch>) -> Option<Evidence> {
    let profile = analysis.data.profile.as_ref()?;
    let device = profile.device.as_ref()?;
    let (name, ms) = match stretch? {
        Stretch::Dispatch => (
            message!(en: "profile: GPU idle, next kernel not launched yet", zh: "profile：GPU 空闲，下一个 kernel 尚未下发"),
            device.idle.host_ms,
        ),
        Stretch::Data => (
            message!(en: "profile: GPU idle, waiting for a batch", zh: "profile：GPU 空闲，等待 batch"),
            device.idle.data_ms,
        ),
        Stretch::Sync => (
            message!(en: "profile: GPU idle after the CPU waited for it", zh: "profile：CPU 等待 GPU \
            之后，GPU 空闲"),
            device.idle.sync_ms,
        ),
        Stretch::Transfer => {
            let pageable = device.copies.iter().filter(|copy| copy.memory == "pageable");
            let name =
                message!(en: "profile: copies from pageable memory", zh: "profile：来自可分页内存的拷贝");
            (name, pageable.map(|copy| copy.ms).sum())
        }
        _ => return None,
    };
    Some(Evidence::new(name, profile.share(ms) * 100.0, "%"))
}

/// What a batch costs: in the workers where there are some, else in the training thread itself.
fn batch_line(analysis: &Analysis) -> Option<(HotLine, Message)> {
    // A worker without a line of the program in its stack waits for work.
    within(analysis, worker, |stack| stack.worker)
        .or_else(|| within(analysis, loading, |stack| stack.phase == Some(Phase::Data)))
}

fn within(
    analysis: &Analysis,
    name: fn(&HotLine) -> Message,
    keep: impl Fn(&StackCount) -> bool,
) -> Option<(HotLine, Message)> {
    let range = analysis.window.as_ref()?.range();
    let (line, stacks) = hottest_within(analysis.data, range, keep)?;
    let name = name(&line);
    (stacks >= FEWEST && line.share >= SHARE).then_some((line, name))
}

fn worker(line: &HotLine) -> Message {
    let function = &line.function;
    message!(en: "DataLoader worker samples in {function}", zh: "DataLoader worker 的堆栈采样中位于 \
    {function} 的比例")
}

fn loading(line: &HotLine) -> Message {
    let function = &line.function;
    message!(en: "samples in {function} while waiting for a batch", zh: "等待 batch 时，堆栈采样位于 \
    {function} 的比例")
}

fn launching(line: &HotLine) -> Message {
    let function = &line.function;
    message!(en: "samples in {function} while the step computes", zh: "计算时，堆栈采样位于 {function} 的比例")
}

#[cfg(test)]
mod tests {
    use crate::testing::Build;
    use flatout_record::Phase;
    use serde_json::json;

    const LOOP: &str = "<module> (train.py:80)";
    const ITEM: &str = "__getitem__ (data.py:12)";

    fn starved(workers: u64) -> Build {
        Build::steady(20)
            .phase(Phase::Data, 0.6)
            .phase(Phase::Compute, 0.4)
            .cpus(4)
            .loader(0, json!({"num_workers": workers, "batch_size": 32}))
    }

    fn places(build: Build) -> Vec<(String, u32)> {
        let findings = crate::diagnose(&build.done()).findings;
        let places = findings[0].places.iter();
        places
            .map(|place| (place.file.display().to_string(), place.line))
            .collect()
    }

    #[test]
    fn waiting_for_batches_is_charged_to_the_line_that_makes_them() {
        let build = starved(0)
            .stack_of(
                &[LOOP, ITEM, "open (/lib/python3.11/PIL.py:3)"],
                60,
                Some(Phase::Data),
                false,
            )
            .stack_of(&[LOOP, "forward (model.py:4)"], 40, Some(Phase::Compute), false);
        assert!(places(build).contains(&("data.py".into(), 12)));
    }

    #[test]
    fn a_workers_line_is_named_where_there_are_workers() {
        let build = starved(2)
            .stack_of(&[LOOP], 60, Some(Phase::Data), false)
            .stack_of(
                &["_worker_loop (/site-packages/torch/w.py:1)", ITEM],
                30,
                None,
                true,
            );
        assert!(places(build).contains(&("data.py".into(), 12)));
    }

    #[test]
    fn few_stacks_name_nothing() {
        let build = starved(0).stack_of(&[LOOP, ITEM], 5, Some(Phase::Data), false);
        assert!(!places(build).contains(&("data.py".into(), 12)));
    }
}
