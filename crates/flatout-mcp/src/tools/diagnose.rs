//! `diagnose`: why the GPU idled in a run.

use super::{Call, Tool, arguments, brief, list, number, plain, text};
use flatout_core::{Failure, Result, message};
use flatout_diagnose::Diagnosis;
use serde::Deserialize;
use serde_json::{Value, json};

pub const TOOL: Tool = Tool {
    name: "diagnose",
    title: "Diagnose a run",
    description: "Why the GPU (or CPU) idled in a recorded run: findings, causes by expected gain first, each with an id, location and settings to try. \
With `finding`: the evidence and every fix of one. Works while the run goes on.",
    properties: || {
        json!({
            "run": text("`last` (default), a run's id or name, or its folder"),
            "finding": text("Id of a finding, as f1: everything about it"),
        })
    },
    required: &[],
    answer_properties: || json!({"run": {"type": "string"}, "findings": list(), "finding": {"type": "object"}}),
    answer_required: &["run"],
    lists: &[
        "/finding/places",
        "/finding/evidence",
        "/activities",
        "/monitor/gpus",
        "/findings",
    ],
    starts_programs: false,
    writes: false,
    call,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    run: Option<String>,
    finding: Option<String>,
}

fn call(call: &Call<'_>, value: Value) -> Result<Value> {
    let arguments: Arguments = arguments(value)?;
    let record = call.root.run(arguments.run.as_deref().unwrap_or("last"))?;
    let data = record.load();
    let diagnosis = (call.host.diagnose)(&data);
    if let Some(id) = &arguments.finding {
        let index = id
            .strip_prefix('f')
            .and_then(|number| number.parse::<usize>().ok());
        let found = index.and_then(|index| diagnosis.findings.get(index.checked_sub(1)?));
        let found = found.ok_or_else(|| {
            let count = diagnosis.findings.len();
            Failure::new(message!(en: "this run has no finding `{id}`", zh: "这次运行中没有 `{id}`"))
                .with_hint(
                    message!(en: "its findings are f1 to f{count}", zh: "它的诊断结果为 f1 到 f{count}"),
                )
        })?;
        return Ok(json!({"run": record.info.id, "finding": brief::whole(call, id, found)}));
    }
    let mut answer = json!({"run": record.info.id, "name": record.info.name});
    answer["state"] = json!(if record.info.exit.is_some() {
        "ended"
    } else {
        "unfinished"
    });
    add(call, &diagnosis, &mut answer);
    Ok(answer)
}

/// The summary of a diagnosis, in an answer that names the run.
pub fn add(call: &Call<'_>, diagnosis: &Diagnosis, answer: &mut Value) {
    if let Some(window) = &diagnosis.window {
        answer["steady"] = json!({
            "from_s": number(window.start_s), "to_s": number(window.end_s), "steps": window.steps,
            "samples_per_s": window.samples_per_s.map(number), "step_p50_ms": window.step_p50_ms.map(number),
        });
    }
    // Of a record made by `flatout monitor` this is all there is.
    if let Some(monitor) = &diagnosis.monitor {
        let mut monitor = plain(call, serde_json::to_value(monitor).unwrap_or_default());
        if let Some(gpus) = monitor["gpus"].as_object().cloned() {
            let listed = gpus.into_iter().map(|(index, mut gpu)| {
                gpu["gpu"] = json!(index);
                gpu
            });
            monitor["gpus"] = listed.collect();
        }
        answer["monitor"] = monitor;
    }
    if let Some(account) = &diagnosis.account {
        let shares = account
            .by_activity()
            .into_iter()
            .filter(|(_, share)| *share >= 0.01);
        let shares =
            shares.map(|(activity, share)| json!({"activity": activity.id(), "share": number(share)}));
        answer["activities"] = shares.collect();
    }
    let findings = diagnosis.findings.iter().enumerate();
    answer["findings"] = findings
        .map(|(index, finding)| brief::finding(call, &format!("f{}", index + 1), finding))
        .collect();
}
