//! `lint`: problems in the source, before a run.

use super::{Call, Tool, arguments, brief, list, text, texts};
use flatout_core::{Failure, Finding, Fix, Result, message};
use flatout_lint::report::Reported;
use flatout_lint::{Outcome, Settings, fix, lint};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;

pub const TOOL: Tool = Tool {
    name: "lint",
    title: "Lint training code",
    description: "Finds in Python source and configuration files what will keep the GPU idle; runs nothing. Each finding has an id (rule@file:line) that `apply` takes. \
With `finding`: its reason, and the diff that fixes it.",
    properties: || {
        json!({
            "paths": texts("Files and folders, read as one project (default: the server's folder)"),
            "select": texts("Only these rules or domains"),
            "ignore": texts("Not these rules or domains"),
            "finding": text("Id of a finding: everything about it"),
        })
    },
    required: &[],
    answer_properties: || json!({"files": {"type": "integer"}, "findings": list(), "finding": {"type": "object"}}),
    answer_required: &[],
    lists: &["/unreadable", "/findings"],
    starts_programs: false,
    writes: false,
    call,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    select: Vec<String>,
    #[serde(default)]
    ignore: Vec<String>,
    finding: Option<String>,
}

fn call(call: &Call<'_>, value: Value) -> Result<Value> {
    let asked: Arguments = arguments(value)?;
    let paths = paths(call, &asked.paths)?;
    let mut settings = settings(&paths)?;
    if !asked.select.is_empty() {
        settings.select = asked.select;
    }
    settings.ignore.extend(asked.ignore);
    settings.check()?;
    let mut outcome = lint(&paths, &settings)?;
    if let Some(wanted) = &asked.finding {
        keep(call, &mut outcome, std::slice::from_ref(wanted))?;
        let diff = fix::preview(&outcome, true).diff;
        let found = outcome
            .found
            .first()
            .map(|one| brief::whole(call, wanted, &one.finding));
        let mut answer = json!({"finding": found});
        answer["finding"]["fix"] = json!(fixable(outcome.found.first().map(|one| &one.finding)));
        if !diff.is_empty() {
            answer["finding"]["diff"] = json!(diff);
        }
        return Ok(answer);
    }
    // The worst first: a list that must be shortened loses the least.
    outcome
        .found
        .sort_by_key(|one| std::cmp::Reverse(one.finding.severity));
    let findings = outcome.found.iter().map(|one| {
        let mut shown = json!({
            "id": id(call, one), "severity": one.finding.severity, "title": call.say(&one.finding.title),
        });
        if let Some(how) = fixable(Some(&one.finding)) {
            shown["fix"] = json!(how);
        }
        shown
    });
    let unreadable = outcome.project.unreadable.len();
    Ok(json!({
        "files": outcome.file_count(), "lines": outcome.lines, "silenced": outcome.silenced,
        "not_read": unreadable, "findings": findings.collect::<Vec<_>>(),
    }))
}

/// Paths of a call; the whole folder where it names none.
pub fn paths(call: &Call<'_>, named: &[String]) -> Result<Vec<PathBuf>> {
    if named.is_empty() {
        return Ok(vec![PathBuf::from(".")]);
    }
    named.iter().map(|path| call.root.existing(path)).collect()
}

/// The project's own settings.
pub fn settings(paths: &[PathBuf]) -> Result<Settings> {
    Ok(Settings::discover(
        paths.first().map_or(".".as_ref(), PathBuf::as_path),
    )?)
}

/// `item-in-step@train.py:12`
pub fn id(call: &Call<'_>, one: &Reported) -> String {
    let place = one.finding.places.first();
    let place = place.map(|place| brief::place(call, place)).unwrap_or_default();
    format!("{}@{place}", one.finding.rule)
}

/// Leaves only the findings asked for.
pub fn keep(call: &Call<'_>, outcome: &mut Outcome, wanted: &[String]) -> Result<()> {
    let known: Vec<String> = outcome.found.iter().map(|one| id(call, one)).collect();
    if let Some(missing) = wanted.iter().find(|wanted| !known.contains(wanted)) {
        let count = known.len();
        return Err(
            Failure::new(message!(en: "there is no finding `{missing}`", zh: "没有 `{missing}`")).with_hint(
                message!(
                    en: "the source may have changed: `lint` now lists {count} findings",
                    zh: "源码可能已改变：`lint` 列出当前的 {count} 处"
                ),
            ),
        );
    }
    outcome.found.retain(|one| wanted.contains(&id(call, one)));
    Ok(())
}

fn fixable(finding: Option<&Finding>) -> Option<&'static str> {
    finding?.fixes.iter().find_map(|fix| match fix {
        Fix::Edits { safe: true, .. } => Some("safe"),
        Fix::Edits { safe: false, .. } => Some("unsafe"),
        _ => None,
    })
}
