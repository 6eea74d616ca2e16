//! `cargo xtask wheel`: what `pip install .` gives a user, tried for real.

use crate::{Result, must, root};
use std::process::Command;

pub fn run(_: &[String]) -> Result {
    let folder = root().join("target/wheel-venv");
    let _ = std::fs::remove_dir_all(&folder);
    must(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let pip = folder.join("bin/pip");
    must(Command::new(&pip).current_dir(root()).args([
        "install",
        "--quiet",
        "--disable-pip-version-check",
        ".",
    ]))?;
    must(Command::new(folder.join("bin/flatout")).arg("--version"))?;
    must(Command::new(folder.join("bin/python")).args(["-c", "import flatout; flatout.step()"]))
}
