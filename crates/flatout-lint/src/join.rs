//! Joins a recorded run with the source: findings that the run confirmed come first with their measured cost, those
//! that its facts disprove are dropped. The command reads the record; only findings and plain facts come in here.

use crate::lint::Outcome;
use crate::report::Reported;
use flatout_core::{Finding, Fix, Kind, Linted, Place};
use flatout_vocabulary::canonical_id;
use std::collections::BTreeMap;

/// What a run showed.
#[derive(Debug, Default)]
pub struct Run {
    /// The findings of its diagnosis.
    pub findings: Vec<Finding>,
    /// Settings really in force, by key, every value seen: `loader.num_workers` → `["4", "0"]`.
    pub facts: BTreeMap<String, Vec<String>>,
    /// Lines where a value was read that lay in host memory: nothing was waited for.
    pub host_reads: Vec<Place>,
}

/// What the join did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    pub proved: usize,
    pub dropped: usize,
}

/// A problem of the source, the other problems of a run that prove it (the same problem proves itself), and the facts (key, value) that
/// disprove it.
type Link = (
    &'static str,
    &'static [&'static str],
    &'static [(&'static str, &'static str)],
);

const LINKS: &[Link] = &[
    (
        "loader-without-workers",
        &["loader-starved", "too-few-workers"],
        &[],
    ),
    ("workers-beyond-usable-cpus", &["input-cpus-exhausted"], &[]),
    ("pageable-copies", &[], &[("loader.pin_memory", "true")]),
    (
        "non-blocking-without-pinning",
        &["pageable-copies"],
        &[("loader.pin_memory", "true")],
    ),
    (
        "workers-respawned-each-epoch",
        &[],
        &[("loader.persistent_workers", "true")],
    ),
    (
        "dataframe-row-per-sample",
        &[
            "slow-batch-code",
            "loader-starved",
            "too-few-workers",
            "loader-without-workers",
        ],
        &[],
    ),
    (
        "file-reopened-in-getitem",
        &[
            "file-read-per-sample",
            "slow-batch-code",
            "loader-starved",
            "too-few-workers",
            "loader-without-workers",
        ],
        &[],
    ),
    (
        "element-loop-in-collate",
        &["slow-collate", "python-loop-per-sample", "slow-batch-code"],
        &[],
    ),
    (
        "mixed-precision-off",
        &["tensor-cores-idle"],
        &[("amp.dtype", "bf16"), ("amp.dtype", "fp16")],
    ),
    (
        "config-value-never-matches",
        &[
            "mixed-precision-inactive",
            "mixed-precision-off",
            "compile-not-applied",
        ],
        &[],
    ),
    (
        "config-key-never-read",
        &["compile-not-applied", "mixed-precision-inactive"],
        &[],
    ),
    ("tf32-off", &["tensor-cores-idle"], &[("tf32.matmul", "true")]),
    (
        "compile-never-used",
        &["host-bound-dispatch"],
        &[("compile.applied", "true")],
    ),
    ("cudnn-benchmark-off", &[], &[("cudnn.benchmark", "true")]),
    ("optimizer-unfused", &[], &[("optimizer.fused", "true")]),
    ("gradients-zeroed", &[], &[("zero_grad.set_to_none", "true")]),
    (
        "data-parallel",
        &[],
        &[("parallel.class", "DistributedDataParallel")],
    ),
    ("checkpoint-every-step", &["checkpoint-too-often"], &[]),
    ("evaluation-every-step", &["evaluation-too-often"], &[]),
    (
        "loss-kept-with-graph",
        &["gpu-memory-growing", "out-of-memory"],
        &[],
    ),
];

/// The rules on waiting for the GPU are proved line by line.
const SYNC_DOMAIN: &str = "sync";
const SYNC_PROOFS: [&str; 6] = [
    "sync-every-step",
    "hidden-synchronization",
    "metrics-every-step",
    "memory-released-every-step",
    "logging-every-step",
    "host-work-in-loop",
];
/// Findings that know the line but not what it does: there the lint's fix is the better one.
const GENERIC: [&str; 6] = [
    "slow-batch-code",
    "host-work-in-loop",
    "costly-operator",
    "loader-starved",
    "too-few-workers",
    "loader-without-workers",
];

/// Orders and thins out the findings of a lint by what a run showed.
pub fn join(outcome: &mut Outcome, run: &Run) -> Joined {
    let before = outcome.found.len();
    outcome.found.retain(|one| !is_disproved(one, run));
    let mut joined = Joined {
        proved: 0,
        dropped: before - outcome.found.len(),
    };
    let mut proved: Vec<(bool, Reported)> = Vec::new();
    for mut one in outcome.found.drain(..) {
        let proof = proof(&one, run);
        if let Some(proof) = proof {
            joined.proved += 1;
            one.finding.gain = proof.gain;
            one.finding.evidence.clone_from(&proof.evidence);
            one.finding.severity = one.finding.severity.max(proof.severity);
        }
        proved.push((proof.is_some(), one));
    }
    // The measured ones first, the costliest of them first; the rest stays in its order.
    let cost = |one: &Reported| one.finding.gain.map_or(1.0, |gain| gain.high);
    proved.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| cost(&b.1).total_cmp(&cost(&a.1))));
    outcome.found = proved.into_iter().map(|(_, one)| one).collect();
    joined
}

