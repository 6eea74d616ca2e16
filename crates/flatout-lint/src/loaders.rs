//! What the rules on loaders share: where loaders are built, whether they pin, where batches move to the device.

use crate::config::Value;
use crate::project::{Code, LoopRole, ModuleId, Project};
use crate::python::Kind;

/// Every call that builds a DataLoader of PyTorch (or of a library that wraps it under the same arguments).
pub fn loader_calls(project: &Project, module: ModuleId) -> impl Iterator<Item = Code<'_>> {
    project.torch_calls(module).filter(|call| {
        call.calls_one_of(&[
            "torch.utils.data.DataLoader",
            "torch.utils.data.dataloader.DataLoader",
            "torch_geometric.loader.DataLoader",
        ])
    })
}

/// Only its first batch is ever taken, `next(iter(loader))`: a look at the data, no training.
pub fn gives_one_batch(call: Code<'_>) -> bool {
    let statement = call.statement();
    let Kind::Assign { targets, value } = statement.kind() else {
        return false;
    };
    let [target] = targets.as_slice() else {
        return false;
    };
    let target = statement.at(*target);
    let Some(name) = target.as_name().filter(|_| *value == call.id) else {
        return false;
    };
    let scope = target.at(target.tree().scope(target.id));
    let mut uses = scope
        .subtree()
        .filter(|code| code.as_name() == Some(name) && *code != target)
        .peekable();
    uses.peek().is_some()
        && uses.all(|code| {
            passed_to(code, "iter")
                .and_then(|iterator| passed_to(iterator, "next"))
                .is_some()
        })
}

/// The call of a plain function that gets this as an argument.
fn passed_to<'p>(code: Code<'p>, function: &str) -> Option<Code<'p>> {
    let parent = code.parent()?;
    (parent.callee()?.as_name() == Some(function)).then_some(parent)
}

/// Whether a loader is known to have workers.
pub fn has_workers(call: Code<'_>) -> bool {
    let Some(workers) = call.argument("num_workers", 5) else {
        return false;
    };
    let values = workers.values();
    let some = |value: &Value| matches!(value, Value::Integer(count) if *count > 0);
    values.complete && !values.list.is_empty() && values.list.iter().all(|known| some(&known.value))
}

/// Whether a loader pins its batches; `None` when that cannot be seen.
pub fn pins_memory(call: Code<'_>) -> Option<bool> {
    match call.argument("pin_memory", 7) {
        None if call.splats() => None,
        None => Some(false),
        Some(argument) => match argument.values().only()? {
            Value::Boolean(pins) => Some(*pins),
            _ => None,
        },
    }
}

/// `x.to(device)` and `x.cuda()`: the call and whether it is `non_blocking`. `None` for `.to(dtype)` and the like.
pub fn moves_to_device(call: Code<'_>) -> Option<bool> {
    let (_, method) = call.method_call()?;
    let non_blocking = || match call.keyword("non_blocking") {
        None => Some(false),
        Some(value) => match value.values().only() {
            Some(Value::Boolean(value)) => Some(*value),
            // Given, but by something that cannot be seen: taken as set.
            _ => Some(true),
        },
    };
    match method {
        "cuda" => non_blocking(),
        "to" => {
            let target = call.argument("device", 0)?;
            is_device(target).then(non_blocking).flatten()
        }
        _ => None,
    }
}

fn is_device(code: Code<'_>) -> bool {
    if let Some(text) = code.as_text() {
        return text.starts_with("cuda");
    }
    if code.calls("torch.device") {
        return !code
            .positional(0)
            .and_then(Code::as_text)
            .is_some_and(|name| name.starts_with("cpu"));
    }
    let name = match code.kind() {
        Kind::Name => code.text(),
        Kind::Attribute { name, .. } => code.slice(*name),
        _ => return false,
    };
    crate::words(name).any(|word| {
        matches!(
            word.to_ascii_lowercase().as_str(),
            "device" | "dev" | "gpu" | "cuda"
        )
    })
}

/// Moves of what a step loop takes from its loader: the loop's own variables, and items of the batch.
pub fn transfers(project: &Project, module: ModuleId) -> Vec<(Code<'_>, bool)> {
    let mut found = Vec::new();
    for role in [LoopRole::Step, LoopRole::Evaluation] {
        for code in project.flow().loops(project, module, role) {
            let Kind::For { target, iterator, .. } = code.kind() else {
                continue;
            };
            if !code.at(*iterator).is_loader() {
                continue;
            }
            let names: Vec<&str> = code.at(*target).subtree().filter_map(Code::as_name).collect();
            for call in code.calls_inside() {
                let Some(non_blocking) = moves_to_device(call) else {
                    continue;
                };
                let Some((receiver, _)) = call.method_call() else {
                    continue;
                };
                let root = receiver.subtree().find_map(Code::as_name);
                if root.is_some_and(|root| names.contains(&root)) && call.loop_around(role) == Some(code) {
                    found.push((call, non_blocking));
                }
            }
        }
    }
    found
}

/// The `__getitem__` of every PyTorch data set of a module.
pub fn dataset_getitems(project: &Project, module: ModuleId) -> Vec<Code<'_>> {
    if !project.module(module).source.text.contains("__getitem__") {
        return Vec::new();
    }
    let classes = project.module(module).parsed.tree.classes().iter();
    classes
        .map(|id| project.code(module, *id))
        .filter(|class| class.inherits(&is_dataset_name))
        .filter_map(|class| {
            class
                .method("__getitem__")
                .filter(|method| method.module == module)
        })
        .collect()
}

fn is_dataset_name(name: &str) -> bool {
    matches!(
        name,
        "torch.utils.data.Dataset" | "torch.utils.data.dataset.Dataset" | "torch.utils.data.MapDataset"
    ) || name.starts_with("torchvision.datasets.")
}
