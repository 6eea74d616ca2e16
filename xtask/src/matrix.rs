//! `cargo xtask matrix`: the Python tests, of which most compare a program alone with the same under `flatout run`, on every Python found and every
//! PyTorch named here that can be installed for it.
//!
//! An environment with its CUDA libraries takes 5 GB. Those libraries are the same for every Python, so the environments of a PyTorch share
//! them, and all of a PyTorch are removed when it is done, unless `--keep` is given. A Python that is not found fails the matrix, unless
//! `--allow-missing` is given.

use crate::venv::cache;
use crate::{Result, must, root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const USAGE: &str =
    "usage: cargo xtask matrix [--keep] [--allow-missing] [--torch VERSION] [--python VERSION]";
const PYTHONS: [&str; 6] = ["3.14", "3.13", "3.12", "3.11", "3.10", "3.9"];

/// A PyTorch, the Pythons it has wheels for, and the NumPy that was current with it.
struct Torch {
    version: &'static str,
    pythons: &'static [&'static str],
    numpy: &'static str,
}

const TORCHES: [Torch; 3] = [
    Torch {
        version: "2.11.0",
        pythons: &["3.14", "3.13", "3.12", "3.11", "3.10"],
        numpy: "numpy",
    },
    Torch {
        version: "2.8.0",
        pythons: &["3.13", "3.12", "3.11", "3.10", "3.9"],
        numpy: "numpy",
    },
    Torch {
        version: "2.4.1",
        pythons: &["3.12", "3.11", "3.10", "3.9"],
        numpy: "numpy<2.3",
    },
];

/// What torch needs besides CUDA, and the tests.
const PURE: [&str; 10] = [
    "filelock",
    "typing-extensions",
    "sympy",
    "networkx",
    "jinja2",
    "fsspec",
    "setuptools",
    "pytest",
    "jsonschema",
    "cloudpickle",
];

#[derive(Default)]
struct Arguments {
    keep: bool,
    allow_missing: bool,
    torch: Option<String>,
    python: Option<String>,
}

pub fn run(arguments: &[String]) -> Result {
    let arguments = Arguments::parse(arguments)?;
    must(crate::cargo().args(["build", "-p", "flatout", "--quiet"]))?;
    let base = cache()?.join("matrix");
    fs::create_dir_all(&base).map_err(|error| format!("{}: {error}", base.display()))?;
    let mut rows = Vec::new();
    for torch in &TORCHES {
        if arguments
            .torch
            .as_deref()
            .is_none_or(|wanted| wanted == torch.version)
        {
            rows.extend(one_torch(torch, &arguments, &base));
        }
    }
    for (python, torch, outcome) in &rows {
        let outcome = match outcome {
            Outcome::Passed => "passed",
            Outcome::Failed(reason) => reason,
            Outcome::Missing => "NOT TESTED: this Python was not found",
        };
        println!("Python {python:<5} PyTorch {torch:<7} {outcome}");
    }
    judged(&rows, arguments.allow_missing)
}

/// How a pair of a Python and a PyTorch came out.
enum Outcome {
    Passed,
    Failed(String),
    Missing,
}

type Row = (&'static str, &'static str, Outcome);

fn judged(rows: &[Row], allow_missing: bool) -> Result {
    let count = |is: fn(&Outcome) -> bool| rows.iter().filter(|(.., outcome)| is(outcome)).count();
    let failed = count(|outcome| matches!(outcome, Outcome::Failed(_)));
    let missing = count(|outcome| matches!(outcome, Outcome::Missing));
    match (rows.len(), failed, missing) {
        (0, ..) => Err("no Python and PyTorch of the list have these versions".into()),
        (all, 0, missing) if missing == all => Err("no Python of the list was found".into()),
        (_, 0, 0) => Ok(()),
        (_, 0, _) if allow_missing => Ok(()),
        (all, 0, missing) => Err(format!(
            "{missing} of {all} were not tested; install these Pythons, or give --allow-missing"
        )),
        (all, failed, missing) => Err(format!("{failed} of {all} failed, {missing} were not tested")),
    }
}

