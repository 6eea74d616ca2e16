//! `flatout explain RULE`

use crate::context::Context;
use crate::output::write_stdout;
use clap::Args;
use flatout_core::rule::FIX_SAFETY;
use flatout_core::{Failure, Language, Message, Result, RuleInfo, message};
use flatout_vocabulary::{FORMER_IDS, canonical_id};
use std::fmt::Write;
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout explain item-in-step      what the rule detects, why it is slow, how to fix it
  flatout explain --list            all rules, and where each is found: source, run
  flatout explain --list --json     the same for programs";

#[derive(Args)]
pub struct Arguments {
    /// The id of a rule, as shown in findings
    #[arg(required_unless_present = "list")]
    rule: Option<String>,
    /// List all rules
    #[arg(long)]
    list: bool,
    /// Print the list as JSON
    #[arg(long, requires = "list")]
    json: bool,
}

/// Every rule of every crate with rules.
pub fn rules() -> Vec<&'static RuleInfo> {
    let lint = flatout_lint::rules::RULES.iter().map(|rule| &rule.info);
    flatout_diagnose::rule_infos().chain(lint).collect()
}

/// A problem: the rule that finds it in a run, the rule that finds it in the source, or both.
struct Problem {
    run: Option<&'static RuleInfo>,
    source: Option<&'static RuleInfo>,
    /// The rule whose page comes first.
    main: &'static RuleInfo,
}

/// Every problem, by domain. A crate with rules adds its registry here.
fn problems() -> Vec<Problem> {
    let mut problems: Vec<Problem> = flatout_diagnose::rule_infos()
        .map(|main| Problem {
            run: Some(main),
            source: None,
            main,
        })
        .collect();
    for main in flatout_lint::rules::RULES.iter().map(|rule| &rule.info) {
        if let Some(problem) = problems.iter_mut().find(|problem| problem.main.id == main.id) {
            problem.source = Some(main);
            continue;
        }
        let problem = Problem {
            run: None,
            source: Some(main),
            main,
        };
        // Domains stay together: insert after the last problem of the same one.
        let last = problems
            .iter()
            .rposition(|other| other.main.domain == main.domain);
        problems.insert(last.map_or(problems.len(), |last| last + 1), problem);
    }
    problems
}

impl Problem {
    fn page(&self, language: Language) -> String {
        let mut page = self.main.page_in(language);
        if let (Some(_), Some(source)) = (self.run, self.source) {
            let heading = message!(en: "In source code (`flatout lint`)", zh: "在源码中（`flatout lint`）");
            let _ = write!(page, "\n## {}\n", heading.get(language));
            let sections = [
                ("What it detects", message!(en: "Detects:", zh: "检测：")),
                ("Fix", message!(en: "Fix:", zh: "修改：")),
                (FIX_SAFETY.0, message!(en: "Fix safety:", zh: "修改是否安全：")),
                (
                    "When it is wrong",
                    message!(en: "When it is wrong:", zh: "何时不成立："),
                ),
            ];
            for (heading, title) in sections {
                if let Some(text) = source.section(heading) {
                    let _ = writeln!(page, "- {} {}", title.get(language), text.get(language));
                }
            }
        }
        let former: Vec<&str> = FORMER_IDS
            .iter()
            .filter(|(_, present)| *present == self.main.id)
            .map(|(former, _)| *former)
            .collect();
        if !former.is_empty() {
            let former = former.join(", ");
            let text = message!(en: "Former id: {former}", zh: "旧 id：{former}");
            let _ = writeln!(page, "\n{}", text.get(language));
        }
        page
    }

    /// The first sentence of "What it detects".
    fn summary(&self) -> Message {
        let Some(text) = self.main.section("What it detects") else {
            return Message::default();
        };
        let first = |text: &str, end: &str| match text.split_once(end) {
            Some((first, _)) => format!("{first}{}", end.trim_end()),
            None => text.to_owned(),
        };
        Message {
            en: first(&text.en, ". "),
            zh: first(&text.zh, "。"),
        }
    }
}

