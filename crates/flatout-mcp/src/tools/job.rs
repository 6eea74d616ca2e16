//! `job`: how a program that was started goes, and stopping it.

use super::{Call, Tool, arguments, flag, list, run, text, tune, wait, wait_schema};
use crate::jobs::Kind;
use flatout_core::Result;
use serde::Deserialize;
use serde_json::{Value, json};

pub const TOOL: Tool = Tool {
    name: "job",
    title: "Ask about a started program",
    description: "The state of a program that `run` or `tune` started: waits for its end, or stops it. The answer is that of `run` or `tune`. \
While it runs, `diagnose` and `account` already read its record.",
    properties: || {
        json!({
            "job": text("Id of the job, as job1"),
            "wait_s": wait_schema(0.0),
            "stop": flag("Stop the program; its record is kept"),
        })
    },
    required: &["job"],
    answer_properties: || json!({"job": {"type": "string"}, "state": {"enum": ["running", "ended"]}, "findings": list()}),
    answer_required: &["job", "state"],
    lists: &["/activities", "/trials", "/findings"],
    starts_programs: true,
    writes: false,
    call,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    job: String,
    wait_s: Option<f64>,
    #[serde(default)]
    stop: bool,
}

fn call(call: &Call<'_>, value: Value) -> Result<Value> {
    let asked: Arguments = arguments(value)?;
    let longest = wait(asked.wait_s, 0.0)?;
    let job = if asked.stop {
        call.jobs.stop(&asked.job)?
    } else {
        call.jobs
            .wait(&asked.job, longest, call.cancelled, call.progress)?
    };
    match job.kind {
        Kind::Run => run::described(call, &job),
        Kind::Tune => Ok(tune::described(call, &job)),
    }
}
