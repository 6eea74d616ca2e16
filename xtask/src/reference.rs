//! `cargo xtask reference`: writes `docs/reference` anew from what the program says of itself.

use crate::{Result, cargo};

pub fn run(_: &[String]) -> Result {
    let status = cargo()
        .args(["test", "--package", "flatout", "--test", "reference"])
        .env("FLATOUT_WRITE_REFERENCE", "1")
        .status()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err("the reference could not be written".into())
    }
}
