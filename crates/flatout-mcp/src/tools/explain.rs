//! `explain`: the page of a rule.

use super::{Call, Tool, arguments, text};
use flatout_core::{Failure, Language, Result, message, rule, spelling};
use serde::Deserialize;
use serde_json::{Map, Value, json};

pub const TOOL: Tool = Tool {
    name: "explain",
    title: "Explain a rule",
    description: "What a rule detects, why that is slow, how to fix it, and when the rule is wrong. Without `rule`: the ids of all rules by domain.",
    properties: || {
        json!({
            "rule": text("Id of a rule, as findings have it"),
            "section": {"enum": rule::HEADINGS, "description": "Only this section of the page"},
        })
    },
    required: &[],
    answer_properties: || json!({"rule": {"type": "string"}, "page": {"type": "string"}, "rules": {"type": "object"}}),
    answer_required: &[],
    lists: &[],
    starts_programs: false,
    writes: false,
    call,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    rule: Option<String>,
    section: Option<String>,
}

fn call(call: &Call<'_>, value: Value) -> Result<Value> {
    let arguments: Arguments = arguments(value)?;
    let Some(id) = &arguments.rule else {
        let mut domains: Map<String, Value> = Map::new();
        for rule in &call.host.rules {
            let ids = domains.entry(rule.domain).or_insert_with(|| json!(""));
            let before = ids.as_str().unwrap_or_default();
            *ids = json!(if before.is_empty() {
                rule.id.to_owned()
            } else {
                format!("{before} {}", rule.id)
            });
        }
        return Ok(json!({"rules": domains}));
    };
    let found = call.host.rules.iter().find(|rule| rule.id == id).ok_or_else(|| {
        let mut near: Vec<&str> = call.host.rules.iter().map(|rule| rule.id).collect();
        near.sort_by_key(|other| spelling::distance(id, other));
        near.truncate(3);
        let near = near.join(", ");
        Failure::new(message!(en: "there is no rule `{id}`", zh: "没有规则 `{id}`"))
            .with_hint(message!(en: "did you mean {near}?", zh: "是否指 {near}？"))
    })?;
    let mut answer = json!({"rule": found.id, "domain": found.domain, "severity": found.severity});
    let page = match &arguments.section {
        None => found.page_in(call.host.language),
        Some(section) => {
            let known = rule::HEADINGS.join(", ");
            let text = found.section(section).ok_or_else(|| {
                Failure::new(message!(en: "unknown section `{section}`", zh: "没有小节 `{section}`"))
                    .with_hint(message!(en: "available sections: {known}", zh: "小节有：{known}"))
            })?;
            match call.host.language {
                Language::English => text.en,
                Language::Chinese => text.zh,
            }
        }
    };
    answer["page"] = json!(page);
    Ok(answer)
}
