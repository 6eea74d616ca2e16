//! Starts flatout, kills it, and looks for what is left of it.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// On a busy machine a process that was asked to end may need a while.
const PATIENCE: Duration = Duration::from_secs(60);

/// flatout with a home and a cache of its own. Every process that comes of it has the mark in its environment.
pub fn flatout(folder: &Path, arguments: &[&str]) -> Command {
    // Hours of kills with one build, while others are made.
    let program = std::env::var_os("FLATOUT_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_flatout").into());
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .env("LANG", "C")
        .env_remove("LC_ALL")
        .env("FLATOUT_HOME", folder.join("home"))
        .env("FLATOUT_CACHE", folder.join("cache"))
        .env("FLATOUT_TEST_MARK", mark(folder));
    command
}

fn mark(folder: &Path) -> String {
    folder.display().to_string()
}

pub fn output(folder: &Path, arguments: &[&str]) -> Output {
    flatout(folder, arguments).output().unwrap()
}

/// Runs to the end, which must be a good one.
pub fn completes(folder: &Path, arguments: &[&str]) -> Duration {
    let begun = Instant::now();
    let output = output(folder, arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    begun.elapsed()
}

/// Kills flatout after this time; whether it was still running. Nothing of it goes on running, and nothing is left in memory.
pub fn killed(folder: &Path, arguments: &[&str], after: Duration) -> bool {
    let mut child = flatout(folder, arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let pid = child.id();
    std::thread::sleep(after);
    let running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    until(|| survivors(folder), "is left running");
    // The guard removes the run's folder; before it was there, the next start does.
    if !shared_memory(pid).is_empty() {
        std::thread::sleep(Duration::from_secs(1));
    }
    if !shared_memory(pid).is_empty() {
        completes(folder, &["run", "--quiet", "--", "true"]);
    }
    until(|| shared_memory(pid), "is left behind");
    running
}

fn until(left: impl Fn() -> Vec<String>, what: &str) {
    let begun = Instant::now();
    loop {
        let left = left();
        if left.is_empty() {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: {left:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The processes with the mark, by their command lines.
fn survivors(folder: &Path) -> Vec<String> {
    let wanted = format!("FLATOUT_TEST_MARK={}", mark(folder));
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|entry| {
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|one| one == wanted.as_bytes())
        })
        .map(|entry| {
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            let state = status
                .lines()
                .find(|line| line.starts_with("State"))
                .unwrap_or_default();
            format!(
                "{} {state} {}",
                entry.path().display(),
                String::from_utf8_lossy(&command)
            )
        })
        .collect()
}

/// The folders of a process for its rings.
fn shared_memory(pid: u32) -> Vec<String> {
    let owner = format!("-{pid}-");
    [PathBuf::from("/dev/shm"), std::env::temp_dir()]
        .iter()
        .flat_map(|place| fs::read_dir(place).into_iter().flatten().flatten())
        .map(|entry| entry.path().display().to_string())
        .filter(|path| path.contains("/flatout-") && path.contains(&owner))
        .collect()
}

/// Temporary files below a folder.
pub fn leftovers(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.contains(".flatout-tmp-") || name.ends_with(".lock") || name.ends_with(".new") {
                found.push(entry.path());
            } else if entry.path().is_dir() {
                folders.push(entry.path());
            }
        }
    }
    found
}
