//! `schemas/` describes what other programs read: the run record, the `--json` outputs, `flatout.toml`. It is generated from the types that
//! write these files; `cargo xtask reference` writes it, and this test fails when it is out of date. `python/tests/test_schemas.py`
//! validates real files against it.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use flatout_record::{
    Event, Fact, GpuWindow, Profile, RunInfo, Sample, SourceLine, StackTick, StepTick, StepTimeline,
};
use schemars::generate::SchemaSettings;
use schemars::{Schema, schema_for};
use serde_json::{Value, json};
use std::path::Path;

/// What a file is, for the `title` of its schema.
fn titled(schema: Schema, title: &str) -> Value {
    let mut schema = schema.to_value();
    schema["title"] = title.into();
    schema
}

/// The schema of `flatout diagnose RUN --json`: the diagnosis and the run it is of. `flatout run --json FILE` writes it without the run.
fn diagnosis() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = titled(
        generator.into_root_schema_for::<flatout_diagnose::Diagnosis>(),
        "flatout diagnose --json, flatout run --json",
    );
    schema["properties"]["run"] = json!({
        "description": "The id of the run; only from `flatout diagnose`.",
        "type": "string",
    });
    schema
}

fn fleet() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let schema = generator.into_root_schema_for::<flatout_report::fleet::Fleet>();
    titled(schema, "flatout fleet --json")
}

fn rules() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "flatout explain --list --json",
        "type": "object",
        "required": ["schema", "rules"],
        "properties": {
            "schema": { "const": 1 },
            "rules": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["id", "domain", "found_in", "severity", "summary", "former_ids"],
                    "properties": {
                        "id": { "type": "string", "pattern": "^[a-z0-9-]+$" },
                        "domain": { "type": "string" },
                        "found_in": { "type": "array", "items": { "enum": ["source", "run"] }, "minItems": 1 },
                        "severity": { "enum": ["information", "warning", "critical"] },
                        "summary": { "type": "string" },
                        "former_ids": { "type": "array", "items": { "type": "string" } },
                    },
                },
            },
        },
    })
}

/// `flatout.toml`; in `pyproject.toml` the same keys are in `[tool.flatout.lint]`.
fn configuration() -> Value {
    let names = json!({ "type": "array", "items": { "type": "string" } });
    let described = |description: &str, of: &Value| {
        let mut value = of.clone();
        value["description"] = description.into();
        value
    };
    let text = json!({ "type": "string" });
    let count = json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "flatout.toml",
        "type": "object",
        "properties": {
            "lint": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "select": described("Ids or domains of the rules to run; without it all.", &names),
                    "ignore": described("Ids or domains of the rules to leave out.", &names),
                    "exclude": described("Names of folders or files, or ends of paths, to leave out.", &names),
                    "cpus": described("CPUs of the machine that the training runs on.", &count),
                    "gpu-memory-gib": described("Memory of its GPU in GiB.", &count),
                },
            },
            "slurm": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "partition": described("Partition of jobs and tasks.", &text),
                    "account": described("Account.", &text),
                    "qos": described("Quality of service.", &text),
                    "gpus": described("GPUs of each node or task.", &count),
                    "cpus-per-gpu": described("CPUs for each GPU.", &count),
                    "mem": described("Memory of each node or task: 32G.", &text),
                    "time": described("Time limit: 2h, or as Slurm writes it.", &text),
                    "max-running": described("Tasks of an array at once.", &count),
                    "sbatch": described("Further options of sbatch: constraint=a100.", &names),
                },
            },
        },
    })
}

fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        (
            "record/run",
            titled(schema_for!(RunInfo), "run.json of a run record"),
        ),
        ("record/facts", titled(schema_for!(Fact), "A line of facts.jsonl")),
        (
            "record/samples",
            titled(
                schema_for!(Sample),
                "The first line of a part of samples.jsonl; a later line is a JSON merge patch on the one before",
            ),
        ),
        (
            "record/steps",
            titled(schema_for!(StepTick), "A line of steps.jsonl"),
        ),
        (
            "record/events",
            titled(schema_for!(Event), "A line of events.jsonl"),
        ),
        (
            "record/stacks",
            titled(schema_for!(StackTick), "A line of stacks.jsonl"),
        ),
        (
            "record/lines",
            titled(schema_for!(SourceLine), "A line of lines.jsonl"),
        ),
        (
            "record/windows",
            titled(schema_for!(GpuWindow), "A line of windows.jsonl"),
        ),
        (
            "record/timeline",
            titled(schema_for!(StepTimeline), "A line of timeline.jsonl"),
        ),
        (
            "record/profile",
            titled(schema_for!(Profile), "profile.json of a run record"),
        ),
        ("diagnosis", diagnosis()),
        ("fleet", fleet()),
        (
            "lint",
            titled(flatout_lint::format::json_schema(), "flatout lint --format json"),
        ),
        ("rules", rules()),
        ("flatout.toml", configuration()),
    ]
}

#[test]
fn the_schemas_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    for (name, schema) in schemas() {
        let path = folder.join(format!("{name}.schema.json"));
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("FLATOUT_WRITE_REFERENCE").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == text,
            "schemas/{name}.schema.json is out of date: run `cargo xtask reference`"
        );
    }
}

/// Every setting that the lint reads is in the schema, and nothing else.
#[test]
fn the_schema_of_the_settings_has_every_key() {
    let schema = configuration();
    let keys = schema["properties"]["lint"]["properties"].as_object().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flatout.toml");
    for (key, of) in keys {
        let value = if of["type"] == "array" { "[]" } else { "4" };
        std::fs::write(&path, format!("[lint]\n{key} = {value}\n")).unwrap();
        assert!(flatout_lint::Settings::read(&path).unwrap().is_some(), "{key}");
    }
    std::fs::write(&path, "[lint]\nnothing = 1\n").unwrap();
    let hint = flatout_core::Explain::hint(&flatout_lint::Settings::read(&path).unwrap_err()).unwrap();
    let listed = hint.en.split_once(": ").unwrap().1;
    let listed: std::collections::BTreeSet<&str> = listed.split(", ").collect();
    let described: std::collections::BTreeSet<&str> = keys.keys().map(String::as_str).collect();
    assert_eq!(
        listed, described,
        "left: what the lint accepts; right: the schema"
    );
}

/// The same for `[slurm]`.
#[test]
fn the_schema_of_the_slurm_profile_has_every_key() {
    let schema = configuration();
    let keys = schema["properties"]["slurm"]["properties"].as_object().unwrap();
    let described: std::collections::BTreeSet<&str> = keys.keys().map(String::as_str).collect();
    let known = flatout_run::slurm::Profile::KEYS.iter().copied().collect();
    assert_eq!(described, known);
}
