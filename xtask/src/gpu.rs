//! `cargo xtask gpu`: a folder with everything that a GPU machine without Rust needs, and one script there that runs parity,
//! then the benchmarks beside their peers, and leaves a result file.

use crate::{Result, cargo, must, root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The command line must stay small enough to be copied anywhere.
const LARGEST_BYTES: u64 = 60 << 20;
const SCRIPT: &str = include_str!("gpu/run.sh");

pub fn run(_: &[String]) -> Result {
    let folder = root().join("target/gpu");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let program = built(&["build", "-p", "flatout", "--bin", "flatout"], "flatout")?;
    let bench = built(
        &["build", "-p", "flatout-engine", "--example", "cuda_bench"],
        "cuda_bench",
    )?;
    let tests = built(
        &["test", "-p", "flatout-engine", "--test", "cuda", "--no-run"],
        "cuda",
    )?;
    let golden = built(
        &["test", "-p", "flatout-engine", "--test", "golden", "--no-run"],
        "golden",
    )?;
    let curves = built(
        &["test", "-p", "flatout-train", "--test", "pytorch", "--no-run"],
        "pytorch",
    )?;
    let programs = [
        (program, "flatout"),
        (bench, "cuda_bench"),
        (tests, "parity"),
        (golden, "golden"),
        (curves, "curves"),
    ];
    for (source, name) in programs {
        let size = stripped(&source, &folder.join(name))?;
        eprintln!("{name}: {:.1} MB", size as f64 / 1e6);
        if size > LARGEST_BYTES {
            return Err(format!("{name} has {size} bytes, more than {LARGEST_BYTES}"));
        }
    }
    copy(
        &root().join("benches/peers/torch_best.py"),
        &folder.join("torch_best.py"),
    )?;
    let script = folder.join("run.sh");
    fs::write(&script, SCRIPT).map_err(|error| format!("{}: {error}", script.display()))?;
    eprintln!(
        "copy {} to the GPU machine and run there: bash gpu/run.sh",
        folder.display()
    );
    Ok(())
}

/// Builds one target with optimisation and gives the program that cargo made of it.
fn built(arguments: &[&str], target: &str) -> Result<PathBuf> {
    let mut command = cargo();
    command
        .args(arguments)
        .args(["--release", "--message-format=json-render-diagnostics"]);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo could not be started: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "cargo {} ended with {}",
            arguments.join(" "),
            output.status
        ));
    }
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let messages = lines
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut programs = messages.filter(|message| message["target"]["name"] == target);
    let found = programs.find_map(|message| message["executable"].as_str().map(PathBuf::from));
    found.ok_or_else(|| format!("cargo named no program for {target}"))
}

/// Copies a program without its symbols; gives its size.
fn stripped(source: &Path, target: &Path) -> Result<u64> {
    copy(source, target)?;
    must(Command::new("strip").arg(target))?;
    let metadata = fs::metadata(target).map_err(|error| format!("{}: {error}", target.display()))?;
    Ok(metadata.len())
}

fn copy(source: &Path, target: &Path) -> Result {
    let copied = fs::copy(source, target);
    copied
        .map(drop)
        .map_err(|error| format!("{} to {}: {error}", source.display(), target.display()))
}
