//! For programs: findings as the other commands print them, in both languages.

use crate::lint::Outcome;
use flatout_core::Finding;
use serde::Serialize;

/// Grows when a field changes its meaning or goes away.
const SCHEMA: u32 = 1;

#[derive(Serialize, schemars::JsonSchema)]
struct Page<'a> {
    schema: u32,
    files: usize,
    lines: usize,
    silenced: usize,
    findings: Vec<&'a Finding>,
}

/// The JSON schema of [`json`].
pub fn schema() -> schemars::Schema {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<Page<'static>>()
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
