//! # host-work-in-loop
//!
//! ## What it detects
//! The program's own Python code between the steps takes a large share of the time: metrics, logging, plotting, printing,
//! copying parameters.
//! ## Why it is slow
//! It runs in the training process; no batch is computed meanwhile.
//! ## Evidence
//! Time in no other phase of the steady window, and the line of the program the main thread stood in most.
//! ## Fix
//! Do it every N steps, on tensors instead of Python numbers, or in another thread.
//! ## When it is wrong
//! Training work that the hooks cannot see (a second model, a custom backward) is charged here too.
//! ## References
//! Share limits as for the loader: TraceML 10%, gpuprof 15%.

use crate::analysis::Analysis;
use crate::analysis::stacks::hot_lines;
use crate::candidate::{Candidate, Reach, Stretch, severity_of};
use flatout_core::{Evidence, Severity, message, units};
use flatout_telemetry::Phase;

pub const ID: &str = "host-work-in-loop";
pub const WORST: Severity = Severity::Critical;

/// gpuprof's limit for a phase that should not be there.
const SHARE: f64 = 0.15;
/// A line is named when the main thread stood in it this often.
const LINE_SHARE: f64 = 0.05;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let share = window.share(Phase::Other);
    if share < SHARE {
        return None;
    }
    // Collections are another rule's.
    let seconds = window.seconds(Phase::Other) - analysis.spans.collection.seconds;
    if seconds / window.wall_s() < SHARE {
        return None;
    }
    let own = |frames: &[String]| !frames.iter().any(|frame| frame.contains("/torch/"));
    let lines = hot_lines(analysis.data, window.range(), own);
    let hot = lines.first().filter(|line| line.share >= LINE_SHARE);
    let (shown, a_step) = (units::percent(share), units::duration(window.ms_per_step(Phase::Other) / 1e3));
    let mut candidate = Candidate::new(
        ID,
        severity_of(share),
        message!(
            en: "The program's own code between the steps takes {shown} of the time, {a_step} a step",
            zh: "两步之间程序自己的代码占 {shown} 的时间，每步 {a_step}"
        ),
    )
    .evidence(analysis.phase_evidence(Phase::Other, SHARE))
    .claims(Stretch::Other, Reach::Likely, 0.0, seconds);
    if let Some(line) = hot {
        let function = &line.function;
        candidate = candidate
            .evidence(Evidence::new(
                message!(en: "stacks of the main thread in {function}", zh: "主线程停留在 {function} 的比例"),
                line.share * 100.0,
                "%",
            ))
            .place(Some(&line.place));
    }
    Some(candidate.code(
        hot.map(|line| &line.place),
        message!(
            en: "Do it every N steps, on whole tensors, or in another thread",
            zh: "改为每 N 步做一次、对整个 tensor 操作，或放到另一个线程"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};

    fn chatty(share: f64) -> Build {
        Build::steady(20)
            .phase(Phase::Other, share)
            .phase(Phase::Compute, 1.0 - share)
            .stack(&["<module> (train.py:80)", "log_metrics (train.py:22)"], 40)
    }

    #[test]
    fn fires() {
        let finding = run(check, chatty(0.4)).unwrap();
        assert_eq!(finding.places[0].line, 22);
        assert_eq!(causes(chatty(0.4)), [ID]);
    }

    #[test]
    fn quiet() {
        assert!(run(check, chatty(0.04)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
