//! `cargo xtask reference`: writes `docs/reference` and `schemas` from the program's help, rules and types.

use crate::{Result, cargo};

pub fn run(_: &[String]) -> Result {
    let status = cargo()
        .args([
            "test",
            "--package",
            "flatout",
            "--test",
            "reference",
            "--test",
            "schemas",
        ])
        .env("FLATOUT_WRITE_REFERENCE", "1")
        .status()
        .map_err(|error| format!("cargo could not be started: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err("the reference could not be written".into())
    }
}
