//! # workers-not-persistent
//!
//! ## What it detects
//! A `DataLoader` with workers and without `persistent_workers=True`, gone over once for each of several epochs.
//!
//! ## Why it is slow
//! At the end of every epoch the workers end, and new ones start, import everything again and fill the queue again. With short epochs that pause is a good
//! part of the time; with long ones it does not show. For information only: a recorded run decides.
//!
//! ## Evidence
//! `num_workers` is known to be above 0, `persistent_workers` is not given, and the loop over the loader lies in a loop over epochs.
//!
//! ## Fix
//! `persistent_workers=True`, which `--fix --unsafe` adds: workers then keep their state (random numbers, open files) from epoch to epoch.
//!
//! ## When it is wrong
//! Where memory is short, since the workers of the training and the validation loader then live side by side; or where the data set changes between epochs.
//!
//! ## References
//! PyTorch documentation of `torch.utils.data.DataLoader`, parameter `persistent_workers`.

use crate::rules::prelude::*;

pub const ID: &str = "workers-not-persistent";
pub const SEVERITY: Severity = Severity::Information;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for call in loader_calls(project, module) {
        if call.splats() || call.keyword("persistent_workers").is_some() {
            continue;
        }
        let Some(workers) = call.argument("num_workers", 5) else { continue };
        let values = workers.values();
        let some = values.complete
            && !values.list.is_empty()
            && values.list.iter().all(|known| matches!(known.value, Value::Integer(count) if count > 0));
        if !some || !has_epochs(project, module) {
            continue;
        }
        let found = report.at(
            call.callee().unwrap_or(call),
            message!(
                en: "the workers are started anew for every epoch",
                zh: "每个 epoch 都会重新启动 worker"
            ),
        );
        if let Some(edit) = call.set_keyword("persistent_workers", "True") {
            found.unsafe_fix(vec![edit], message!(en: "add `persistent_workers=True`", zh: "加上 `persistent_workers=True`"));
        }
    }
}

/// A loop over epochs in the program.
fn has_epochs(project: &Project, module: ModuleId) -> bool {
    project
        .program(module)
        .into_iter()
        .any(|module| !project.flow().loops(project, module, LoopRole::Epoch).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nloader = torch.utils.data.DataLoader(data, num_workers=4)\nfor epoch in range(9):\n    for x in loader:\n        model(x).backward()\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("train.py", FIRES)]).len(), 1);
    }

    #[test]
    fn quiet() {
        let set = FIRES.replace("num_workers=4", "num_workers=4, persistent_workers=True");
        assert!(findings_of(ID, &[("train.py", &set)]).is_empty());
        let none = FIRES.replace("num_workers=4", "num_workers=0");
        assert!(findings_of(ID, &[("train.py", &none)]).is_empty());
    }

    #[test]
    fn look_alike() {
        let one_pass = "import torch\nloader = torch.utils.data.DataLoader(data, num_workers=4)\nfor x in loader:\n    model(x).backward()\n";
        assert!(findings_of(ID, &[("train.py", one_pass)]).is_empty());
    }
}
