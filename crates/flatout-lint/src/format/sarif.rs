//! SARIF 2.1.0, which code hosts and editors read.

use crate::lint::Outcome;
use crate::report::Reported;
use crate::rules::RULES;
use flatout_core::{Language, Severity};
use serde_json::{Value, json};

pub fn sarif(outcome: &Outcome, language: Language) -> String {
    let used = RULES
        .iter()
        .filter(|rule| outcome.found.iter().any(|one| one.finding.rule == rule.info.id));
    let rules: Vec<Value> = used
        .map(|rule| {
            json!({
                "id": rule.info.id,
                "help": { "text": rule.info.page(), "markdown": rule.info.page() },
                "properties": { "tags": ["performance", rule.info.domain] },
            })
        })
        .collect();
    let results: Vec<Value> = outcome.found.iter().map(|one| result(one, language)).collect();
    let page = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "flatout", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    let mut text = serde_json::to_string_pretty(&page).unwrap_or_default();
    text.push('\n');
    text
}

fn result(one: &Reported, language: Language) -> Value {
    let finding = &one.finding;
    let level = match finding.severity {
        Severity::Information => "note",
        Severity::Warning => "warning",
        Severity::Critical => "error",
    };
    let locations: Vec<Value> = finding.places.iter().take(1).map(location).collect();
    let related: Vec<Value> = finding.places.iter().skip(1).map(location).collect();
    json!({
        "ruleId": finding.rule,
        "level": level,
        "message": { "text": finding.title.get(language) },
        "locations": locations,
        "relatedLocations": related,
    })
}

fn location(place: &flatout_core::Place) -> Value {
    if let Some(cell) = place.cell {
        // Lines of a cell are not lines of the file.
        return json!({
            "physicalLocation": { "artifactLocation": { "uri": uri(&place.file) } },
            "logicalLocations": [{ "name": format!("cell {cell}, line {}", place.line) }],
        });
    }
    json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri(&place.file) },
            "region": { "startLine": place.line, "startColumn": place.column.unwrap_or(1) },
        }
    })
}

/// The path as a relative URI: forward slashes, other characters percent-encoded.
fn uri(path: &std::path::Path) -> String {
    let text = path.to_string_lossy().replace('\\', "/");
    let text = text.strip_prefix("./").unwrap_or(&text);
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out += &format!("%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn paths_become_uris() {
        assert_eq!(uri("./a b/训.py".as_ref()), "a%20b/%E8%AE%AD.py");
    }
}
