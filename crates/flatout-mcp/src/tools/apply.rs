//! `apply`: changes the source, when the call asks for it.

use super::{Call, Tool, arguments, flag, lint, text, texts};
use flatout_core::{Failure, Result, message};
use flatout_diagnose::Analysis;
use flatout_lint::patch::{self, Wanted};
use flatout_lint::{Outcome, fix};
use serde::Deserialize;
use serde_json::{Value, json};

pub const TOOL: Tool = Tool {
    name: "apply",
    title: "Apply fixes to the source",
    description: "Shows the diff that fixes findings of `lint`, or that writes settings which a run proved into the source; writes it only with `write: true` (old files are kept as *.flatout-backup). \
Give `findings`, or `run` with `settings`.",
    properties: || {
        json!({
            "findings": texts("Ids of lint findings, as rule@file:line"),
            "paths": texts("The paths that were linted (default: the server's folder)"),
            "unsafe_edits": flag("Also edits that may change results (precision, memory, the order of sums)"),
            "run": text("A run whose loader and optimizer the settings belong to"),
            "settings": texts("Settings to write, as loader.num_workers=8"),
            "write": flag("Write the files; without it only the diff is shown"),
        })
    },
    required: &[],
    answer_properties: || json!({"written": {"type": "boolean"}, "diff": {"type": "string"}, "files": {"type": "array"}}),
    answer_required: &["written", "diff", "files"],
    lists: &[],
    starts_programs: false,
    writes: true,
    call,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    findings: Vec<String>,
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    unsafe_edits: bool,
    run: Option<String>,
    #[serde(default)]
    settings: Vec<String>,
    #[serde(default)]
    write: bool,
}

fn call(call: &Call<'_>, value: Value) -> Result<Value> {
    let asked: Arguments = arguments(value)?;
    if asked.write {
        call.may_write()?;
    }
    match (&asked.run, asked.findings.is_empty(), asked.settings.is_empty()) {
        (None, false, true) => edits(call, &asked),
        (Some(run), true, false) => settings(call, &asked, run),
        _ => Err(
            Failure::new(message!(en: "nothing to apply", zh: "未说明要应用什么")).with_hint(message!(
                en: "give `findings` (ids of `lint`), or `run` together with `settings`",
                zh: "请给出 `findings`（`lint` 的 id），或 `run` 加 `settings`"
            )),
        ),
    }
}

fn edits(call: &Call<'_>, asked: &Arguments) -> Result<Value> {
    let paths = lint::paths(call, &asked.paths)?;
    let settings = lint::settings(&paths)?;
    let mut outcome = flatout_lint::lint(&paths, &settings)?;
    lint::keep(call, &mut outcome, &asked.findings)?;
    for file in outcome
        .found
        .iter()
        .flat_map(|one| fix::edits_of(&one.finding, true))
        .map(|edit| &edit.file)
    {
        call.root.check(file)?;
    }
    let mended = if asked.write {
        // One round: after it lines have moved, and ids name other lines.
        let done = |mut outcome: Outcome| {
            outcome.found.clear();
            outcome
        };
        fix::apply_all(outcome, asked.unsafe_edits, || {
            Ok::<_, Failure>(done(flatout_lint::lint(&paths, &settings)?))
        })?
    } else {
        fix::preview(&outcome, asked.unsafe_edits)
    };
    if mended.diff.is_empty() {
        return Err(Failure::new(message!(en: "none of these findings has an edit that can be applied", zh: "这些问题都没有可自动应用的修改"))
            .with_hint(message!(
                en: "findings with `fix: unsafe` need `unsafe_edits: true`; for others `lint` with `finding` shows what to change by hand",
                zh: "`fix: unsafe` 的问题需要 `unsafe_edits: true`；其余请用 `lint` 加 `finding` 查看如何手动修改"
            )));
    }
    Ok(json!({
        "written": mended.written, "findings": mended.findings, "postponed": mended.postponed,
        "files": mended.files, "diff": mended.diff,
    }))
}

fn settings(call: &Call<'_>, asked: &Arguments, run: &str) -> Result<Value> {
    let data = call.root.run(run)?.load();
    let analysis = Analysis::new(&data);
    let loader = analysis.train_loader().and_then(|loader| loader.place.clone());
    let optimizer = analysis.facts.place("optimizer.class");
    let mut wanted = Vec::new();
    for setting in &asked.settings {
        let Some((key, value)) = setting.split_once('=') else {
            return Err(Failure::new(
                message!(en: "`{setting}` is not KEY=VALUE", zh: "`{setting}` 不是 KEY=VALUE"),
            ));
        };
        let place = if key.starts_with("loader.") {
            &loader
        } else {
            &optimizer
        };
        wanted.push(Wanted {
            key: key.trim().to_owned(),
            value: value.trim().to_owned(),
            place: place.clone(),
        });
    }
    // A record may come from elsewhere and name any file.
    for place in wanted.iter().filter_map(|one| one.place.as_ref()) {
        call.root.check(&place.file)?;
    }
    let patch = patch::patch(&wanted)?;
    let files: Vec<String> = patch
        .files
        .iter()
        .map(|(path, _, _)| path.display().to_string())
        .collect();
    if asked.write {
        patch::write(&patch)?;
    }
    let left = patch
        .left
        .iter()
        .map(|(key, why)| json!({"setting": key, "why": call.say(why)}));
    Ok(json!({
        "written": asked.write && !files.is_empty(), "files": files, "diff": patch.diff,
        "not_in_source": left.collect::<Vec<_>>(),
    }))
}
