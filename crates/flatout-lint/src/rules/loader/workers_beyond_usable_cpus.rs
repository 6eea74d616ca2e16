//! # workers-beyond-usable-cpus
//!
//! ## What it detects
//! A `DataLoader` whose `num_workers` is above the CPUs stated in the settings (`cpus`), or above 16 where none are stated. The number is
//! followed through names, argparse defaults and configuration files.
//!
//! ## Why it is slow
//! Each worker is a process with its own copy of the data set's memory. More of them than CPUs only take turns: the loader gets
//! slower while memory and context switches grow.
//!
//! ## Evidence
//! The value written in the source or the configuration, against the number of CPUs.
//!
//! ## Fix
//! Use about one worker for each CPU that is left over from the training process; `flatout tune` measures the best number.
//!
//! ## When it is wrong
//! On a machine with many CPUs and heavy decoding. State `cpus` in the settings, or silence the line.
//!
//! ## References
//! No gain past 16 workers: Lightning#19391. 446 samples/s with 4 workers, 92 with 32: spdl#303.
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
                    message!(en: "{most}, above which no gain is known", zh: "{most}（没有超过此数仍有收益的先例）")
                }
            };
            let found = report.at_known(
                known,
                Message {
                    en: format!(
                        "{count} workers for one DataLoader, against {limit_en}",
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
                en: "start with 8, or the CPUs the job has less one; `flatout tune` finds the best number",
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
