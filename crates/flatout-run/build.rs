//! Compiles the CUPTI tracer into a shared library for the same target, to be carried inside the binary.
//!
//! Cargo cannot build a cdylib and embed it in another crate of the same build, and the tracer has no dependencies, so rustc
//! is called directly.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot build the CUPTI tracer: {error}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), String> {
    let variable = |name: &str| std::env::var(name).map_err(|_| format!("{name} is not set"));
    let source = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("../flatout-tracer/src");
    println!("cargo::rerun-if-changed={}", source.display());
    println!("cargo::rerun-if-changed=build.rs");
    let library = PathBuf::from(variable("OUT_DIR")?).join("libflatout_tracer.so");
    let mut rustc = Command::new(variable("RUSTC")?);
    rustc.args(["--edition", "2024", "--crate-name", "flatout_tracer"]);
    rustc.args(["--crate-type", "cdylib", "--cfg", "feature=\"shared-library\""]);
    rustc.arg("--target").arg(variable("TARGET")?);
    for option in [
        "opt-level=s",
        "panic=unwind",
        "strip=symbols",
        "lto=fat",
        "codegen-units=1",
    ] {
        rustc.args(["-C", option]);
    }
    if let Ok(linker) = variable("RUSTC_LINKER") {
        rustc.args(["-C", &format!("linker={linker}")]);
    }
    rustc.arg("-o").arg(&library).arg(source.join("lib.rs"));
    let status = rustc.status().map_err(|error| error.to_string())?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("rustc ended with {status}"))
    }
}
