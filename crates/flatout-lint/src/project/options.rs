//! Options that the program parses from its command line with argparse.

use super::{Code, ModuleId, Project};
use crate::python::NodeId;

/// One `parser.add_argument("--name", …)`.
#[derive(Clone, Debug)]
pub struct CommandOption {
    /// The attribute of `args` that it fills.
    pub name: String,
    /// `--name` as written.
    pub flag: String,
    pub module: ModuleId,
    pub id: NodeId,
}

pub(super) fn all(project: &Project) -> Vec<CommandOption> {
    let ids = project.module_ids();
    ids.flat_map(|module| project.calls(module).filter_map(option))
        .collect()
}

fn option(call: Code<'_>) -> Option<CommandOption> {
    if !call.is_method("add_argument") {
        return None;
    }
    let names: Vec<&str> = call
        .arguments()?
        .positional
        .iter()
        .filter_map(|id| call.at(*id).as_text())
        .collect();
    let flag = names
        .iter()
        .find(|name| name.starts_with("--"))
        .or(names.first())?;
    let destination = call.keyword("dest").and_then(Code::as_text);
    let name = destination.map_or_else(|| flag.trim_start_matches('-').replace('-', "_"), str::to_owned);
    Some(CommandOption {
        name,
        flag: (*flag).to_owned(),
        module: call.module,
        id: call.id,
    })
}
