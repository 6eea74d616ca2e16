//! Programs that tests hold flatout against, from Debian's packages. Where they cannot be installed, the tests that need them
//! say so and skip.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Program and the package that brings it; a group is installed together or not at all.
const WANTED: &[&[(&str, &str)]] = &[
    &[("promtool", "prometheus"), ("tmux", "tmux")],
    &[
        ("slurmctld", "slurm-wlm"),
        ("slurmdbd", "slurmdbd"),
        ("mariadbd", "mariadb-server"),
        ("munged", "munge"),
    ],
];

pub fn install_missing() {
    let missing_of = |group: &[(&'static str, &'static str)]| -> Vec<&'static str> {
        let missing = group.iter().filter(|(program, _)| !exists(program));
        missing.map(|(_, package)| *package).collect()
    };
    let groups = WANTED.iter().map(|group| missing_of(group));
    let groups: Vec<Vec<&str>> = groups.filter(|missing| !missing.is_empty()).collect();
    if groups.is_empty() {
        return;
    }
    let _quiet_services = NoServices::new();
    let updated = apt(&["update", "-q"]);
    for missing in groups {
        eprintln!("installing {}", missing.join(", "));
        let install = [
            &["install", "-y", "-q", "--no-install-recommends"],
            missing.as_slice(),
        ]
        .concat();
        if !(updated && apt(&install)) {
            eprintln!(
                "could not install {}: the tests that need them will be skipped",
                missing.join(", ")
            );
        }
    }
}

fn apt(arguments: &[&str]) -> bool {
    let status = Command::new("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
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
