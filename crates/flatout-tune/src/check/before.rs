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
use flatout_record::Sample;
use std::path::Path;

/// All that is known before a start.
pub struct Before<'a> {
    pub given: &'a Given,
    pub machine: &'a Machine,
    /// The GPUs now.
    pub sample: &'a Sample,
    /// What the source says of its own settings (`flatout lint`).
    pub source: &'a [Finding],
    /// Whether the values that stand in the program's script are among those given.
    pub script: bool,
    /// Data the program will read, where it is known.
    pub data: Option<&'a Path>,
    /// Where it will write.
    pub folder: &'a Path,
    /// The command that is to be started, where one was given.
    pub command: &'a [String],
}

pub fn before(known: &Before, limits: &Limits) -> Vec<Item> {
    let mut items: Vec<Item> = known
        .command
        .first()
        .map(|name| program::there(name))
        .into_iter()
        .collect();
    items.extend(program::script(known.command));
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
    message!(en: "not set in the configuration or the command", zh: "配置和命令中都没有给出")
}

/// Of what a script is asked for, too.
fn not_written(known: &Before) -> Message {
    if known.script {
        message!(en: "not set in the configuration, the command or the script", zh: "配置、命令和脚本中都没有给出")
    } else {
        not_given()
    }
}

fn no_gpu() -> Message {
    message!(en: "there is no GPU here", zh: "本机没有 GPU")
}
