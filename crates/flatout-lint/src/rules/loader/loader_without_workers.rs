//! # loader-without-workers
//!
//! ## What it detects
//! A training loop iterates over a `DataLoader` with `num_workers` unset or 0, in a program that trains on CUDA.
//!
//! ## Why it is slow
//! Without workers, the training process itself reads and prepares every batch. In the meantime, no work is queued on the GPU.
//!
//! ## Example
//! ```python
//! loader = DataLoader(dataset, batch_size=256, shuffle=True)
//! ```
//!
//! ## Use instead
//! ```python
//! loader = DataLoader(dataset, batch_size=256, shuffle=True, num_workers=4, persistent_workers=True)
//! ```
//!
//! ## Evidence
//! `num_workers` is not given, or every value it can have is 0. flatout follows it through names, argparse defaults and configuration
//! files.
//!
//! ## Fix
//! Set `num_workers` to a small number (4 is a good start; `flatout tune` finds the best) together with `persistent_workers=True`.
//! Keep 0 if the dataset already holds its tensors in memory: transferring them between processes then costs more than it saves.
//!
//! ## When it is wrong
//! The data is already in memory (`TensorDataset`): such DataLoaders are not reported. The system does not allow worker processes.
//!
//! ## References
//! PyTorch documentation of `torch.utils.data`, "Single- and Multi-process Data Loading".
//! <https://docs.pytorch.org/docs/stable/data.html>
//!
//! ---
//! ## 检测什么
//! 在 CUDA 上训练的程序中，训练循环遍历的 `DataLoader` 没有设置 `num_workers` 或为 0。
//! ## 为什么慢
//! 没有 worker 时，训练进程自己读取和准备每个 batch，其间没有任何工作下发给 GPU。
//! ## 证据
//! 没有给出 `num_workers`，或其所有可能的值都是 0；沿变量名、argparse 默认值和配置文件追踪。
//! ## 怎么改
//! 把 `num_workers` 设为几个（4 是不错的起点；`flatout tune` 会实测最佳值），并加上 `persistent_workers=True`。数据集的张量已经在内存中时保持 0：跨进程复制反而更费时。
//! ## 何时不成立
//! 数据已经在内存中（`TensorDataset`）：这样的 loader 不在此列。不允许 worker 进程的系统。
//! ## 参考
//! PyTorch 文档 `torch.utils.data` “Single- and Multi-process Data Loading”。
//! <https://docs.pytorch.org/docs/stable/data.html>

use crate::rules::prelude::*;

pub const ID: &str = "loader-without-workers";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for call in loader_calls(project, module) {
        if call.splats()
            || in_memory(call)
            || indexes_only(project, module)
            || !project.uses_cuda(module)
            || !trains(project, module)
        {
            continue;
        }
        let workers = call.argument("num_workers", 5);
        let zero = match workers {
            None => true,
            Some(workers) => matches!(workers.values().only(), Some(Value::Integer(0))),
        };
        if !zero || is_for_evaluation(call) || gives_one_batch(call) {
            continue;
        }
        let known = workers.and_then(|workers| workers.values().list.into_iter().next());
        let title = message!(
            en: "the DataLoader has no workers: the training process prepares every batch itself",
            zh: "DataLoader 没有 worker：每个 batch 都由训练进程自己准备"
        );
        let found = match known {
            Some(known) => report.at_known(&known, title),
            None => report.at(call.callee().unwrap_or(call), title),
        };
        if reads_all_in_each_worker(project, module) {
            found.advice(message!(
                en: "set num_workers=1; for more, shard the IterableDataset with get_worker_info(), or every \
                worker reads everything",
                zh: "设置 num_workers=1；要用更多 worker，先用 get_worker_info() 给 IterableDataset 分片，否则每个 worker 都读取全部数据"
            ));
            continue;
        }
        found.advice(message!(
            en: "set num_workers=4 and persistent_workers=True; `flatout tune` finds the best number",
            zh: "设置 num_workers=4 和 persistent_workers=True；`flatout tune` 会测出最佳值"
        ));
    }
}

