//! `runs`: what was recorded.

use super::{Call, Tool, arguments, list, number, text};
use flatout_core::Result;
use flatout_record as record;
use serde::Deserialize;
use serde_json::{Value, json};

pub const TOOL: Tool = Tool {
    name: "runs",
    title: "List recorded runs",
    description: "The recorded runs, newest first, with the ids that other tools take.",
    properties: || json!({"name": text("Only runs of this name")}),
    required: &[],
    answer_properties: || json!({"runs": list()}),
    answer_required: &["runs"],
    lists: &["/runs"],
    starts_programs: false,
    writes: false,
    call,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    name: Option<String>,
}

fn call(_: &Call<'_>, value: Value) -> Result<Value> {
    let arguments: Arguments = arguments(value)?;
    let entries = record::list(&record::runs_folder());
    let wanted = |entry: &&record::RunEntry| {
        arguments
            .name
            .as_ref()
            .is_none_or(|name| *name == entry.info.name)
    };
    let runs = entries.iter().rev().filter(wanted).map(|entry| {
        let info = &entry.info;
        let mut shown = json!({
            "run": info.id, "name": info.name, "kind": info.kind,
            "started": record::utc(info.started_unix_ms / 1000), "command": flatout_core::shell::line(&info.command),
        });
        if !info.apply.is_empty() {
            shown["settings"] = json!(info.apply);
        }
        if let Some(exit) = &info.exit {
            shown["seconds"] = number(exit.t);
            shown["exit_code"] = json!(exit.code.or_else(|| exit.signal.map(|signal| -signal)));
        }
        shown
    });
    Ok(json!({"runs": runs.collect::<Vec<_>>()}))
}
