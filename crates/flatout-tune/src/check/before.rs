//! Before the start: what the configuration or the command asks for, on this machine as it is now.

mod data;
mod machine;
mod program;
mod settings;
#[cfg(test)]
mod tests;

use super::{Item, Limits};
use crate::advise::Given;
use crate::machine::Machine;
use flatout_core::{Finding, Message, message};
use flatout_telemetry::Sample;
use std::path::Path;

/// All that is known before a start.
pub struct Before<'a> {
    pub given: &'a Given,
    pub machine: &'a Machine,
    /// The GPUs now.
    pub sample: &'a Sample,
    /// What the source says of its own settings (`flatout lint`).
    pub source: &'a [Finding],
    /// Data the program will read, where it is known.
    pub data: Option<&'a Path>,
    /// Where it will write.
    pub folder: &'a Path,
    /// The program that is to be started, where a command was given.
    pub program: Option<&'a str>,
}

pub fn before(known: &Before, limits: &Limits) -> Vec<Item> {
    let mut items: Vec<Item> = known.program.map(program::there).into_iter().collect();
    items.extend([
        settings::precision(known),
        settings::workers(known, limits),
        settings::batch(known, limits),
        settings::pinning(known),
    ]);
    items.extend(settings::unread(known));
    items.extend(data::data(known, limits));
    items.extend(machine::gpus(known, limits));
    items.push(machine::disk(known, limits));
    items
}

fn not_given() -> Message {
    message!(en: "neither the configuration, the command nor the source says", zh: "配置、命令和源码中都没有给出")
}

fn no_gpu() -> Message {
    message!(en: "there is no GPU here", zh: "本机没有 GPU")
}
