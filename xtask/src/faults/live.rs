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

/// Runs the programs this machine can run, at most `count`: first those that show the same anywhere.
pub fn run(programs: &[Program], count: usize) -> Result<Vec<Verdict>> {
    must(cargo().args(["build", "-q", "-p", "flatout", "-p", "flatout-fake-nvml"]))?;
    let python = venv::ensure()?;
    let has_gpu = Path::new("/dev/nvidiactl").exists();
    let mut able: Vec<&Program> = programs
        .iter()
        .filter(|program| has_gpu || !program.label.needs_gpu)
        .collect();
    able.sort_by_key(|program| (!program.label.anywhere, program.held_out));
    able.truncate(count);
    let mut verdicts = Vec::new();
    for (index, program) in able.iter().enumerate() {
        let shown = if program.held_out {
            "a held-out program"
        } else {
            &program.name
        };
        eprintln!("{} of {}: running {shown} …", index + 1, able.len());
        let mut run = once(program, &python)?;
        if !run.verdict.is_right() {
            eprintln!("  named {:?}; once more …", run.verdict.named);
            run = once(program, &python)?;
        }
        if run.verdict.is_right() || run.neighbours.is_empty() {
            let said = if run.verdict.is_right() { "right" } else { "wrong" };
            // What was planted in the held-out ones stays unseen.
            let named = if program.held_out {
                &[][..]
            } else {
                &run.verdict.named
            };
            eprintln!("  {said} {named:?}");
            verdicts.push(run.verdict);
        } else {
            // What is measured on CPUs that others use says nothing about the program.
            println!(
                "not judged: {shown}, twice disturbed ({})",
                run.neighbours.join(", ")
            );
        }
    }
    Ok(verdicts)
}

/// One run: what was said of the program, and what of the machine's neighbours.
struct Run {
    verdict: Verdict,
    neighbours: Vec<String>,
}

fn once(program: &Program, python: &Path) -> Result<Run> {
    let home = std::env::temp_dir().join(format!("flatout-faults-{}-{}", std::process::id(), program.name));
    let verdict = one(program, python, &home);
    let _ = fs::remove_dir_all(&home);
    let mut verdict = verdict?;
    let about_neighbours = |rule: &String| {
        flatout_diagnose::rule_infos().any(|info| info.id == rule && info.domain == NEIGHBOURS)
    };
    let planted = verdict.wanted.clone();
    let (neighbours, named) = std::mem::take(&mut verdict.named)
        .into_iter()
        .partition(|rule| about_neighbours(rule) && !planted.contains(rule));
    verdict.named = named;
    verdict.rash.retain(|rule| !about_neighbours(rule));
    Ok(Run { verdict, neighbours })
}

fn one(program: &Program, python: &Path, home: &Path) -> Result<Verdict> {
    let flatout = root().join("target/debug/flatout");
    let machine = program.folder.join("machine.sh");
    let mut command = Command::new(&flatout);
    if machine.exists() {
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
        .current_dir(root())
        .stdout(Stdio::null())
        .status()
        .map_err(|error| format!("flatout could not be started: {error}"))?;
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
    judge_folder(program, &folder)
}
