//! A digest for programs: the figures, findings and tables of a report, without the curves.

use crate::digest::Digest;
use crate::digest::checklist::Item;
use crate::digest::figures::Figure;
use crate::digest::processes::ProcessRow;
use crate::ranks::Ranks;
use flatout_core::Message;
use flatout_diagnose::Diagnosis;
use flatout_diagnose::verdict::Verdict;
use flatout_record::{Fact, RunInfo};
use serde::Serialize;

/// The version of the JSON form.
pub const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    run: &'a RunInfo,
    #[serde(skip_serializing_if = "Option::is_none")]
    length_s: Option<f64>,
    /// What is wrong with the record itself.
    defects: Vec<&'a Message>,
    figures: &'a [Figure],
    /// Wall times from step to step; absent without steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    step_ms: Option<StepTimes>,
    events: Events,
    diagnosis: &'a Diagnosis,
    gpu: &'a Verdict,
    #[serde(skip_serializing_if = "no_ranks")]
    ranks: &'a Ranks,
    checklist: &'a [Item],
    processes: &'a [ProcessRow],
    facts: &'a [Fact],
}

#[derive(Serialize)]
struct StepTimes {
    count: u64,
    p50: f64,
    p95: f64,
    p99: f64,
}

#[derive(Serialize)]
struct Events {
    epochs: usize,
    evaluations: usize,
    checkpoints: usize,
}

fn no_ranks(ranks: &&Ranks) -> bool {
    ranks.rows.is_empty()
}

pub fn report(digest: &Digest) -> serde_json::Result<String> {
    let quantile = |share| digest.step_hist.quantile_ms(share);
    let (epochs, evaluations, checkpoints) = digest.marks.counts;
    let step_ms = quantile(0.5).zip(quantile(0.95)).zip(quantile(0.99));
    serde_json::to_string_pretty(&Report {
        schema: SCHEMA,
        run: &digest.info,
        length_s: digest.length_s,
        defects: digest.defects.iter().map(|defect| &defect.say).collect(),
        figures: &digest.figures,
        step_ms: step_ms.map(|((p50, p95), p99)| StepTimes {
            count: digest.step_hist.count(),
            p50,
            p95,
            p99,
        }),
        events: Events {
            epochs,
            evaluations,
            checkpoints,
        },
        diagnosis: &digest.diagnosis,
        gpu: &digest.verdict,
        ranks: &digest.ranks,
        checklist: &digest.checklist,
        processes: &digest.processes,
        facts: &digest.facts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use flatout_record::RunData;

    fn json(data: RunData) -> serde_json::Value {
        serde_json::from_str(&report(&Digest::of(data)).unwrap()).unwrap()
    }

    #[test]
    fn what_is_known_is_there_and_the_rest_is_absent() {
        let known = json(testing::training(40, 0.6));
        assert_eq!(known["schema"], 1);
        assert!(known["figures"][0]["mean"].as_f64().unwrap() > 0.0, "{known}");
        assert!(known["step_ms"]["p95"].as_f64() >= known["step_ms"]["p50"].as_f64());
        assert!(known["ranks"].is_null());
        let empty = json(RunData::default());
        assert!(
            empty["step_ms"].is_null()
                && empty["length_s"].is_null()
                && empty["figures"] == serde_json::json!([])
        );
        assert!(
            empty["defects"][0]["en"].as_str().unwrap().contains("empty"),
            "{empty}"
        );
    }
}
