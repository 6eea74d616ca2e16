//! `flatout tune`, `advise` and their kin on real programs: what they find, what they leave behind, what they say of bad input.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "tune/bad_input.rs"]
mod bad_input;
#[path = "tune/checking.rs"]
mod checking;
#[path = "tune/disk.rs"]
mod disk;
#[path = "tune/files.rs"]
mod files;
#[path = "tune/objectives.rs"]
mod objectives;
#[path = "tune/own_trainer.rs"]
mod own_trainer;
#[path = "tune/programs.rs"]
mod programs;
#[path = "run/support.rs"]
#[allow(dead_code, reason = "shared with the tests of run")]
mod support;
#[path = "tune/trying.rs"]
mod trying;