pub fn about() -> Message {
    message!(en: "Explain a rule: what it detects, why it is slow, how to fix it", zh: "解释一条规则：检测什么、为什么慢、怎么办")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let problems = problems();
    let text = match &arguments.rule {
        Some(typed) if !arguments.list => {
            let id = canonical_id(typed);
            problems
                .iter()
                .find(|problem| problem.main.id == id)
                .ok_or_else(|| unknown(typed, &id, &problems))?
                .page(context.language)
        }
        _ if arguments.json => json(&problems, context.language),
        _ => list(&problems, context.language),
    };
    write_stdout(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn list(problems: &[Problem], language: Language) -> String {
    let mut text = String::new();
    let mut domain = "";
    let longest = problems
        .iter()
        .map(|problem| problem.main.id.len())
        .max()
        .unwrap_or(0);
    // Both languages fill the same columns.
    let (source, run, neither) = match language {
        Language::Chinese => ("源码  ", "运行", ["      ", "    "]),
        Language::English => ("source", "run", ["      ", "   "]),
    };
    for problem in problems {
        if problem.main.domain != domain {
            let gap = if domain.is_empty() { "" } else { "\n" };
            let _ = writeln!(text, "{gap}{}", problem.main.domain);
            domain = problem.main.domain;
        }
        let _ = writeln!(
            text,
            "  {:longest$}  {} {}  {}",
            problem.main.id,
            problem.source.map_or(neither[0], |_| source),
            problem.run.map_or(neither[1], |_| run),
            problem.summary().get(language)
        );
    }
    text
}

fn json(problems: &[Problem], language: Language) -> String {
    let rows: Vec<serde_json::Value> = problems
        .iter()
        .map(|problem| {
            let found_in: Vec<&str> = [("source", problem.source), ("run", problem.run)]
                .into_iter()
                .filter_map(|(name, rule)| rule.map(|_| name))
                .collect();
            let former: Vec<&str> = FORMER_IDS
                .iter()
                .filter(|(_, present)| *present == problem.main.id)
                .map(|(former, _)| *former)
                .collect();
            serde_json::json!({
                "id": problem.main.id,
                "domain": problem.main.domain,
                "found_in": found_in,
                "severity": problem.main.severity,
                "summary": problem.summary().get(language),
                "former_ids": former,
            })
        })
        .collect();
    serde_json::to_string_pretty(&serde_json::json!({ "schema": 1, "rules": rows })).unwrap_or_default()
        + "\n"
}

fn unknown(typed: &str, id: &str, problems: &[Problem]) -> Failure {
    // Those that share a word with what was typed, the most similar first.
    let shared = |other: &str| -> usize {
        let words = other
            .split('-')
            .filter(|word| id.split('-').any(|mine| mine == *word));
        words.map(str::len).sum()
    };
    let mut close: Vec<&str> = problems
        .iter()
        .map(|problem| problem.main.id)
        .filter(|other| shared(other) > 0)
        .collect();
    close.sort_by_key(|other| flatout_core::spelling::distance(id, other));
    close.truncate(4);
    let failure = Failure::new(message!(en: "there is no rule `{typed}`", zh: "没有规则 `{typed}`"));
    if close.is_empty() {
        return failure.with_hint(
            message!(en: "`flatout explain --list` lists all rules", zh: "`flatout explain --list` 列出全部规则"),
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
    fn every_problem_has_one_id_and_one_line() {
        let mut seen = BTreeSet::new();
        for problem in problems() {
            let id = problem.main.id;
            assert!(seen.insert(id), "{id} is the id of two problems");
            let summary = problem.summary();
            assert!(!summary.en.is_empty() && !summary.zh.is_empty(), "{id}");
        }
    }

    #[test]
    fn every_page_has_a_link_and_related_rules_exist() {
        let problems = problems();
        for rule in rules() {
            let references = rule.section("References").unwrap();
            for text in [&references.en, &references.zh] {
                assert!(text.contains("<https://"), "{}: no link in: {text}", rule.id);
            }
            let related = |text: &str, start: &str, end: char| -> Vec<String> {
                let (_, list) = text.split_once(start).unwrap_or_default();
                let list = list.split(end).next().unwrap_or_default();
                list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
            };
            let english = related(&references.en, "See also ", '.');
            assert_eq!(english, related(&references.zh, "另见 ", '。'), "{}", rule.id);
            for id in english {
                let known = problems.iter().any(|problem| problem.main.id == id);
                assert!(known && id != rule.id, "{}: see also {id}", rule.id);
            }
        }
    }

    #[test]
    fn former_ids_lead_to_problems_and_name_none() {
        let problems = problems();
        let exists = |id: &str| problems.iter().any(|problem| problem.main.id == id);
        for (former, present) in FORMER_IDS {
            assert!(exists(present), "{present}");
            assert!(!exists(former), "{former} is both a former and a present id");
        }
    }

    #[test]
    fn a_problem_of_source_and_run_shows_both() {
        let problems = problems();
        let tf32 = problems
            .iter()
            .find(|problem| problem.main.id == "tf32-off")
            .unwrap();
        assert!(tf32.run.is_some() && tf32.source.is_some());
        for (language, heading) in [
            (Language::English, "## In source code"),
            (Language::Chinese, "## 在源码中"),
        ] {
            let page = tf32.page(language);
            assert!(
                page.contains(heading) && page.contains("tf32-not-enabled"),
                "{page}"
            );
        }
    }
}
