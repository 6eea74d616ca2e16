//! `account`: where the time of the steady steps went.

use super::{Call, Tool, arguments, brief, list, number, plain, text};
use flatout_core::{Failure, Result, message};
use flatout_diagnose::account::{Account, Row};
use serde::Deserialize;
use serde_json::{Value, json};

pub const TOOL: Tool = Tool {
    name: "account",
    title: "Account of a run's time",
    description: "Where the wall time of a run's steady steps went, without remainder: activities (GPU computing, waiting for batches, Python …) and rows per source line. \
The shares of all rows add up to 1.",
    properties: || {
        json!({
            "run": text("`last` (default), a run's id or name, or its folder"),
            "activity": text("Only rows of this activity, as waiting-for-batch"),
            "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "Skip this many rows"},
            "of": {"enum": ["steps", "workers"], "default": "steps", "description": "The training thread, or the DataLoader's workers"},
        })
    },
    required: &[],
    answer_properties: || json!({"run": {"type": "string"}, "rows": list()}),
    answer_required: &["run", "rows"],
    lists: &["/gpu_kinds", "/rows"],
    starts_programs: false,
    writes: false,
    call,
};

#[derive(Clone, Copy, Deserialize, Default, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Of {
    #[default]
    Steps,
    Workers,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    run: Option<String>,
    activity: Option<String>,
    #[serde(default)]
    offset: usize,
    #[serde(default)]
    of: Of,
}

fn call(call: &Call<'_>, value: Value) -> Result<Value> {
    let arguments: Arguments = arguments(value)?;
    let record = call.root.run(arguments.run.as_deref().unwrap_or("last"))?;
    let diagnosis = (call.host.diagnose)(&record.load());
    let id = &record.info.id;
    if arguments.of == Of::Workers {
        let workers = diagnosis.workers.ok_or_else(|| {
            Failure::new(message!(en: "run `{id}` has no samples of DataLoader workers", zh: "运行 `{id}` 没有 DataLoader worker 的采样"))
                .with_hint(message!(en: "with num_workers=0 there are no workers", zh: "num_workers=0 时没有 \
                worker"))
        })?;
        let mut answer = json!({"run": id});
        let rows = serde_json::to_value(&workers.rows).unwrap_or_default();
        let rows: Vec<Value> = rows.as_array().cloned().unwrap_or_default();
        answer["rows"] = rows
            .into_iter()
            .skip(arguments.offset)
            .map(|row| workers_row(call, row))
            .collect();
        return Ok(answer);
    }
    let account = diagnosis.account.ok_or_else(|| {
        Failure::new(
            message!(en: "run `{id}` has no time breakdown: too few steady steps or samples", zh: "运行 \
        `{id}` 没有时间分解：稳定步或采样太少"),
        )
        .with_hint(
            message!(en: "run it long enough for ten seconds of steady steps", zh: "请让它稳定运行至少十秒"),
        )
    })?;
    Ok(answer(call, id, &account, &arguments))
}

fn answer(call: &Call<'_>, id: &str, account: &Account, arguments: &Arguments) -> Value {
    let activities = account.by_activity().into_iter();
    let activities =
        activities.map(|(activity, share)| json!({"activity": activity.id(), "share": number(share)}));
    let wanted = |row: &Row| {
        arguments
            .activity
            .as_deref()
            .is_none_or(|wanted| row.activity.id() == wanted)
    };
    let rows = account.rows.iter().enumerate().filter(|(_, row)| wanted(row));
    let steps = account.steps.max(1) as f64;
    let rows = rows.skip(arguments.offset).map(|(index, row)| {
        let mut shown = json!({
            "id": format!("r{}", index + 1), "activity": row.activity.id(), "share": number(row.share),
            "ms_per_step": number(row.seconds * 1e3 / steps),
        });
        if let Some(place) = &row.place {
            shown["where"] = json!(brief::place(call, place));
        }
        for (key, text) in [
            ("function", &row.function),
            ("via", &row.via),
            ("source", &row.text),
        ] {
            if let Some(text) = text {
                shown[key] = json!(text.trim());
            }
        }
        if let Some(kernel) = &row.kernel {
            shown["kernel"] = json!(kernel);
        }
        shown
    });
    let mut answer = json!({
        "run": id, "wall_s": number(account.wall_s), "steps": account.steps, "samples": account.samples,
        "activities": activities.collect::<Vec<_>>(), "rows": rows.collect::<Vec<_>>(),
    });
    if !account.gpu_kinds.is_empty() {
        let kinds = account.gpu_kinds.iter();
        let kinds = kinds.map(
            |kind| json!({"kind": kind.kind, "share": number(kind.share), "per_step": number(kind.per_step)}),
        );
        answer["gpu_kinds"] = kinds.collect();
    }
    if let Some(efficiency) = &account.efficiency {
        answer["efficiency"] = plain(call, serde_json::to_value(efficiency).unwrap_or_default());
    }
    answer
}

fn workers_row(call: &Call<'_>, row: Value) -> Value {
    let mut row = plain(call, row);
    let place = row.get("place").cloned();
    if let Some(place) = place.and_then(|place| serde_json::from_value(place).ok()) {
        row["where"] = json!(brief::place(call, &place));
        if let Some(fields) = row.as_object_mut() {
            fields.remove("place");
        }
    }
    row
}
