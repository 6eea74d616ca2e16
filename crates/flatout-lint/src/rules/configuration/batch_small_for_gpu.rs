//! # batch-small-for-gpu
//!
//! ## What it detects
//! The training batch size is below 16, and the lint settings declare a GPU of 40 GiB or more. Without a declared GPU the rule does
//! not fire.
//!
//! ## Why it is slow
//! A large GPU computes a small batch in less time than Python needs to launch it. Most of its SMs and almost all of its memory are
//! idle.
//!
//! ## Example
//! ```yaml
//! batch_size: 8   # on an 80 GiB GPU
//! learning_rate: 1e-4
//! ```
//!
//! ## Use instead
//! ```yaml
//! batch_size: 256
//! learning_rate: 5e-4
//! ```
//!
//! ## Evidence
//! The value of `batch_size`, followed through names, argparse defaults and configuration files, compared with `gpu-memory-gib` in
//! the settings. This is informational.
//!
//! ## Fix
//! Increase the batch size until the time per step grows with it, and scale the learning rate with it (linearly or by the square
//! root). `flatout tune` measures where that is.
//!
//! ## When it is wrong
//! A single sample fills the memory: long sequences, volumes, large language models.
//!
//! ## References
//! SageMaker Debugger considers a batch small if GPU, CPU and memory utilization are all below 70%. McCandlish et al., "An Empirical
//! Model of Large-Batch Training" (2018).
//! <https://arxiv.org/abs/1812.06162>
//!
//! ---
//! ## 检测什么
//! 设置中写明 GPU 有 40 GiB 或更多显存，而训练 loader 的 batch 小于 16。没有写明 GPU 时本规则不会报告。
//! ## 为什么慢
//! 大 GPU 计算一个小 batch 的时间比 Python 下发它的时间还短。大部分计算单元和几乎全部显存都闲着。
//! ## 证据
//! `batch_size` 的值（沿变量名、argparse 默认值和配置文件追踪），对比设置中的 `gpu-memory-gib`。只作提示。
//! ## 怎么改
//! 增大 batch，直到单步时间随之增长，学习率也随之缩放（线性或平方根）；`flatout tune` 会实测这个点。
//! ## 何时不成立
//! 单个样本就能占满显存的模型：长序列、三维体数据、大语言模型。
//! ## 参考
//! batch 太小：GPU、CPU 和内存的使用率都低于 70%（SageMaker Debugger 的规则）。McCandlish 等，“An Empirical Model of Large-Batch Training”。
//! <https://arxiv.org/abs/1812.06162>

use crate::rules::prelude::*;

pub const ID: &str = "batch-small-for-gpu";
pub const SEVERITY: Severity = Severity::Information;
pub const CHECK: Check = Check::Module(check);

/// From this size on a batch below [`SMALLEST_BATCH`] leaves most of the memory idle for all but the largest models.
const LARGE_GPU_GIB: u32 = 40;
const SMALLEST_BATCH: i64 = 16;

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    let Some(memory) = project
        .facts
        .gpu_memory_gib
        .filter(|memory| *memory >= LARGE_GPU_GIB)
    else {
        return;
    };
    for call in loader_calls(project, module) {
        let shuffles = call
            .keyword("shuffle")
            .is_some_and(|shuffle| shuffle.as_boolean() == Some(true));
        let Some(size) = call.argument("batch_size", 1).filter(|_| shuffles) else {
            continue;
        };
        for known in &size.values().list {
            let Value::Integer(batch) = known.value else {
                continue;
            };
            if (1..SMALLEST_BATCH).contains(&batch) {
                report
                    .at_known(
                        known,
                        message!(
                            en: "batch size {batch} is small for a {memory} GiB GPU",
                            zh: "{memory} GiB 的 GPU 上 batch 只有 {batch}"
                        ),
                    )
                    .confidence(Confidence::Low)
                    .advice(message!(
                        en: "increase the batch size and scale the learning rate with it; `flatout tune` \
                        measures how far to go",
                        zh: "增大 batch，并相应提高学习率；`flatout tune` 会测出合适的大小"
                    ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::Facts;
    use crate::testing::findings_with;

    const FIRES: &str =
        "import torch\nloader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)\n";
    const LARGE: Facts = Facts {
        cpus: None,
        gpu_memory_gib: Some(80),
    };

    #[test]
    fn fires() {
        assert_eq!(findings_with(ID, &[("train.py", FIRES)], LARGE).len(), 1);
    }

    #[test]
    fn quiet() {
        assert!(findings_of(ID, &[("train.py", FIRES)]).is_empty());
        assert!(findings_with(ID, &[("train.py", &FIRES.replace("=8", "=256"))], LARGE).is_empty());
    }

    #[test]
    fn look_alike() {
        // For evaluation one at a time is often meant.
        assert!(
            findings_with(
                ID,
                &[("test.py", &FIRES.replace("shuffle=True", "shuffle=False"))],
                LARGE
            )
            .is_empty()
        );
    }
}
