//! Programs that tests hold flatout against, from Debian's packages. Where they cannot be installed, the tests that need them
//! say so and skip.

use std::process::{Command, Stdio};

/// Program and the package that brings it.
const WANTED: &[(&str, &str)] = &[("promtool", "prometheus"), ("tmux", "tmux")];

pub fn install_missing() {
    let missing: Vec<&str> = WANTED
        .iter()
        .filter(|(program, _)| !exists(program))
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        return;
    }
    eprintln!("installing {}", missing.join(", "));
    let quiet = |arguments: &[&str]| {
        let status = Command::new("apt-get")
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdout(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    };
    let install = [
        &["install", "-y", "-q", "--no-install-recommends"],
        missing.as_slice(),
    ]
    .concat();
    if !(quiet(&["update", "-q"]) && quiet(&install)) {
        eprintln!(
            "could not install {}: the tests that need them will be skipped",
            missing.join(", ")
        );
    }
}

fn exists(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
