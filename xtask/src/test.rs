//! `cargo xtask test`: the one command that a fresh machine needs. The Rust test runner comes last, so that its
//! closing lines end the output.

use crate::{Result, cargo, faults, must, packages, root, venv};
use std::process::Command;

/// Fault programs that are run, not only diagnosed from their records; 15 to 20 s each.
const LIVE_FAULTS: &str = "10";

pub fn run(arguments: &[String]) -> Result {
    formatting()?;
    packages::install_missing(&std::env::var("FLATOUT_ALLOW_MISSING").unwrap_or_default())?;
    let python = venv::ensure()?;
    python_checks(&python)?;
    must(cargo().args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--quiet",
        "--",
        "-D",
        "warnings",
    ]))?;
    must(
        cargo()
            .args([
                "doc",
                "--workspace",
                "--no-deps",
                "--document-private-items",
                "--quiet",
            ])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )?;
    // Tests load the fake NVML as a library from the target folder and run the programs; both must be current.
    must(cargo().args(["build", "--workspace", "--quiet"]))?;
    python_tests(&python)?;
    // The diagnosis against what was planted: all records, and ten programs live.
    faults::run(&["--live".into(), LIVE_FAULTS.into()])?;
    rust_tests(&python, arguments)
}

/// Checks every tracked file by name: `cargo fmt` does not see modules that are declared inside macros.
fn formatting() -> Result {
    let listed = Command::new("git")
        .current_dir(root())
        .args(["ls-files", "-z", "*.rs"])
        .output()
        .map_err(|error| format!("git ls-files: {error}"))?;
    let files: Vec<&str> = std::str::from_utf8(&listed.stdout)
        .map_err(|error| format!("git ls-files: {error}"))?
        .split_terminator('\0')
        .collect();
    if !listed.status.success() || files.is_empty() {
        return Err("git ls-files found no Rust files".into());
    }
    println!("$ rustfmt --check: {} files", files.len());
    // Not `must`: it would print every name.
    let status = Command::new("rustfmt")
        .current_dir(root())
        .args(["--edition", "2024", "--check"])
        .args(files)
        .status()
        .map_err(|error| format!("rustfmt: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("rustfmt --check ended with {status}"))
    }
}

/// Which files and rules: `[tool.ruff]`, `[tool.mypy]` and `[tool.codespell]` of pyproject.toml.
fn python_checks(python: &std::path::Path) -> Result {
    let check = |words: &[&str]| must(Command::new(python).current_dir(root()).arg("-m").args(words));
    check(&["ruff", "check", "--quiet"])?;
    check(&["mypy", "--no-error-summary"])?;
    // Spelling, of everything that people write.
    let written = [
        "README.md",
        "CONTRIBUTING.md",
        "STYLE.md",
        "CHANGELOG.md",
        "SECURITY.md",
        ".github",
        "benches",
        "crates",
        "docs",
        "examples",
        "python",
        "xtask",
    ];
    check(&[&["codespell_lib"], &written[..]].concat())
}

fn python_tests(python: &std::path::Path) -> Result {
    must(
        Command::new(python)
            .current_dir(root())
            // Most tests wait for a program; cases of one file share a run, so they stay together.
            .args([
                "-m",
                "pytest",
                "-q",
                "-n",
                "auto",
                "--dist",
                "loadgroup",
                "--durations=10",
                "python/tests",
            ]),
    )
}

fn rust_tests(python: &std::path::Path, arguments: &[String]) -> Result {
    let nextest = cargo()
        .args(["nextest", "--version"])
        .output()
        .is_ok_and(|output| output.status.success());
    let words: &[&str] = if nextest {
        &["nextest", "run", "--workspace"]
    } else {
        &["test", "--workspace"]
    };
    must(
        cargo()
            .args(words)
            .args(arguments)
            .env("FLATOUT_TEST_PYTHON", python),
    )
}
