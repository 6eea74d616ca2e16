//! `run`: a training program, recorded.

use super::diagnose;
use super::{Call, Tool, WAIT_S, arguments, flag, list, number, text, texts, wait, wait_schema};
use crate::jobs::{Job, Kind, Start};
use flatout_core::{Failure, Result, message, secrets};
use flatout_record::{self as record, RunEntry};
use serde::Deserialize;
use serde_json::{Value, json};

pub const TOOL: Tool = Tool {
    name: "run",
    title: "Run and record a program",
    description: "Runs a training program unchanged, records it and diagnoses it. `command` is a list of words, not a shell line. \
A few hundred steps suffice: give `steps`. `settings` are put in force without an edit.",
    properties: || {
        json!({
            "command": texts("The program and its arguments: [\"python\", \"train.py\", \"--epochs\", \"1\"]"),
            "folder": text("Where it runs, inside the server's folder (default: that folder)"),
            "name": text("Name of the run"),
            "settings": texts("Settings to put in force, as loader.num_workers=8 or amp=bf16"),
            "steps": {"type": "integer", "minimum": 1, "description": "Stop after this many optimizer steps"},
            "profile": flag("Also run a few steps under PyTorch's profiler"),
            "wait_s": wait_schema(WAIT_S),
        })
    },
    required: &["command"],
    answer_properties: || json!({"job": {"type": "string"}, "state": {"enum": ["running", "ended"]}, "run": {"type": "string"}, "findings": list()}),
    answer_required: &["job", "state"],
    lists: &["/activities", "/findings"],
    starts_programs: true,
    writes: false,
    call,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: Vec<String>,
    folder: Option<String>,
    name: Option<String>,
    #[serde(default)]
    settings: Vec<String>,
    steps: Option<u64>,
    #[serde(default)]
    profile: bool,
    wait_s: Option<f64>,
}

fn call(call: &Call<'_>, value: Value) -> Result<Value> {
    let asked: Arguments = arguments(value)?;
    let longest = wait(asked.wait_s, WAIT_S)?;
    check_command(&asked.command)?;
    let mut words: Vec<String> = vec!["run".into()];
    if let Some(name) = asked.name {
        words.push(format!("--name={name}"));
    }
    for setting in asked.settings {
        words.push(format!("--apply={setting}"));
    }
    if let Some(steps) = asked.steps {
        words.push(format!("--steps={steps}"));
    }
    if asked.profile {
        words.push("--profile".into());
    }
    let id = start(call, Kind::Run, words, asked.command, asked.folder.as_deref())?;
    let job = call.jobs.wait(&id, longest, call.cancelled, call.progress)?;
    described(call, &job)
}

/// A program to start needs a name.
pub fn check_command(command: &[String]) -> Result<()> {
    let whole_line = command.len() == 1 && command.iter().any(|word| word.trim().contains(' '));
    if command.first().is_none_or(|program| program.trim().is_empty()) || whole_line {
        return Err(Failure::new(
            message!(en: "`command` must be a list of strings that starts with the program", zh: "`command` 必须是以程序开头的单词列表"),
        )
        .with_hint(message!(
            en: "write [\"python\", \"train.py\"]; it is not run through a shell",
            zh: "请写成 [\"python\", \"train.py\"]；不经过 shell"
        )));
    }
    Ok(())
}

pub fn start(
    call: &Call<'_>,
    kind: Kind,
    mut words: Vec<String>,
    command: Vec<String>,
    folder: Option<&str>,
) -> Result<String> {
    let folder = call
        .root
        .folder()
        .join(call.root.existing(folder.unwrap_or("."))?);
    words.push(format!("--lang={}", call.host.language.tag()));
    let home = record::runs_folder();
    let home = home.parent().unwrap_or(&home);
    call.jobs.start(Start {
        kind,
        flatout: &call.host.flatout,
        home: &call.root.folder().join(home),
        folder: &folder,
        arguments: words,
        command,
    })
}

/// What there is to say about a job of `run`.
pub fn described(call: &Call<'_>, job: &Job) -> Result<Value> {
    let mut answer = state(job);
    if let Some(entry) = recorded(job) {
        answer["run"] = json!(entry.info.id);
        if job.ended.is_some() {
            let data = flatout_record::Record::open(&entry.folder)?.load();
            diagnose::add(call, &(call.host.diagnose)(&data), &mut answer);
        }
    }
    let failed = job.exit_code().is_some_and(|code| code != 0);
    if job.ended.is_none() || failed || answer.get("run").is_none() {
        answer["output_tail"] = json!(job.output_tail());
    }
    Ok(answer)
}

pub fn state(job: &Job) -> Value {
    let state = if job.ended.is_some() { "ended" } else { "running" };
    let mut answer = json!({"job": job.id, "state": state, "seconds": number(job.seconds)});
    if let Some(code) = job.exit_code() {
        answer["exit_code"] = json!(code);
    }
    answer
}

/// The job's record: by its own word, else the newest one of this command since it began.
fn recorded(job: &Job) -> Option<RunEntry> {
    let own = std::fs::read(&job.result).ok();
    let own = own.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let id = own
        .as_ref()
        .and_then(|own| own.get("run"))
        .and_then(Value::as_str);
    let command = secrets::redact(&job.command);
    let same = |entry: &RunEntry| match id {
        Some(id) => entry.info.id == id,
        None => entry.info.started_unix_ms + 1000 >= job.started_unix_ms && entry.info.command == command,
    };
    let entries = record::list(&record::runs_folder());
    entries.into_iter().rev().find(same)
}
