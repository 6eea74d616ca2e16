//! Puts the git revision into `flatout --version`; without git the version stands alone.

use std::process::Command;

fn main() {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args(arguments)
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let revision = git(&["rev-parse", "--short=10", "HEAD"]);
    let version = env!("CARGO_PKG_VERSION");
    let text = revision.map_or_else(
        || version.to_owned(),
        |revision| format!("{version} ({revision})"),
    );
    println!("cargo:rustc-env=FLATOUT_VERSION={text}");
    if let Some(head) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={head}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
