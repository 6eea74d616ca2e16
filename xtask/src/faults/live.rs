//! Running the programs on this machine under `flatout run`, one after the other.
//!
//! A machine has neighbours: what the diagnosis says of them is true of it, not of the program, and does not count here. A
//! program that came out wrong is run once more; one that came out wrong twice while others used its CPUs is not judged.

use super::judge_folder;
use super::label::Program;
use super::score::Verdict;
use crate::{Result, cargo, must, root, venv};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Rules about the machine that runs the program, not about the program.
const NEIGHBOURS: &str = "neighbours";

/// What a `machine.sh` answers where the machine cannot be made so (no swap without root, say), as automake's tests do.
const NOT_HERE: i32 = 77;

#[derive(Default)]
pub struct Outcome {
    pub verdicts: Vec<Verdict>,
    /// Programs that did not end as their labels say, with the reason.
    pub failed: Vec<String>,
}

/// The programs this machine can run, at most `count`: first those that show the same anywhere.
pub fn able(programs: &[Program], count: usize) -> Vec<&Program> {
    let has_gpu = Path::new("/dev/nvidiactl").exists();
    let mut able: Vec<&Program> = programs
        .iter()
        .filter(|program| has_gpu || !program.label.needs_gpu)
        .collect();
    able.sort_by_key(|program| (!program.label.anywhere, program.held_out));
    able.truncate(count);
    able
}

/// Runs programs, each until it came out right, but twice at most.
pub fn run(programs: &[&Program]) -> Result<Outcome> {
    must(cargo().args(["build", "-q", "-p", "flatout", "-p", "flatout-fake-nvml"]))?;
    let python = venv::ensure()?;
    let mut outcome = Outcome::default();
    for (index, program) in programs.iter().enumerate() {
        // What was planted in the held-out ones stays unseen.
        let shown = if program.held_out {
            "a held-out program"
        } else {
            &program.name
        };
        eprintln!("{} of {}: running {shown} …", index + 1, programs.len());
        match judged(program, shown, &python) {
            Ok(Some(verdict)) => {
                let said = if verdict.is_right() { "right" } else { "wrong" };
                eprintln!("  {said} {:?}", told(program, &verdict));
                outcome.verdicts.push(verdict);
            }
            Ok(None) => {}
            Err(reason) => {
                eprintln!("  failed: {reason}");
                outcome.failed.push(reason);
            }
        }
    }
    Ok(outcome)
}

/// A verdict, unless this machine or its neighbours forbid one.
fn judged(program: &Program, shown: &str, python: &Path) -> Result<Option<Verdict>> {
    let Some(mut run) = once(program, python)? else {
        println!("not judged: {shown}, this machine cannot be made as it needs it");
        return Ok(None);
    };
    if !run.verdict.is_right() {
        eprintln!("  named {:?}; once more …", told(program, &run.verdict));
        let Some(again) = once(program, python)? else {
            return Ok(None);
        };
        run = again;
    }
    if run.verdict.is_right() || run.neighbours.is_empty() {
        return Ok(Some(run.verdict));
    }
    // What is measured on CPUs that others use says nothing about the program.
    println!(
        "not judged: {shown}, twice disturbed ({})",
        run.neighbours.join(", ")
    );
    Ok(None)
}

fn told<'a>(program: &Program, verdict: &'a Verdict) -> &'a [String] {
    if program.held_out { &[] } else { &verdict.named }
}

/// One run: what was said of the program, and what of the machine's neighbours.
struct Run {
    verdict: Verdict,
    neighbours: Vec<String>,
}

fn once(program: &Program, python: &Path) -> Result<Option<Run>> {
    let home = std::env::temp_dir().join(format!("flatout-faults-{}-{}", std::process::id(), program.name));
    let verdict = one(program, python, &home);
    let _ = fs::remove_dir_all(&home);
    let Some(mut verdict) = verdict? else {
        return Ok(None);
    };
    let about_neighbours = |rule: &String| {
        flatout_diagnose::rule_infos().any(|info| info.id == rule && info.domain == NEIGHBOURS)
    };
    let planted = verdict.wanted.clone();
    let (neighbours, named) = std::mem::take(&mut verdict.named)
        .into_iter()
        .partition(|rule| about_neighbours(rule) && !planted.contains(rule));
    verdict.named = named;
    verdict.rash.retain(|rule| !about_neighbours(rule));
    Ok(Some(Run { verdict, neighbours }))
}

fn one(program: &Program, python: &Path, home: &Path) -> Result<Option<Verdict>> {
    let flatout = root().join("target/debug/flatout");
    let machine = program.folder.join("machine.sh");
    let mut command = Command::new(&flatout);
    let made = machine.exists();
    if made {
        command = Command::new(machine);
        command.arg(&flatout).env("PYTHON", python);
    }
    if !program.label.needs_gpu {
        // As in the records: no GPU in sight.
        command.env("CUDA_VISIBLE_DEVICES", "");
    }
    let status = command
        .args(["run", "--quiet", "--name", &program.name, "--"])
        .arg(python)
        .arg(program.folder.join("train.py"))
        .env("FLATOUT_HOME", home)
        .env("PYTHONPATH", root().join("python"))
        .current_dir(root())
        .stdout(Stdio::null())
        .status()
        .map_err(|error| format!("flatout could not be started: {error}"))?;
    if made && status.code() == Some(NOT_HERE) {
        return Ok(None);
    }
    if status.code() != Some(program.label.exit) {
        return Err(format!("{} ended with {status}", program.name));
    }
    let runs =
        fs::read_dir(home.join("runs")).map_err(|error| format!("{}: no record: {error}", program.name))?;
    let folder = runs
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.join("run.json").exists());
    let folder = folder.ok_or_else(|| format!("{}: no record", program.name))?;
    judge_folder(program, &folder).map(Some)
}
