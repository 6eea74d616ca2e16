//! The verdicts: what is reported when no cause is found. They look at the ranked findings, so they come after the rules.

use crate::analysis::Analysis;
use flatout_core::{Finding, RuleInfo, Severity};

pub mod no_single_cause;
pub mod nothing_wrong;
pub mod still_warming_up;
pub mod too_little_data;

const fn info(id: &'static str, source: &'static str) -> RuleInfo {
    RuleInfo {
        id,
        domain: "health",
        severity: Severity::Information,
        source,
    }
}

pub const INFOS: &[RuleInfo] = &[
    info(nothing_wrong::ID, include_str!("health/nothing_wrong.rs")),
    info(no_single_cause::ID, include_str!("health/no_single_cause.rs")),
    info(still_warming_up::ID, include_str!("health/still_warming_up.rs")),
    info(too_little_data::ID, include_str!("health/too_little_data.rs")),
];

/// At most one: too little data, still warming up, or nothing wrong.
pub fn verdicts(analysis: &Analysis, findings: &[Finding]) -> Option<Finding> {
    still_warming_up::check(analysis)
        .or_else(|| too_little_data::check(analysis, findings))
        .or_else(|| nothing_wrong::check(analysis, findings))
}
