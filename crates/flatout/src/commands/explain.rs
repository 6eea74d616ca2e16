//! `flatout explain RULE`

use crate::context::Context;
use crate::output::write_stdout;
use clap::Args;
use flatout_core::{Failure, Message, Result, RuleInfo, message};
use std::fmt::Write;
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout explain item-in-step      what the rule detects, why it is slow, what to do
  flatout explain --list            every rule";

#[derive(Args)]
pub struct Arguments {
    /// The id of a rule, as findings show it
    #[arg(required_unless_present = "list")]
    rule: Option<String>,
    /// List every rule
    #[arg(long)]
    list: bool,
}

/// Every rule of every part: a part with rules adds its registry here.
fn rules() -> Vec<&'static RuleInfo> {
    let lint = flatout_lint::rules::RULES.iter().map(|rule| &rule.info);
    flatout_diagnose::rule_infos().chain(lint).collect()
}

pub fn about() -> Message {
    message!(en: "Explain a rule: what it detects, why that is slow, what to do", zh: "解释一条规则：检测什么、为什么慢、怎么办")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let rules = rules();
    let text = match &arguments.rule {
        Some(id) if !arguments.list => {
            let rule = rules
                .iter()
                .find(|rule| rule.id == id)
                .ok_or_else(|| unknown(id, &rules))?;
            rule.page_in(context.language)
        }
        _ => list(&rules),
    };
    write_stdout(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn list(rules: &[&RuleInfo]) -> String {
    let mut text = String::new();
    let mut domain = "";
    for rule in rules {
        if rule.domain != domain {
            let gap = if domain.is_empty() { "" } else { "\n" };
            let _ = writeln!(text, "{gap}{}", rule.domain);
            domain = rule.domain;
        }
        let _ = writeln!(text, "  {}", rule.id);
    }
    text
}

fn unknown(id: &str, rules: &[&RuleInfo]) -> Failure {
    // Those that share a word with what was typed, the most similar first.
    let shared = |other: &str| -> usize {
        let words = other
            .split('-')
            .filter(|word| id.split('-').any(|mine| mine == *word));
        words.map(str::len).sum()
    };
    let mut close: Vec<&str> = rules
        .iter()
        .map(|rule| rule.id)
        .filter(|other| shared(other) > 0)
        .collect();
    close.sort_by_key(|other| flatout_core::spelling::distance(id, other));
    close.truncate(4);
    let failure = Failure::new(message!(en: "there is no rule `{id}`", zh: "没有规则 `{id}`"));
    if close.is_empty() {
        return failure.with_hint(
            message!(en: "`flatout explain --list` shows all", zh: "`flatout explain --list` 列出全部规则"),
        );
    }
    let close = close.join(", ");
    failure.with_hint(message!(en: "did you mean {close}?", zh: "是否指 {close}？"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn rules_of_all_parts_share_one_namespace() {
        let mut seen = BTreeSet::new();
        for rule in rules() {
            assert!(seen.insert(rule.id), "{} is the id of two rules", rule.id);
        }
    }
}
