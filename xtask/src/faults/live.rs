//! Running the programs on this machine under `flatout run`, one after the other.

use super::judge_folder;
use super::label::Program;
use super::score::Verdict;
use crate::{Result, cargo, must, root, venv};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs the programs this machine can run, at most `count`; spread over the list, so that few of them show many kinds.
pub fn run(programs: &[Program], count: usize) -> Result<Vec<Verdict>> {
    must(cargo().args(["build", "-q", "-p", "flatout"]))?;
    let python = venv::ensure()?;
    let has_gpu = Path::new("/dev/nvidiactl").exists();
    let able: Vec<&Program> = programs
        .iter()
        .filter(|program| has_gpu || !program.label.needs_gpu)
        .collect();
    let every = (able.len() / count.max(1)).max(1);
    let mut verdicts = Vec::new();
    for program in able.iter().step_by(every).take(count) {
        eprintln!("running {} …", program.name);
        let home =
            std::env::temp_dir().join(format!("flatout-faults-{}-{}", std::process::id(), program.name));
        let verdict = one(program, &python, &home);
        let _ = fs::remove_dir_all(&home);
        verdicts.push(verdict?);
    }
    Ok(verdicts)
}

fn one(program: &Program, python: &Path, home: &Path) -> Result<Verdict> {
    let status = Command::new(root().join("target/debug/flatout"))
        .args(["run", "--quiet", "--name", &program.name, "--"])
        .arg(python)
        .arg(program.folder.join("train.py"))
        .env("FLATOUT_HOME", home)
        .current_dir(root())
        .stdout(Stdio::null())
        .status()
        .map_err(|error| format!("flatout could not be started: {error}"))?;
    if !status.success() {
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
