//! `cargo xtask faults`: does the diagnosis name what was planted? Confusion table, precision, recall, time to first finding.
//!
//! `--records` (the default) diagnoses the committed records; `--live N` also runs N programs on this machine, `--all` every
//! program it can, `--run NAME…` only these. The held-out programs are scored apart. Below [`WANTED`] the task fails.
//! The records of `faults/lines` are scored by source line, see [`lines`].

mod gains;
mod label;
mod lines;
mod live;
mod score;

use crate::{Result, root};
use flatout_core::{Kind, Severity};
use flatout_record::{Record, RunData};
use label::Program;
use score::{Score, Verdict};
use std::path::Path;

/// Precision and recall that must be reached.
const WANTED: f64 = 0.95;

pub fn run(arguments: &[String]) -> Result {
    let programs = label::find(&root().join("faults"))?;
    let live = match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        [] | ["--records"] => 0,
        ["--all"] => usize::MAX,
        ["--live", count] => count.parse().map_err(|_| format!("`{count}` is no number"))?,
        ["--run", names @ ..] if !names.is_empty() => return run_named(&programs, names),
        _ => return Err("usage: cargo xtask faults [--records | --live N | --all | --run NAME…]".into()),
    };
    let mut verdicts = Vec::new();
    let mut missing = Vec::new();
    for program in &programs {
        match Record::open(&program.folder.join("record")) {
            Ok(record) => verdicts.push(judge(program, &record.load())),
            Err(_) => missing.push(program),
        }
    }
    if verdicts.is_empty() {
        return Err("there is no record to diagnose: run faults/record_all.sh first".into());
    }
    let planted = report("records", &verdicts);
    let (held_out, known): (Vec<&Program>, Vec<&Program>) =
        missing.iter().partition(|program| program.held_out);
    if !missing.is_empty() {
        let names: Vec<&str> = known.iter().map(|program| program.name.as_str()).collect();
        println!(
            "\nwithout a record, or changed since: {} held-out programs; {}",
            held_out.len(),
            names.join(", ")
        );
    }
    let by_line = lines::score(&root().join("faults"));
    planted?;
    by_line?;
    if live > 0 {
        run_live(live::able(&programs, live))
    } else {
        Ok(())
    }
}

/// Only these programs, and no records.
fn run_named(programs: &[Program], names: &[&str]) -> Result {
    let find = |name: &&str| {
        let found = programs.iter().find(|program| program.name == *name);
        found.ok_or_else(|| format!("there is no program `{name}` under faults/"))
    };
    run_live(names.iter().map(find).collect::<Result<Vec<_>>>()?)
}

fn run_live(programs: Vec<&Program>) -> Result {
    let outcome = live::run(&programs)?;
    report("live", &outcome.verdicts)?;
    if outcome.failed.is_empty() {
        Ok(())
    } else {
        Err(outcome.failed.join("; "))
    }
}

/// Prints the tables, and fails when the programs that may be tuned on fall short.
fn report(title: &str, verdicts: &[Verdict]) -> Result {
    let (held_out, known): (Vec<Verdict>, Vec<Verdict>) = verdicts.iter().cloned().partition(|v| v.held_out);
    let mut short = Vec::new();
    for (group, verdicts) in [("", known), (", held out", held_out)] {
        if verdicts.is_empty() {
            continue;
        }
        println!("\n{title}{group}: {} programs", verdicts.len());
        // What was planted in the held-out ones stays unseen: only their score is shown.
        if group.is_empty() {
            score::table(&verdicts);
        }
        let score = Score::of(&verdicts);
        println!("{}", score.line());
        // The held-out ones are never tuned on; what they show is said, not enforced.
        if group.is_empty() && score.below(WANTED) {
            short.push(format!("{title}: {}", score.line()));
        }
    }
    if short.is_empty() {
        Ok(())
    } else {
        Err(short.join("; "))
    }
}

/// Diagnoses one record and holds it against the label.
fn judge(program: &Program, data: &RunData) -> Verdict {
    let named = causes(data);
    let mut verdict = Verdict {
        name: program.name.clone(),
        held_out: program.held_out,
        wanted: program.label.causes.clone(),
        allowed: program.label.also.clone(),
        named,
        first_finding_s: None,
        rash: Vec::new(),
    };
    live_through(data, &mut verdict);
    verdict
}

/// The causes that count: of severity warning or worse.
fn causes(data: &RunData) -> Vec<String> {
    let findings = flatout_diagnose::diagnose(data).findings;
    let counts = |finding: &flatout_core::Finding| {
        finding.kind == Kind::Cause && finding.severity >= Severity::Warning
    };
    findings
        .into_iter()
        .filter(counts)
        .map(|finding| finding.rule)
        .collect()
}

/// Goes through the record as it grew: when the planted cause was first named, and what was named first that is wrong.
fn live_through(data: &RunData, verdict: &mut Verdict) {
    let Some(first_step) = data.steps.iter().find(|tick| tick.steps > 0).map(|tick| tick.t) else {
        return;
    };
    let found = verdict.misses().is_empty();
    for t in data.steps.iter().map(|tick| tick.t).filter(|t| *t > first_step) {
        let named = causes(&until(data, t));
        if named.is_empty() {
            continue;
        }
        if verdict.rash.is_empty() && verdict.first_finding_s.is_none() {
            let wrong = |rule: &&String| !verdict.wanted.contains(rule) && !verdict.allowed.contains(rule);
            verdict.rash = named.first().filter(wrong).cloned().into_iter().collect();
        }
        if found
            && verdict
                .wanted
                .first()
                .is_some_and(|wanted| named.contains(wanted))
        {
            verdict.first_finding_s = Some(t - first_step);
            return;
        }
    }
}

/// The record as it was at a moment.
fn until(data: &RunData, t: f64) -> RunData {
    let mut past = data.clone();
    past.steps.retain(|tick| tick.t <= t);
    past.samples.retain(|sample| sample.t <= t);
    past.events.retain(|event| event.t <= t);
    past.facts.retain(|fact| fact.t <= t);
    past.stacks.retain(|tick| tick.t <= t);
    past.windows.retain(|window| window.t <= t);
    past.info.exit = None;
    past
}

/// Reads a record and judges it; for programs that were just run.
fn judge_folder(program: &Program, folder: &Path) -> Result<Verdict> {
    let record = Record::open(folder).map_err(|error| format!("{}: {error}", program.name))?;
    Ok(judge(program, &record.load()))
}
