//! The one Python environment of the tests, with a real PyTorch. It lies outside `target` and outside the checkout, because
//! filling it takes minutes: `$FLATOUT_VENV`, else `~/.cache/flatout/venv`.

use crate::{Result, must, root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn run(_: &[String]) -> Result {
    println!("{}", ensure()?.display());
    Ok(())
}

/// The environment's python; the environment is made or brought up to date first.
pub fn ensure() -> Result<PathBuf> {
    let folder = folder()?;
    let python = folder.join("bin/python");
    let requirements = root().join("python/requirements-test.txt");
    let wanted =
        fs::read_to_string(&requirements).map_err(|error| format!("{}: {error}", requirements.display()))?;
    let stamp = folder.join("flatout-requirements.txt");
    if python.exists() && fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    if !python.exists() {
        must(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    install(&python, &requirements)?;
    fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))?;
    Ok(python)
}

fn install(python: &Path, requirements: &Path) -> Result {
    must(
        Command::new(python)
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "-r",
            ])
            .arg(requirements),
    )
}

fn folder() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("FLATOUT_VENV") {
        return Ok(folder.into());
    }
    Ok(cache()?.join("venv"))
}

/// flatout's folder in the user's cache.
pub fn cache() -> Result<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let base = cache
        .or_else(home)
        .ok_or("neither XDG_CACHE_HOME nor HOME is set; set FLATOUT_VENV")?;
    Ok(base.join("flatout"))
}
