//! The examination of this machine, and of machines played by the stand-in library.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::process::Command;

/// Runs the example in a process of its own, since the library is chosen by the environment.
fn examine(variables: &[(&str, &str)]) -> String {
    let here = std::env::current_exe().unwrap();
    let mut command = Command::new(here.parent().unwrap().with_file_name("examples").join("examine"));
    for variable in flatout_telemetry::scope::SCOPE_VARIABLES {
        command.env_remove(variable);
    }
    let output = command
        .env("FLATOUT_NVML_LIB", here.with_file_name("libflatout_fake_nvml.so"))
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn health<'a>(text: &'a str, id: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(&format!("{id} ")))
}

#[test]
fn a_machine_with_two_gpus() {
    let text = examine(&[]);
    assert!(
        health(&text, "driver")
            .unwrap()
            .starts_with("Good driver 580.95.05"),
        "{text}"
    );
    assert!(health(&text, "gpu.1").unwrap().contains("compute capability 9.0"));
    assert!(health(&text, "gpu.0.gpm").unwrap().starts_with("Good"));
    assert_eq!(
        health(&text, "gpu.0.settings"),
        Some("Good GPU 0: MIG off, ECC on, persistence on")
    );
    assert!(health(&text, "gpu.0.link").unwrap().contains("16 of 16 lanes"));
    assert!(health(&text, "cpus").unwrap().contains("affinity"));
    for id in ["cuda.libcuda", "cuda.libcudnn", "ptrace", "records", "pressure"] {
        assert!(health(&text, id).is_some(), "{id} in {text}");
    }
}

#[test]
fn reports_what_is_wrong() {
    let text = examine(&[("FLATOUT_FAKE_NVML_FAULT", "mismatch")]);
    assert!(health(&text, "driver").unwrap().starts_with("Problem"), "{text}");
    let text = examine(&[("FLATOUT_NVML_LIB", "/nonexistent.so")]);
    assert!(health(&text, "driver").unwrap().starts_with("Missing"), "{text}");
    let text = examine(&[
        ("FLATOUT_FAKE_NVML_FAULT", "not-supported:gpm"),
        ("CUDA_VISIBLE_DEVICES", ""),
    ]);
    assert!(
        health(&text, "gpu.0.gpm").unwrap().starts_with("Missing"),
        "{text}"
    );
    assert!(health(&text, "scope").unwrap().starts_with("Problem"), "{text}");
}