/// The other way around: notes in the findings of a run what the lint reports of the lines that cost its time.
pub fn annotate(findings: &mut [Finding], costly: &[(Place, Vec<String>)]) {
    for finding in findings.iter_mut().filter(|finding| finding.kind == Kind::Cause) {
        for (place, rules) in costly {
            for rule in rules {
                let linted = Linted {
                    rule: canonical_id(rule),
                    place: place.clone(),
                };
                // The same problem is reported already, with its line.
                let news = linted.rule != finding.rule && !finding.lint.contains(&linted);
                if news && is_about(&linted.rule, place, finding) {
                    finding.lint.push(linted);
                }
            }
        }
        if GENERIC.contains(&finding.rule.as_str()) {
            add_fix(finding);
        }
    }
}

/// The lint names what a generic finding only points at: its fix comes first.
fn add_fix(finding: &mut Finding) {
    let Some(linted) = finding.lint.first() else {
        return;
    };
    let known = crate::rules::find(&linted.rule);
    if let Some(say) = known.and_then(|rule| rule.info.section("Fix")) {
        let place = Some(linted.place.clone());
        finding.fixes.insert(0, Fix::Code { place, say });
    }
}

/// Whether a lint rule at a line is about what a run's finding is about.
fn is_about(rule: &str, place: &Place, finding: &Finding) -> bool {
    let here = || finding.places.iter().any(|one| same_line(one, place));
    if domain(rule) == SYNC_DOMAIN {
        return SYNC_PROOFS.contains(&finding.rule.as_str()) && here();
    }
    // What is wrong with a loader as a whole may be wrong in the code of one sample.
    let of_sample = ["-in-getitem", "-in-collate", "-per-sample"]
        .iter()
        .any(|end| rule.ends_with(end));
    let whole = of_sample && (finding.rule.contains("worker") || finding.rule == "loader-starved");
    proves(finding, rule) && (whole || here())
}

fn link(rule: &str) -> Option<&'static Link> {
    LINKS.iter().find(|(id, ..)| *id == rule)
}

/// Whether a run's finding shows what a lint rule expects.
fn proves(finding: &Finding, rule: &str) -> bool {
    let proofs = link(rule).map_or(&[][..], |(_, proofs, _)| proofs);
    finding.rule == rule || proofs.contains(&finding.rule.as_str())
}

fn domain(rule: &str) -> &'static str {
    crate::rules::find(rule).map_or("", |rule| rule.info.domain)
}

fn proof<'r>(one: &Reported, run: &'r Run) -> Option<&'r Finding> {
    if domain(&one.finding.rule) == SYNC_DOMAIN {
        return run.findings.iter().find(|finding| {
            SYNC_PROOFS.contains(&finding.rule.as_str())
                && finding.places.iter().any(|place| same_line(place, one.place()))
        });
    }
    run.findings
        .iter()
        .find(|finding| proves(finding, &one.finding.rule))
}

fn is_disproved(one: &Reported, run: &Run) -> bool {
    if domain(&one.finding.rule) == SYNC_DOMAIN {
        return run.host_reads.iter().any(|place| same_line(place, one.place()));
    }
    let facts = link(&one.finding.rule).map_or(&[][..], |(_, _, facts)| facts);
    // Every value must agree: with two loaders, one of which pins, nothing is disproved.
    facts.iter().any(|(key, value)| {
        let seen = run.facts.get(*key).map_or(&[][..], Vec::as_slice);
        !seen.is_empty() && seen.iter().all(|one| one == value)
    })
}

