//! What rule tests use: a project out of a few texts, one rule run on it, its fixes applied.

use crate::config::{self, Format};
use crate::project::{Facts, Project};
use crate::report::{Report, Reported};
use crate::rules::{Check, Rule};
use crate::source::Source;
use crate::{fix, python, rules};
use flatout_core::Fix;
use std::path::{Path, PathBuf};

/// The files of a little project: path and text.
pub type Files<'a> = &'a [(&'a str, &'a str)];

pub fn project(files: Files<'_>) -> Project {
    let mut modules = Vec::new();
    let mut documents = Vec::new();
    for (path, text) in files {
        let source = Source::new(PathBuf::from(path), (*text).to_owned());
        match Format::of(Path::new(path)) {
            Some(format) => documents.push(config::parse(source, format)),
            None => {
                let parsed = python::parse(text);
                modules.push((source, parsed));
            }
        }
    }
    Project::new(modules, documents, Vec::new(), Facts::default())
}

/// What a rule reports, with the lines. Every fix it offers is tried: the fixed files parse, and the finding is gone.
#[track_caller]
pub fn findings_of(id: &str, files: Files<'_>) -> Vec<Reported> {
    let rule = rules::find(id).unwrap_or_else(|| panic!("no rule {id}"));
    let found = run(rule, &project(files));
    for one in &found {
        assert_eq!(one.finding.rule, id);
        assert!(one.finding.severity <= rule.info.severity, "{:?}", one.finding);
        // A file that does not parse has nothing to fix but its syntax.
        let advised = !one.finding.fixes.is_empty() || rule.info.domain == "source";
        assert!(advised, "no advice: {:?}", one.finding);
    }
    expect_as_recorded(id, &found);
    let with_fix = found
        .iter()
        .filter(|one| !fix::edits_of(&one.finding, true).is_empty())
        .count();
    if with_fix > 0 {
        let fixed = fixed(id, files);
        let borrowed: Vec<(&str, &str)> = fixed
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        let project = project(&borrowed);
        for module in &project.modules {
            assert!(
                module.parsed.errors.is_empty(),
                "fixed source does not parse:\n{}",
                module.source.text
            );
        }
        let left = run(rule, &project);
        assert_eq!(
            left.len(),
            found.len() - with_fix,
            "still found after the fix: {left:#?}\n{fixed:#?}"
        );
        assert_eq!(
            self::fixed(id, &borrowed),
            fixed,
            "a second fix changes something"
        );
    }
    found
}

/// In a test named `fires…`: what is found, line by line, against `tests/fires/<rule>.<test>.txt`. `FLATOUT_BLESS=1` writes the file, to be
/// read before it is kept.
#[track_caller]
fn expect_as_recorded(id: &str, found: &[Reported]) {
    thread_local!(static CALLS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) });
    let thread = std::thread::current();
    let test = thread.name().and_then(|name| name.rsplit("::").next());
    let Some(test) = test.filter(|test| test.starts_with("fires")) else {
        return;
    };
    let call = CALLS.replace(CALLS.get() + 1);
    let shown: String = found.iter().map(described).collect();
    let path = format!("{}/tests/fires/{id}.{test}.txt", env!("CARGO_MANIFEST_DIR"));
    let recorded = std::fs::read_to_string(&path).unwrap_or_default();
    // One part for each call of the test, after a line of its own.
    let mut parts: Vec<&str> = recorded.split("---\n").collect();
    if std::env::var_os("FLATOUT_BLESS").is_some() {
        parts.truncate(call);
        parts.push(&shown);
        std::fs::write(&path, parts.join("---\n")).unwrap();
        return;
    }
    let expected = parts.get(call).copied().unwrap_or_default();
    assert_eq!(shown, expected, "left: what {id} finds; right: {path}");
}

/// Location, severity, title and fixes.
fn described(one: &Reported) -> String {
    let finding = &one.finding;
    let place = one.place();
    let fixes = finding.fixes.iter().map(|fix| match fix {
        Fix::Setting { setting, to, .. } => format!("  set {setting} to {to}\n"),
        Fix::Code { say, .. } => format!("  do: {}\n", say.en),
        Fix::Edits { edits, safe, say } => {
            let safe = if *safe { "safe" } else { "unsafe" };
            format!("  {safe} edits of {} places: {}\n", edits.len(), say.en)
        }
        Fix::Command { command, .. } => format!("  run {command}\n"),
        Fix::Refused { setting, .. } => format!("  not {setting}\n"),
    });
    let severity = serde_json::to_string(&finding.severity).unwrap();
    let severity = severity.trim_matches('"');
    format!("{place} {severity}: {}\n", finding.title.en) + &fixes.collect::<String>()
}

/// What a rule reports when something is stated about the machine.
pub fn findings_with(id: &str, files: Files<'_>, facts: Facts) -> Vec<Reported> {
    let Some(rule) = rules::find(id) else {
        return Vec::new();
    };
    let mut project = project(files);
    project.facts = facts;
    run(rule, &project)
}

/// The files after all fixes of a rule, unsafe ones too.
pub fn fixed(id: &str, files: Files<'_>) -> Vec<(String, String)> {
    let Some(rule) = rules::find(id) else {
        return Vec::new();
    };
    let found = run(rule, &project(files));
    let plan = fix::plan(&found, |_| None, true);
    files
        .iter()
        .map(|(path, text)| {
            let edits = plan.edits.get(Path::new(path)).map_or(&[][..], Vec::as_slice);
            ((*path).to_owned(), fix::apply(text, edits))
        })
        .collect()
}

/// The text of one file after all fixes of a rule.
pub fn edits_of(id: &str, text: &str) -> String {
    fixed(id, &[("train.py", text)]).remove(0).1
}

/// What one rule finds in a project.
pub fn run(rule: &Rule, project: &Project) -> Vec<Reported> {
    let mut report = Report::new(&rule.info);
    match rule.check {
        Check::Module(check) => project
            .module_ids()
            .for_each(|module| check(project, module, &mut report)),
        Check::Project(check) => check(project, &mut report),
    }
    report.list
}
