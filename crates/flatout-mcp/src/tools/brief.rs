//! Findings, places and fixes in few words.

use super::{Call, number};
use flatout_core::{Finding, Fix, Gain, Kind, Place};
use serde_json::{Map, Value, json};
use std::path::Path;

/// `train.py:12`, relative to the server's folder where it is inside.
pub fn place(call: &Call<'_>, place: &Place) -> String {
    let root = call.root.folder();
    let file = place.file.strip_prefix(root).unwrap_or(&place.file);
    let file = file.strip_prefix(Path::new("./")).unwrap_or(file);
    format!("{}:{}", file.display(), place.line)
}

pub fn gain(gain: &Gain) -> Value {
    json!({"low": number(gain.low), "high": number(gain.high), "measured": gain.measured})
}

/// One line of a list of findings.
pub fn finding(call: &Call<'_>, id: &str, finding: &Finding) -> Value {
    let mut brief = Map::new();
    brief.insert("id".into(), json!(id));
    brief.insert("rule".into(), json!(finding.rule));
    brief.insert("severity".into(), json!(finding.severity));
    if finding.kind != Kind::Cause {
        brief.insert("kind".into(), json!(finding.kind));
    }
    brief.insert("title".into(), json!(call.say(&finding.title)));
    if let Some(first) = finding.places.first() {
        brief.insert("where".into(), json!(place(call, first)));
    }
    if let Some(expected) = &finding.gain {
        brief.insert("gain".into(), gain(expected));
    }
    let settings = settings(finding);
    if !settings.is_empty() {
        brief.insert("settings".into(), json!(settings));
    }
    Value::Object(brief)
}

/// What `run` takes as `settings`.
pub fn settings(finding: &Finding) -> Vec<String> {
    let settings = finding.fixes.iter().filter_map(|fix| match fix {
        Fix::Setting { setting, to, .. } => Some(format!("{setting}={to}")),
        _ => None,
    });
    settings.collect()
}

/// Everything a finding has.
pub fn whole(call: &Call<'_>, id: &str, found: &Finding) -> Value {
    let mut whole = finding(call, id, found);
    whole["kind"] = json!(found.kind);
    whole["confidence"] = json!(found.confidence);
    whole["detail"] = json!(call.say(&found.detail));
    let evidence = found.evidence.iter().map(|one| {
        let mut entry = json!({"what": call.say(&one.what), "value": number(one.value), "unit": one.unit});
        if let Some(threshold) = one.threshold {
            entry["threshold"] = number(threshold);
        }
        entry
    });
    whole["evidence"] = evidence.collect();
    whole["places"] = found.places.iter().map(|one| json!(place(call, one))).collect();
    let lint = found.lint.iter();
    whole["lint"] = lint
        .map(|one| json!({"rule": one.rule, "where": place(call, &one.place)}))
        .collect();
    whole["fixes"] = found.fixes.iter().map(|one| fix(call, one)).collect();
    whole
}

fn fix(call: &Call<'_>, fix: &Fix) -> Value {
    match fix {
        Fix::Setting {
            setting,
            from,
            to,
            say,
        } => {
            json!({"how": "setting", "settings": format!("{setting}={to}"), "from": from, "say": call.say(say)})
        }
        Fix::Code { place: at, say } => {
            json!({"how": "code", "where": at.as_ref().map(|at| place(call, at)), "say": call.say(say)})
        }
        Fix::Edits { edits, safe, say } => {
            json!({"how": "apply", "edits": edits.len(), "safe": safe, "say": call.say(say)})
        }
        Fix::Command { command, say } => json!({"how": "command", "command": command, "say": call.say(say)}),
        Fix::Refused { setting, say } => json!({"how": "refused", "setting": setting, "say": call.say(say)}),
    }
}
