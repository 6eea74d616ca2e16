//! Programs that tests run against, from Debian's packages. A program that cannot be installed fails the test run, unless
//! `FLATOUT_ALLOW_MISSING` names its tool (the names are those of the crate `flatout-testing`).

use crate::Result;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A tool of the tests: its programs and the packages that contain them.
struct Tool {
    name: &'static str,
    /// Each entry is one program under any of its names, and the package to install when there is none.
    programs: &'static [(&'static [&'static str], &'static str)],
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "chromium",
        programs: &[(&["chromium", "chromium-browser", "google-chrome"], "chromium")],
    },
    Tool {
        name: "gcc",
        programs: &[(&["gcc"], "gcc")],
    },
    Tool {
        name: "promtool",
        programs: &[(&["promtool"], "prometheus")],
    },
    Tool {
        name: "python",
        programs: &[(&["python3"], "python3-venv")],
    },
    Tool {
        name: "slurm",
        programs: &[
            (&["slurmctld"], "slurm-wlm"),
            (&["slurmdbd"], "slurmdbd"),
            (&["mariadbd"], "mariadb-server"),
            (&["munged"], "munge"),
        ],
    },
];

impl Tool {
    fn missing_packages(&self) -> Vec<&'static str> {
        let missing = |names: &[&str]| !names.iter().any(|name| exists(name));
        let programs = self.programs.iter().filter(|(names, _)| missing(names));
        programs.map(|(_, package)| *package).collect()
    }
}

/// Installs the tools that are missing and not in `allowed` (comma-separated names).
pub fn install_missing(allowed: &str) -> Result {
    let allowed = |tool: &Tool| allowed.split(',').any(|name| name.trim() == tool.name);
    let wanted = TOOLS.iter().filter(|tool| !allowed(tool));
    let wanted: Vec<&Tool> = wanted
        .filter(|tool| !tool.missing_packages().is_empty())
        .collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let _quiet_services = NoServices::new();
    apt(&["update", "-q"]);
    let mut failed = Vec::new();
    for tool in wanted {
        let packages = tool.missing_packages();
        eprintln!("installing {}", packages.join(", "));
        apt(&[
            &["install", "-y", "-q", "--no-install-recommends"],
            packages.as_slice(),
        ]
        .concat());
        if !tool.missing_packages().is_empty() {
            failed.push(tool.name);
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    let names = failed.join(",");
    Err(format!(
        "could not install {names}: install them by hand, or set FLATOUT_ALLOW_MISSING={names} to skip the tests that need them"
    ))
}

/// Whether it worked shows in the programs that exist afterwards; apt-get's own errors go to the terminal.
fn apt(arguments: &[&str]) {
    let status = Command::new("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(Stdio::null())
        .status();
    if let Err(error) = status {
        eprintln!("apt-get: {error}");
    }
}

/// Keeps packages from starting their daemons while they are installed: tests start their own.
struct NoServices(Option<PathBuf>);

impl NoServices {
    fn new() -> Self {
        let policy = Path::new("/usr/sbin/policy-rc.d");
        if policy.exists() || std::fs::write(policy, "#!/bin/sh\nexit 101\n").is_err() {
            return Self(None);
        }
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        let _ = std::fs::set_permissions(policy, executable);
        Self(Some(policy.to_owned()))
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if let Some(policy) = &self.0 {
            let _ = std::fs::remove_file(policy);
        }
    }
}

fn exists(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
