//! `flatout run` on real programs: what the program does stays exactly as without flatout, and the record tells what it did.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "run/attach.rs"]
mod attach;
#[path = "run/loaders.rs"]
mod loaders;
#[path = "run/processes.rs"]
mod processes;
#[path = "run/programs.rs"]
mod programs;
#[path = "run/ranks.rs"]
mod ranks;
#[path = "run/settings.rs"]
mod settings;
#[path = "run/stacks.rs"]
mod stacks;
#[path = "run/support.rs"]
mod support;
#[path = "run/transparent.rs"]
mod transparent;
