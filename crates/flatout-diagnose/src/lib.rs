//! From what was measured to what it means. Pure: no I/O, no clock, no GPU.
//!
//! - [`verdict`]: how the GPUs did, in numbers, each with a threshold.
//! - [`analysis`]: a record digested once, for all rules.
//! - [`account`]: the wall time of the steady steps, split over lines and activities without remainder.
//! - [`framework`]: findings in the words of the framework that owns the loop.
//! - [`known`]: costs that a line is recognized by.
//! - [`lines`]: the costly lines of the account, by where they are.
//! - [`ranks`]: the ranks of one run side by side; which one holds the others up, and by what.
//! - [`rules`]: one file per rule, `rules/<domain>/<pattern>.rs`; each looks at the analysis and may return a candidate.
//! - [`candidate`], [`rank`]: a finding with the stretch of time it claims; the arbiter that leaves one cause a stretch.
//! - [`promise`]: what removing a line gains.
//! - [`pointing`]: the user's line behind a stretch of time, out of the stacks.
//! - [`seen`]: what is known about a program without a probe in it.
//! - [`stall`]: which rank the others wait for in a program that makes no progress.
//! - [`advice`]: values to suggest, computed from what the machine has.

pub mod account;
pub mod advice;
pub mod analysis;
pub mod candidate;
pub mod framework;
pub mod known;
pub mod lines;
pub mod pointing;
pub mod promise;
pub mod rank;
pub mod ranks;
pub mod rules;
pub mod seen;
pub mod stall;
#[cfg(test)]
mod testing;
pub mod verdict;

pub use analysis::Analysis;
pub use rules::{RULES, Rule, rule_infos};

use analysis::time::TimeTable;
use flatout_core::{Finding, Kind, Message};
use flatout_record::{Profile, RunData};
use serde::Serialize;

/// The version of the JSON form of [`Diagnosis`].
pub const SCHEMA: u32 = 1;

/// The diagnosis of a run's record.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Diagnosis {
    pub schema: u32,
    /// Causes by gain, then symptoms, then verdicts. Never empty.
    pub findings: Vec<Finding>,
    /// Where every second went.
    pub time: TimeTable,
    /// Where the steady steps went, line by line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<account::Account>,
    /// Where the time of the loader's workers went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<account::workers::WorkerAccount>,
    /// The ranks side by side. Findings and account are of its `shown` rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<ranks::Ranks>,
    /// The part of the run that findings rest on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowSummary>,
    /// How the GPUs did, where that is all that the record shows: one made by `flatout monitor`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monitor: Option<verdict::Verdict>,
    /// What a few steps under PyTorch's profiler showed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
}

#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct WindowSummary {
    pub start_s: f64,
    pub end_s: f64,
    pub how: Message,
    pub steps: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples_per_s: Option<f64>,
    /// Wall time by steps: what tables call the time per step.
    pub step_mean_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_p50_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_p95_ms: Option<f64>,
}

/// Every rule's word on a record, ranked.
pub fn diagnose(data: &RunData) -> Diagnosis {
    conclude(&Analysis::new(data))
}

/// The same, of what was made of the record already. Of several ranks, the findings are those of the one that the others wait for.
pub fn conclude(analysis: &Analysis) -> Diagnosis {
    match ranks::Ranks::of(analysis) {
        Some(ranks) => ranks::conclude(analysis, ranks),
        None => conclude_one(analysis),
    }
}

fn conclude_one(analysis: &Analysis) -> Diagnosis {
    let data = analysis.data;
    let found = RULES.iter().filter_map(|rule| (rule.check)(analysis));
    // The costliest of these lines is the rule's own; the others are findings as well.
    let further = known::host_work(analysis, rules::host::host_work_in_loop::ID);
    let candidates = found
        .chain(further.into_iter().skip(1))
        .map(|candidate| pointing::to_the_line(analysis, candidate))
        .collect();
    let mut findings = rank::rank(analysis, candidates);
    rules::launch::gpu_idle::give_way(&mut findings);
    rules::parallel::slow_rank::adopt(analysis, &mut findings);
    for finding in findings.iter_mut().filter(|finding| finding.kind == Kind::Cause) {
        let fixes = finding.fixes.iter().filter(|fix| advice::may_try(analysis, fix));
        let fixes: Vec<_> = fixes.cloned().collect();
        let trial = advice::trial(&fixes, &data.info.command, &data.info.apply);
        finding.fixes.extend(trial);
    }
    framework::translate(analysis, &mut findings);
    findings.extend(rules::health::verdicts(analysis, &findings));
    Diagnosis {
        schema: SCHEMA,
        findings,
        window: analysis.window.as_ref().map(|window| WindowSummary {
            start_s: window.start_s,
            end_s: window.end_s,
            how: window.how.clone(),
            steps: window.steps,
            samples_per_s: window.samples_per_s(),
            step_mean_ms: window.step_ms(),
            step_p50_ms: window.step_hist.quantile_ms(0.5),
            step_p95_ms: window.step_hist.quantile_ms(0.95),
        }),
        time: analysis.time.clone(),
        account: analysis.account.clone().map(|account| account::Account {
            efficiency: analysis::efficiency::Efficiency::of(analysis),
            rank: analysis.ranks.as_ref().map(|ranks| ranks.shown),
            ..account
        }),
        workers: analysis
            .window
            .as_ref()
            .and_then(|window| account::workers::WorkerAccount::new(data, window.range())),
        ranks: analysis.ranks.clone(),
        monitor: analysis
            .is_from_outside()
            .then(|| verdict::Verdict::of(&data.info, &data.samples)),
        profile: data.profile.clone(),
    }
}
