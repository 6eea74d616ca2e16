//! `tune`: better settings, measured.

use super::{Call, Tool, WAIT_S, arguments, flag, number, plain, run, text, texts, wait, wait_schema};
use crate::jobs::{Job, Kind};
use flatout_core::{Failure, Result, message};
use serde::Deserialize;
use serde_json::{Value, json};

pub const TOOL: Tool = Tool {
    name: "tune",
    title: "Tune settings by trials",
    description: "Runs a program several times with other settings and keeps what is measurably faster. Nothing of the user's is changed unless `write` is true. \
Takes minutes: give `budget_s` and `max_trials`.",
    properties: || {
        json!({
            "command": texts("The program and its arguments, as a list of words"),
            "folder": text("Where it runs, inside the server's folder"),
            "knobs": texts("Only these settings, as num_workers or batch_size=32..512"),
            "budget_s": {"type": "number", "minimum": 1, "maximum": 86400, "default": 600, "description": "No further trial begins after this time"},
            "max_trials": {"type": "integer", "minimum": 1, "maximum": 200, "default": 12},
            "trial_seconds": {"type": "number", "exclusiveMinimum": 0, "default": 4},
            "resume": flag("Go on with the last search of this command"),
            "write": flag("Write the result into the source; old files are kept as *.flatout-backup"),
            "wait_s": wait_schema(WAIT_S),
        })
    },
    required: &["command"],
    answer_properties: || json!({"job": {"type": "string"}, "state": {"enum": ["running", "ended"]}, "settings": {"type": "string"}, "gain": {"type": "object"}}),
    answer_required: &["job", "state"],
    lists: &["/trials"],
    starts_programs: true,
    writes: true,
    call,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: Vec<String>,
    folder: Option<String>,
    #[serde(default)]
    knobs: Vec<String>,
    budget_s: Option<f64>,
    max_trials: Option<u32>,
    trial_seconds: Option<f64>,
    #[serde(default)]
    resume: bool,
    #[serde(default)]
    write: bool,
    wait_s: Option<f64>,
}

fn call(call: &Call<'_>, value: Value) -> Result<Value> {
    let asked: Arguments = arguments(value)?;
    let longest = wait(asked.wait_s, WAIT_S)?;
    run::check_command(&asked.command)?;
    let mut words: Vec<String> = vec!["tune".into()];
    words.extend(asked.knobs.iter().map(|knob| format!("--knobs={knob}")));
    if let Some(seconds) = asked.budget_s {
        if !(1.0..=86_400.0).contains(&seconds) {
            return Err(Failure::new(
                message!(en: "`budget_s` must be from 1 to 86400", zh: "`budget_s` 必须在 1 到 86400 之间"),
            ));
        }
        words.push(format!("--budget={seconds}s"));
    }
    if let Some(most) = asked.max_trials {
        words.push(format!("--max-trials={most}"));
    }
    if let Some(seconds) = asked.trial_seconds {
        words.push(format!("--trial-seconds={seconds}"));
    }
    for (wanted, option) in [(asked.resume, "--resume"), (asked.write, "--write")] {
        if wanted {
            words.push(option.into());
        }
    }
    let id = run::start(call, Kind::Tune, words, asked.command, asked.folder.as_deref())?;
    let job = call.jobs.wait(&id, longest, call.cancelled, call.progress)?;
    Ok(described(call, &job))
}

/// What there is to say about a job of `tune`.
pub fn described(call: &Call<'_>, job: &Job) -> Value {
    let mut answer = run::state(job);
    let found = std::fs::read(&job.result).ok();
    let found = found.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let Some(found) = found.filter(|_| job.ended.is_some()) else {
        answer["output_tail"] = json!(job.output_tail());
        return answer;
    };
    answer["changed"] = found["changed"].clone();
    answer["unit"] = found["unit"].clone();
    answer["settings"] = found["best"]["apply"].clone();
    let bounds =
        ["mean", "low", "high"].map(|key| (key, found["gain"][key].as_f64().map_or(Value::Null, number)));
    for (key, value) in bounds {
        answer["gain"][key] = value;
    }
    let patch = found["patch"].as_str().unwrap_or_default();
    if !patch.is_empty() {
        answer["patch"] = json!(patch);
    }
    let trials = found["trials"].as_array().cloned().unwrap_or_default();
    let trials = trials.iter().map(|trial| {
        let score = trial["score"]["mean"].as_f64().map_or(Value::Null, number);
        json!({"number": trial["number"], "changes": trial["changes"], "score": score, "verdict": plain(call, trial["verdict"].clone())})
    });
    answer["trials"] = trials.collect();
    let code = found["code"].as_array().cloned().unwrap_or_default();
    let code = code
        .iter()
        .map(|finding| json!({"rule": finding["rule"], "title": plain(call, finding["title"].clone())}));
    answer["code"] = code.collect();
    answer
}
