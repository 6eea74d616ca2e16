//! For programs: findings as the other commands print them, in both languages.

use crate::lint::Outcome;
use flatout_core::Finding;
use serde::Serialize;

/// Grows when a field changes its meaning or goes away.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Page<'a> {
    schema: u32,
    files: usize,
    lines: usize,
    silenced: usize,
    findings: Vec<&'a Finding>,
}

pub fn json(outcome: &Outcome) -> String {
    let page = Page {
        schema: SCHEMA,
        files: outcome.file_count(),
        lines: outcome.lines,
        silenced: outcome.silenced,
        findings: outcome.found.iter().map(|one| &one.finding).collect(),
    };
    let mut text = serde_json::to_string_pretty(&page).unwrap_or_default();
    text.push('\n');
    text
}
