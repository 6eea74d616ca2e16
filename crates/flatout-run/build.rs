//! Lists the Python files of the probe, and compiles the CUPTI tracer into a shared library for the same target: the binary carries both.
//!
//! Cargo cannot build a cdylib and embed it in another crate of the same build, and the tracer has no dependencies, so rustc
//! is called directly.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    match list_probe().and_then(|()| build_tracer()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot build what the binary carries: {error}");
            ExitCode::FAILURE
        }
    }
}

fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("{name} is not set"))
}

/// Every Python file of the two packages, as a constant of paths and texts.
fn list_probe() -> Result<(), String> {
    let root = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("../../python");
    let mut files = Vec::new();
    for package in ["_flatout_probe", "_flatout_apply"] {
        println!("cargo::rerun-if-changed={}", root.join(package).display());
        find(&root.join(package), &mut files).map_err(|error| format!("{package}: {error}"))?;
    }
    files.sort();
    let mut text = String::from("pub const FILES: &[(&str, &str)] = &[\n");
    for file in &files {
        let below = file.strip_prefix(&root).map_err(|error| error.to_string())?;
        let name = match below.file_name() {
            Some(name) if name == "sitecustomize.py" => Path::new(name),
            _ => below,
        };
        text += &format!("    ({name:?}, include_str!({file:?})),\n");
    }
    text += "];\n";
    let target = PathBuf::from(variable("OUT_DIR")?).join("probe_files.rs");
    std::fs::write(target, text).map_err(|error| error.to_string())
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "py") {
            files.push(path);
        }
    }
    Ok(())
}

fn build_tracer() -> Result<(), String> {
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
