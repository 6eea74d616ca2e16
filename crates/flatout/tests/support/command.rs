//! The program as a user calls it, with a cache of its own.

use std::path::Path;
use std::process::{Command, Output};

pub fn flatout(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_flatout"))
        .args(arguments)
        .current_dir(folder)
        .env("LANG", "C")
        .env("FLATOUT_CACHE", folder.join("cache"))
        .env_remove("LC_ALL")
        .output()
        .unwrap()
}