/// A record names files as the program saw them, often by their full path.
fn same_line(recorded: &Place, linted: &Place) -> bool {
    let linted_file = linted.file.strip_prefix(".").unwrap_or(&linted.file);
    let same_file = recorded.file.ends_with(linted_file) || linted_file.ends_with(&recorded.file);
    recorded.line == linted.line && same_file
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_core::{Gain, Message, Severity};

    fn lint(code: &str) -> Outcome {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.py");
        std::fs::write(&path, code).unwrap();
        crate::lint(&[path], &crate::Settings::default()).unwrap()
    }

    const CODE: &str = "import torch\nopt = torch.optim.AdamW(model.cuda().parameters())\nfor x in loader:\n    loss = model(x)\n    loss.backward()\n    total.append(loss.item())\n    best = loss.item()\n";

    #[test]
    fn proved_first_disproved_gone_the_rest_kept() {
        let mut outcome = lint(CODE);
        let before = outcome.found.len();
        let mut sync = Finding::new("sync-every-step", Severity::Critical, Message::verbatim("x"));
        sync.places.push(Place::new("/somewhere/else/train.py", 6));
        // The record's path is another one: only the name and the line agree.
        outcome
            .found
            .iter_mut()
            .for_each(|one| one.finding.places[0].file = "train.py".into());
        sync.gain = Some(Gain::estimate(1.2, 1.4));
        let blocked = flatout_core::Evidence::new(Message::verbatim("time blocked"), 25.4, "%");
        sync.evidence.push(blocked);
        let run = Run {
            findings: vec![sync],
            facts: BTreeMap::from([("optimizer.fused".to_owned(), vec!["true".to_owned()])]),
            host_reads: vec![Place::new("train.py", 7)],
        };
        let joined = join(&mut outcome, &run);
        assert_eq!(
            joined,
            Joined {
                proved: 1,
                dropped: 2
            }
        );
        assert_eq!(outcome.found.len(), before - 2);
        assert_eq!(
            (
                outcome.found[0].finding.rule.as_str(),
                outcome.found[0].place().line
            ),
            ("item-in-step", 6)
        );
        assert!(outcome.found[0].finding.gain.is_some());
        let language = flatout_core::Language::English;
        let text = crate::format::text(&outcome, language, crate::format::Paint(false));
        assert!(text.contains("measured: time blocked 25.4%"), "{text}");
    }

    #[test]
    fn a_runs_finding_knows_what_the_lint_reports_of_its_line() {
        let finding = |rule: &str, line: u32| {
            let mut finding = Finding::new(rule, Severity::Critical, Message::verbatim("x"));
            finding.places.push(Place::new("/home/me/train.py", line));
            finding
        };
        let mut findings = [
            finding("slow-batch-code", 36),
            finding("loader-without-workers", 60),
            finding("python-loop-in-step", 36),
            finding("sync-every-step", 70),
        ];
        let costly = [
            (
                Place::new("/home/me/train.py", 36),
                vec!["file-reopened-in-getitem".to_owned()],
            ),
            (
                Place::new("/home/me/train.py", 60),
                vec!["loader-without-workers".to_owned()],
            ),
            (
                Place::new("/home/me/train.py", 71),
                vec!["item-in-step".to_owned()],
            ),
        ];
        annotate(&mut findings, &costly);
        let rules = |at: usize| -> Vec<&str> {
            let lint = findings[at].lint.iter();
            lint.map(|linted| linted.rule.as_str()).collect()
        };
        assert_eq!(rules(0), ["file-reopened-in-getitem"]);
        assert_eq!(
            rules(1),
            ["file-reopened-in-getitem"],
            "its own problem is not news"
        );
        assert!(rules(2).is_empty() && rules(3).is_empty());
        assert!(matches!(&findings[0].fixes[0], Fix::Code { say, .. } if !say.zh.is_empty()));
    }

    #[test]
    fn an_empty_run_changes_nothing() {
        let mut outcome = lint(CODE);
        let text = |outcome: &Outcome| {
            crate::format::text(
                outcome,
                flatout_core::Language::English,
                crate::format::Paint(false),
            )
        };
        let before = text(&outcome);
        assert!(
            before.contains("item-in-step") && before.contains("optimizer-unfused"),
            "{before}"
        );
        assert_eq!(join(&mut outcome, &Run::default()), Joined::default());
        assert_eq!(before, text(&outcome));
    }

    /// The ids in the sources of the run's rules, a crate that this one does not use.
    fn ids_of_run_rules() -> Vec<String> {
        let rules = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../flatout-diagnose/src/rules");
        let mut ids = Vec::new();
        for domain in std::fs::read_dir(rules)
            .unwrap()
            .flatten()
            .filter(|entry| entry.path().is_dir())
        {
            for file in std::fs::read_dir(domain.path()).unwrap().flatten() {
                let source = std::fs::read_to_string(file.path()).unwrap();
                let id = source
                    .lines()
                    .find_map(|line| line.strip_prefix("pub const ID: &str = \""));
                ids.extend(id.map(|id| id.trim_end_matches("\";").to_owned()));
            }
        }
        assert!(ids.len() > 60, "{ids:?}");
        ids
    }

    #[test]
    fn every_link_names_rules() {
        let of_runs = ids_of_run_rules();
        let proofs = LINKS.iter().flat_map(|(_, proofs, _)| proofs.iter());
        for id in proofs.chain(&SYNC_PROOFS) {
            assert!(of_runs.iter().any(|known| known == id), "{id}");
        }
        for (rule, ..) in LINKS {
            assert!(crate::rules::find(rule).is_some(), "{rule}");
        }
    }
}
