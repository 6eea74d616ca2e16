//! `compare`: whether a change helped.

use super::{Call, Tool, arguments, list, number, text, texts};
use flatout_compare::Limit;
use flatout_core::{Failure, Result, message};
use flatout_record as record;
use flatout_report::compare::Comparison;
use flatout_report::digest::Digest;
use serde::Deserialize;
use serde_json::{Value, json};

pub const TOOL: Tool = Tool {
    name: "compare",
    title: "Compare runs",
    description: "What changed from the first run to the others: throughput, step time, GPU utilization with 95% intervals, findings that went or came, settings that differ. \
Each change is `better`, `worse`, `noise` or `changed`.",
    properties: || {
        json!({
            "runs": texts("Two or more runs, the baseline first: ids, names, folders, `last`"),
            "baseline": text("Compare with this saved baseline; `runs` is then `last` by default"),
            "fail_if": text("A limit to check, as slower=3%: `failed` names the runs that break it"),
        })
    },
    required: &[],
    answer_properties: || json!({"runs": list(), "figures": list(), "findings": list(), "settings": list()}),
    answer_required: &["runs", "figures"],
    lists: &["/notes", "/settings", "/findings", "/figures"],
    starts_programs: false,
    writes: false,
    call,
};

/// Runs side by side in one answer.
const MOST_RUNS: usize = 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    runs: Vec<String>,
    baseline: Option<String>,
    fail_if: Option<String>,
}

fn call(call: &Call<'_>, value: Value) -> Result<Value> {
    let asked: Arguments = arguments(value)?;
    let limit = asked.fail_if.as_deref().map(Limit::slower).transpose()?;
    let mut digests = Vec::new();
    let mut runs = asked.runs;
    if let Some(name) = &asked.baseline {
        digests.push(Digest::read(&record::find_baseline(
            &record::baselines_folder(),
            name,
        )?));
        if runs.is_empty() {
            runs.push("last".into());
        }
    }
    if !(2..=MOST_RUNS).contains(&(digests.len() + runs.len())) {
        return Err(Failure::new(
            message!(en: "`runs` must name 2 to {MOST_RUNS} runs", zh: "`runs` 必须给出 2 到 {MOST_RUNS} 个运行"),
        ));
    }
    for run in &runs {
        digests.push(Digest::read(&call.root.run(run)?));
    }
    let comparison = Comparison::of(&digests);
    let runs = comparison.runs.iter();
    let runs = runs.map(|run| json!({"letter": run.letter, "run": run.id, "name": run.name}));
    let figures = comparison.figures.iter().map(|row| {
        let values = row
            .values
            .iter()
            .map(|value| value.as_ref().map(|figure| number(figure.mean)));
        let changes =
            row.changes.iter().skip(1).map(|change| {
                change.as_ref().map(|change| {
                let interval = change.factor_interval.map(|(low, high)| [number(low), number(high)]);
                json!({"outcome": change.outcome, "factor": change.factor.map(number), "interval": interval})
            })
            });
        json!({
            "figure": row.key, "unit": row.unit, "values": values.collect::<Vec<_>>(),
            "changes": changes.collect::<Vec<_>>(),
        })
    });
    let findings = comparison.findings.iter();
    let findings =
        findings.map(|row| json!({"rule": row.rule, "fate": row.fate, "title": call.say(&row.title)}));
    let settings = comparison.settings.iter();
    let settings = settings.map(|row| json!({"setting": row.setting, "values": row.values}));
    let mut answer = json!({
        "runs": runs.collect::<Vec<_>>(), "figures": figures.collect::<Vec<_>>(),
        "findings": findings.collect::<Vec<_>>(), "settings": settings.collect::<Vec<_>>(),
        "notes": comparison.notes.iter().map(|note| call.say(note)).collect::<Vec<_>>(),
    });
    if let Some(limit) = limit {
        let broken = comparison.broken(limit)?;
        answer["failed"] = broken.into_iter().map(|(letter, _)| json!(letter)).collect();
    }
    Ok(answer)
}
