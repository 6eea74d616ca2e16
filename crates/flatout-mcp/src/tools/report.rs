//! `report`: a run in figures, and as a page where the call asks for one.

use super::{Call, Tool, arguments, list, number, text};
use flatout_core::files::write_atomically;
use flatout_core::{Kind, Result};
use flatout_report::digest::Digest;
use flatout_report::digest::checklist::State;
use flatout_report::page;
use serde::Deserialize;
use serde_json::{Value, json};

pub const TOOL: Tool = Tool {
    name: "report",
    title: "Report on a run",
    description: "How a run went: throughput, step time, utilization with intervals, the checklist of fast training, what is wrong with the record. \
With `html`: also writes a page for people to that file.",
    properties: || {
        json!({
            "run": text("`last` (default), a run's id or name, or its folder"),
            "html": text("Write the page to this file, inside the server's folder"),
        })
    },
    required: &[],
    answer_properties: || json!({"run": {"type": "string"}, "figures": list(), "checklist": {"type": "object"}}),
    answer_required: &["run", "figures"],
    lists: &[
        "/defects",
        "/checklist/unknown",
        "/checklist/done",
        "/checklist/to_do",
        "/figures",
    ],
    starts_programs: false,
    writes: true,
    call,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    run: Option<String>,
    html: Option<String>,
}

fn call(call: &Call<'_>, value: Value) -> Result<Value> {
    let asked: Arguments = arguments(value)?;
    let page = match &asked.html {
        Some(path) => {
            call.may_write()?;
            Some(call.root.writable(path)?)
        }
        None => None,
    };
    let digest = Digest::read(&call.root.run(asked.run.as_deref().unwrap_or("last"))?);
    let info = &digest.info;
    let figures = digest.figures.iter().map(|figure| {
        let interval = figure.interval.map(|(low, high)| [number(low), number(high)]);
        json!({"figure": figure.key, "unit": figure.unit, "mean": number(figure.mean), "interval": interval})
    });
    let items = |state: State| {
        let items = digest.checklist.iter().filter(move |item| item.state == state);
        items.map(|item| call.say(&item.name)).collect::<Vec<_>>()
    };
    let causes = digest
        .diagnosis
        .findings
        .iter()
        .filter(|finding| finding.kind == Kind::Cause);
    let gpus: Vec<&str> = info.gpus.values().filter_map(|gpu| gpu.name.as_deref()).collect();
    let mut answer = json!({
        "run": info.id, "name": info.name, "command": flatout_core::shell::line(&info.command), "settings": info.apply,
        "length_s": digest.length_s.map(number), "gpus": gpus, "versions": info.versions,
        "figures": figures.collect::<Vec<_>>(),
        "causes": causes.count(),
        "checklist": {"to_do": items(State::ToDo), "done": items(State::Done), "unknown": items(State::Unknown)},
        "defects": digest.defects.iter().map(|defect| call.say(&defect.say)).collect::<Vec<_>>(),
    });
    if let Some(path) = page {
        let options = page::Options {
            language: call.host.language,
            pdf_ready: false,
        };
        write_atomically(&path, page::html(&digest, options).as_bytes())?;
        answer["html"] = json!(path);
    }
    Ok(answer)
}