fn one_torch(torch: &Torch, arguments: &Arguments, base: &Path) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut made = Vec::new();
    for minor in PYTHONS.iter().filter(|minor| torch.pythons.contains(minor)) {
        if arguments.python.as_deref().is_some_and(|wanted| wanted != *minor) {
            continue;
        }
        let Some(python) = find(minor) else {
            rows.push((*minor, torch.version, Outcome::Missing));
            continue;
        };
        let folder = base.join(format!("py{minor}-torch{}", torch.version));
        let result = install(&python, torch, &folder, made.first()).and_then(|()| tests(&folder));
        made.push(folder);
        let outcome = result.map_or_else(Outcome::Failed, |()| Outcome::Passed);
        rows.push((*minor, torch.version, outcome));
    }
    if !arguments.keep {
        for folder in made {
            let _ = fs::remove_dir_all(folder);
        }
    }
    rows
}

impl Arguments {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut parsed = Self::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--keep" => parsed.keep = true,
                "--allow-missing" => parsed.allow_missing = true,
                "--torch" => parsed.torch = Some(rest.next().ok_or(USAGE)?.clone()),
                "--python" => parsed.python = Some(rest.next().ok_or(USAGE)?.clone()),
                _ => return Err(USAGE.into()),
            }
        }
        Ok(parsed)
    }
}

/// `python3.12` of the path, or pyenv's newest 3.12.
fn find(minor: &str) -> Option<PathBuf> {
    let works = |python: &Path| {
        let output = Command::new(python).args(["-c", "import venv"]).output();
        output.is_ok_and(|output| output.status.success())
    };
    let home = std::env::var_os("PYENV_ROOT")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")))?;
    let prefix = format!("{minor}.");
    let mut installed: Vec<PathBuf> = fs::read_dir(home.join("versions"))
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
        .map(|entry| entry.path().join("bin/python"))
        .collect();
    installed.sort();
    let named = PathBuf::from(format!("python{minor}"));
    installed
        .into_iter()
        .rev()
        .chain([named])
        .find(|python| works(python))
}

/// `first`: an environment of the same PyTorch, whose CUDA libraries are used.
fn install(python: &Path, torch: &Torch, folder: &Path, first: Option<&PathBuf>) -> Result {
    let ready = folder.join("ready");
    if ready.exists() {
        return Ok(());
    }
    must(Command::new(python).args(["-m", "venv"]).arg(folder))?;
    let wheel = format!("torch=={}", torch.version);
    let pip = |words: &[&str]| {
        must(
            Command::new(folder.join("bin/python"))
                .args([
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--no-cache-dir",
                    "--disable-pip-version-check",
                ])
                .args(words),
        )
    };
    let cuda = first.and_then(|first| packages(first).map(|folder| folder.join("nvidia")));
    match cuda.filter(|cuda| cuda.is_dir()) {
        Some(cuda) => {
            pip(&["--no-deps", &wheel])?;
            let link = packages(folder).ok_or("no site-packages")?.join("nvidia");
            std::os::unix::fs::symlink(cuda, &link)
                .map_err(|error| format!("{}: {error}", link.display()))?;
        }
        None => pip(&[&wheel])?,
    }
    pip(&[&PURE[..], &[torch.numpy]].concat())?;
    must(Command::new(folder.join("bin/python")).args(["-c", "import torch; torch.ones(2).sum().item()"]))?;
    fs::write(&ready, "").map_err(|error| format!("{}: {error}", ready.display()))
}

fn packages(folder: &Path) -> Option<PathBuf> {
    let libraries = fs::read_dir(folder.join("lib")).ok()?.flatten();
    libraries
        .map(|entry| entry.path().join("site-packages"))
        .find(|path| path.is_dir())
}

fn tests(folder: &Path) -> Result {
    must(
        Command::new(folder.join("bin/python"))
            .current_dir(root())
            .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "python/tests"])
            // `cargo xtask test` covers the frameworks, trackers and notebooks, with one PyTorch.
            .env(
                "FLATOUT_ALLOW_MISSING",
                "accelerate,datasets,ipykernel,lightning,mlflow,nbclient,tensorboard,transformers,wandb",
            ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_that_is_missing_fails_the_matrix() {
        let row = |outcome| ("3.9", "2.4.1", outcome);
        let (passed, missing) = (|| row(Outcome::Passed), || row(Outcome::Missing));
        let failed = || row(Outcome::Failed("1 failed".to_owned()));
        assert!(judged(&[passed()], false).is_ok());
        assert!(judged(&[passed(), missing()], false).is_err());
        assert!(judged(&[passed(), missing()], true).is_ok());
        for allow_missing in [false, true] {
            assert!(judged(&[], allow_missing).is_err());
            assert!(judged(&[missing()], allow_missing).is_err());
            assert!(judged(&[passed(), failed()], allow_missing).is_err());
        }
    }
}
