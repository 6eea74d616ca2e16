//! # workers-beyond-usable-cpus
//!
//! ## What it detects
//! A `DataLoader`'s `num_workers` exceeds the CPUs declared in the lint settings (`cpus`), or 16 if none are declared. flatout
//! follows the value through names, argparse defaults and configuration files.
//!
//! ## Why it is slow
//! Each worker is a process with its own copy of the dataset's memory. More workers than CPUs only take turns: loading gets slower,
//! while memory use and context switches grow.
//!
//! ## Example
//! ```python
//! loader = DataLoader(dataset, num_workers=os.cpu_count())  # 64, but the job has 4 CPUs
//! ```
//!
//! ## Use instead
//! ```python
//! loader = DataLoader(dataset, num_workers=len(os.sched_getaffinity(0)) - 1)
//! ```
//!
//! ## Evidence
//! The value in the source or the configuration, compared with the number of CPUs.
//!
//! ## Fix
//! Use about one worker per CPU that the training process leaves free; `flatout tune` finds the best number.
//!
//! ## When it is wrong
//! The machine has many CPUs and decoding is expensive. Declare `cpus` in the settings, or suppress the finding on this line.
//!
//! ## References
//! Lightning issue 19391: no gain beyond 16 workers. spdl issue 303: 446 samples/s with 4 workers, 92 with 32.
//! <https://github.com/Lightning-AI/pytorch-lightning/issues/19391>
//!
//! ---
//! ## 检测什么
//! `DataLoader` 的 `num_workers` 超过设置中写明的 CPU 数（`cpus`），没有写明时超过 16。数值沿变量名、argparse 默认值和配置文件追踪。
//! ## 为什么慢
//! 每个 worker 都是一个进程，有自己的一份数据集内存。多于 CPU 的 worker 只会轮流运行：loader 变慢，内存和上下文切换增多。
//! ## 证据
//! 源码或配置中写的值，对比 CPU 数。
//! ## 怎么改
//! 大约为训练进程之外剩下的每个 CPU 配一个 worker；`flatout tune` 会实测最佳数量。
//! ## 何时不成立
//! CPU 很多且解码很重的机器。请在设置中写明 `cpus`，或对该行关闭规则。
//! ## 参考
//! 超过 16 个 worker 没有收益：Lightning#19391。4 个 worker 时 446 样本/秒，32 个时 92：spdl#303。
//! <https://github.com/Lightning-AI/pytorch-lightning/issues/19391>

use crate::rules::prelude::*;
use flatout_core::Message;

pub const ID: &str = "workers-beyond-usable-cpus";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Module(check);

/// Where the CPUs are not known: no report of more workers helping is known above it (Lightning#19391).
const MOST_WORKERS: u32 = 16;

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    let most = project.facts.cpus.unwrap_or(MOST_WORKERS);
    for call in loader_calls(project, module) {
        let Some(workers) = call.argument("num_workers", 5) else {
            continue;
        };
        for known in &workers.values().list {
            let Value::Integer(count) = known.value else {
                continue;
            };
            if count <= i64::from(most) {
                continue;
            }
            let limit = match project.facts.cpus {
                Some(cpus) => message!(en: "{cpus} CPUs", zh: "{cpus} 个 CPU"),
                None => {
                    message!(en: "{most}, beyond which no benefit is known", zh: "{most}（没有超过此数仍有收益的先例）")
                }
            };
            let found = report.at_known(
                known,
                Message {
                    en: format!(
                        "one DataLoader has {count} workers; the limit is {limit_en}",
                        limit_en = limit.en
                    ),
                    zh: format!(
                        "一个 DataLoader 用了 {count} 个 worker，上限为 {limit_zh}",
                        limit_zh = limit.zh
                    ),
                },
            );
            if matches!(known.origin, Origin::Config { .. })
                || !matches!(known.origin, Origin::Code(code) if call.contains(code))
            {
                found.see(call.place());
            }
            found.advice(message!(
                en: "start with 8 workers, or one less than the CPUs of the job; `flatout tune` finds the \
                best number",
                zh: "先用 8 个，或作业可用 CPU 数减一；`flatout tune` 会测出最佳值"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires() {
        let code = "from torch.utils.data import DataLoader as DL\nloader = DL(data, num_workers=config['train']['num_workers'])\n";
        let found = findings_of(
            ID,
            &[("config.yaml", "train:\n  num_workers: 28\n"), ("train.py", code)],
        );
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place().file.to_str(), Some("config.yaml"));
        let option = "import argparse, torch\np = argparse.ArgumentParser()\np.add_argument('--num-workers', type=int, default=40)\nargs = p.parse_args()\nloader = torch.utils.data.DataLoader(d, num_workers=args.num_workers)\n";
        assert_eq!(findings_of(ID, &[("train.py", option)]).len(), 1);
    }

    #[test]
    fn quiet() {
        let code = "import torch\nloader = torch.utils.data.DataLoader(data, num_workers=8)\n";
        assert!(findings_of(ID, &[("train.py", code)]).is_empty());
    }

    #[test]
    fn look_alike() {
        let code =
            "from mine import DataLoader\nloader = DataLoader(data, num_workers=64)\nserve(num_workers=64)\n";
        assert!(findings_of(ID, &[("train.py", code)]).is_empty());
    }
}
