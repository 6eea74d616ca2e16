//! The tools that tests need: one function per tool.
//!
//! A missing tool fails the test. To run the tests without one, name it: `FLATOUT_ALLOW_MISSING=slurm,chromium`. The function
//! then returns `None` and the test returns early:
//!
//! ```no_run
//! let Some(python) = flatout_testing::torch_python() else { return };
//! ```

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Every name that `FLATOUT_ALLOW_MISSING` accepts, those of the Python tests (`need` in `conftest.py`) included.
pub const TOOLS: &[&str] = &[
    "accelerate",
    "chromium",
    "cupti",
    "datasets",
    "gcc",
    "ipykernel",
    "jsonschema",
    "lightning",
    "mlflow",
    "mount",
    "nbclient",
    "nvrtc",
    "promtool",
    "python",
    "safetensors",
    "slurm",
    "tensorboard",
    "torch",
    "transformers",
    "wandb",
];

/// Any Python 3 on the path.
pub fn python() -> Option<PathBuf> {
    let found = ["python3", "python"].into_iter().find(|name| {
        let mut command = Command::new(name);
        succeeds(command.args(["-c", "import sys; sys.exit(sys.version_info < (3, 9))"]))
    });
    require("python", "apt-get install python3", found.map(PathBuf::from))
}

/// The Python of the test environment (`cargo xtask venv`), with PyTorch.
pub fn torch_python() -> Option<PathBuf> {
    python_with("torch", &["torch"])
}

/// The Python of the test environment, with PyTorch, NumPy and safetensors.
pub fn safetensors_python() -> Option<PathBuf> {
    python_with("safetensors", &["torch", "numpy", "safetensors"])
}

/// The Python of the test environment, with TensorBoard.
pub fn tensorboard_python() -> Option<PathBuf> {
    python_with("tensorboard", &["tensorboard"])
}

/// The root of the test environment, whose pip packages contain NVRTC.
pub fn nvrtc_environment() -> Option<PathBuf> {
    let library = nvidia_library("libnvrtc.so.*");
    let root = library.and_then(|_| Some(environment_python().parent()?.parent()?.to_owned()));
    require("nvrtc", "cargo xtask venv", root)
}

/// NVIDIA's libcupti from the pip packages of the test environment.
pub fn cupti() -> Option<PathBuf> {
    require("cupti", "cargo xtask venv", nvidia_library("libcupti.so.*"))
}

/// Chromium or Chrome, to load report pages in a real browser.
pub fn chromium() -> Option<&'static str> {
    let mut names = ["chromium", "chromium-browser", "google-chrome"].into_iter();
    let found = names.find(|name| succeeds(Command::new(name).arg("--version")));
    require("chromium", "apt-get install chromium", found)
}

/// Prometheus's own checker.
pub fn promtool() -> Option<&'static str> {
    let found = succeeds(Command::new("promtool").arg("--version")).then_some("promtool");
    require("promtool", "apt-get install prometheus", found)
}

/// The C compiler, to build fake libraries.
pub fn gcc() -> Option<&'static str> {
    let found = succeeds(Command::new("gcc").arg("--version")).then_some("gcc");
    require("gcc", "apt-get install gcc", found)
}

/// `found`, or what to do about a tool that is missing: fail, unless `FLATOUT_ALLOW_MISSING` names it.
pub fn require<T>(tool: &str, install: &str, found: Option<T>) -> Option<T> {
    let allowed = std::env::var("FLATOUT_ALLOW_MISSING").unwrap_or_default();
    match verdict(tool, install, found.is_some(), &allowed) {
        Ok(None) => {}
        Ok(Some(note)) => eprintln!("{note}"),
        Err(message) => panic!("{message}"),
    }
    found
}

/// Nothing to report, a note for a skipped test, or the message of a failed one.
fn verdict(tool: &str, install: &str, found: bool, allowed: &str) -> Result<Option<String>, String> {
    let allowed = allowed.split(',').map(str::trim).filter(|name| !name.is_empty());
    let allowed: Vec<&str> = allowed.collect();
    if let Some(unknown) = allowed.iter().find(|name| !TOOLS.contains(name)) {
        return Err(format!(
            "FLATOUT_ALLOW_MISSING names `{unknown}`; the tools are {}",
            TOOLS.join(", ")
        ));
    }
    assert!(TOOLS.contains(&tool), "`{tool}` is not in TOOLS");
    if found {
        Ok(None)
    } else if allowed.contains(&tool) {
        Ok(Some(format!("skipped: {tool} is missing")))
    } else {
        Err(format!(
            "this test needs {tool}: {install} (`cargo xtask test` does it), \
             or set FLATOUT_ALLOW_MISSING={tool} to skip the tests that need it"
        ))
    }
}

/// `$FLATOUT_TEST_PYTHON`, else the Python of the environment that `cargo xtask venv` makes.
fn environment_python() -> PathBuf {
    std::env::var_os("FLATOUT_TEST_PYTHON").map_or_else(
        || {
            let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
            let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache");
            let default = || cache.unwrap_or_else(home).join("flatout/venv");
            let folder = std::env::var_os("FLATOUT_VENV").map_or_else(default, PathBuf::from);
            folder.join("bin/python")
        },
        PathBuf::from,
    )
}

fn python_with(tool: &str, modules: &[&str]) -> Option<PathBuf> {
    let python = environment_python();
    let mut command = Command::new(&python);
    command.args([
        "-c",
        "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, sys.argv[1:])))",
    ]);
    let install = format!(
        "cargo xtask venv, or set FLATOUT_TEST_PYTHON; not in {}",
        python.display()
    );
    require(tool, &install, succeeds(command.args(modules)).then_some(python))
}

/// The first file of this name pattern in the `nvidia` packages of the test environment.
fn nvidia_library(pattern: &str) -> Option<PathBuf> {
    let print = "import glob, sys, sysconfig; \
                 print(glob.glob(sysconfig.get_path('purelib') + '/nvidia/*/lib/' + sys.argv[1])[0])";
    let output = Command::new(environment_python())
        .args(["-c", print, pattern])
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    let path = Path::new(path.trim());
    path.is_file().then(|| path.to_owned())
}

fn succeeds(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fails_when_a_tool_is_missing() {
        let message = verdict("slurm", "apt-get install slurm-wlm", false, "chromium").unwrap_err();
        assert!(
            message.contains("needs slurm: apt-get install slurm-wlm"),
            "{message}"
        );
        assert!(message.contains("FLATOUT_ALLOW_MISSING=slurm"), "{message}");
    }

    #[test]
    fn skips_when_a_missing_tool_is_allowed() {
        let note = verdict("slurm", "", false, "chromium, slurm").unwrap().unwrap();
        assert_eq!(note, "skipped: slurm is missing");
        assert_eq!(verdict("slurm", "", true, "slurm"), Ok(None));
    }

    #[test]
    fn refuses_an_unknown_tool_name() {
        let message = verdict("slurm", "", true, "slrum").unwrap_err();
        assert!(
            message.contains("`slrum`") && message.contains("promtool"),
            "{message}"
        );
    }
}