/// The program's own data is an `IterableDataset`, and nothing in it asks for its worker.
fn reads_all_in_each_worker(project: &Project, module: ModuleId) -> bool {
    let map_style = project
        .program(module)
        .iter()
        .any(|module| !dataset_getitems(project, *module).is_empty());
    !map_style
        && project.program_mentions(module, &["(IterableDataset", ".IterableDataset)"])
        && !project.program_mentions(module, &["get_worker_info", "split_by_worker"])
}

fn trains(project: &Project, module: ModuleId) -> bool {
    project
        .program(module)
        .iter()
        .any(|other| project.flow().trains(project, *other))
}

/// Data that is already in memory gains nothing from workers.
fn in_memory(call: Code<'_>) -> bool {
    let data = call.positional(0).or_else(|| call.keyword("dataset"));
    data.is_some_and(|data| {
        let bound = data.own_bindings().iter().filter_map(|one| match one.bound {
            Bound::Value {
                value,
                position: None,
            } => Some(data.at(value)),
            _ => None,
        });
        let mut made = bound.chain([data]);
        made.any(|made| {
            made.call_name()
                .is_some_and(|name| name.ends_with(".TensorDataset"))
        })
    })
}

/// The program has data sets of its own, and all of them only index what they hold: workers would cost more than they save.
fn indexes_only(project: &Project, module: ModuleId) -> bool {
    let mut own = project
        .program(module)
        .iter()
        .flat_map(|module| dataset_getitems(project, *module))
        .peekable();
    let some = own.peek().is_some();
    let foreign = project.program_mentions(
        module,
        &["torchvision.datasets", "datasets.", "load_dataset", "ImageFolder"],
    );
    some && !foreign && own.all(|method| method.calls_inside().next().is_none())
}

/// `test_loader = DataLoader(…)`: runs seldom.
fn is_for_evaluation(call: Code<'_>) -> bool {
    let statement = call.statement();
    let Kind::Assign { targets, .. } = statement.kind() else {
        return false;
    };
    targets.iter().any(|target| {
        let text = statement.at(*target).text().to_ascii_lowercase();
        ["val", "test", "eval", "dev_"]
            .iter()
            .any(|word| text.contains(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nfrom torch.utils.data import DataLoader\nloader = DataLoader(Images(), batch_size=64, shuffle=True)\nfor x, y in loader:\n    loss = model(x.cuda())\n    loss.backward()\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("train.py", FIRES)]).len(), 1);
        let zero = FIRES.replace("shuffle=True", "num_workers=args.workers")
            + "parser.add_argument('--workers', default=0, type=int)\n";
        assert_eq!(findings_of(ID, &[("train.py", &zero)])[0].place().line, 7);
    }

    #[test]
    fn quiet() {
        let set = FIRES.replace("shuffle=True", "num_workers=4");
        assert!(findings_of(ID, &[("train.py", &set)]).is_empty());
        let unknown = FIRES.replace("shuffle=True", "num_workers=workers()");
        assert!(findings_of(ID, &[("train.py", &unknown)]).is_empty());
    }

    #[test]
    fn an_iterable_dataset_that_is_not_sharded_gets_one_worker() {
        let own = "class Images(torch.utils.data.IterableDataset):\n    def __iter__(self):\n        yield from rows\n";
        let advice = |text: &str| {
            let found = findings_of(ID, &[("train.py", text)]);
            format!("{:?}", found[0])
        };
        assert!(advice(&format!("{FIRES}{own}")).contains("num_workers=1;"));
        let sharded = own.replace("yield from rows", "yield from rows[get_worker_info().id :]");
        assert!(advice(&format!("{FIRES}{sharded}")).contains("num_workers=4 "));
    }

    #[test]
    fn look_alike() {
        let memory = FIRES.replace("Images()", "torch.utils.data.TensorDataset(x, y)");
        assert!(findings_of(ID, &[("train.py", &memory)]).is_empty());
        let own = format!(
            "{FIRES}class Images(torch.utils.data.Dataset):\n    def __getitem__(self, i):\n        return self.x[i]\n"
        );
        assert!(findings_of(ID, &[("train.py", &own)]).is_empty());
        let splat = FIRES.replace("shuffle=True", "**options");
        assert!(findings_of(ID, &[("train.py", &splat)]).is_empty());
    }
}
