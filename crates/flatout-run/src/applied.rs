//! What became of `--apply`: the probe tells which settings it put in force, and why it could not.

use flatout_core::{Message, message};
use flatout_record::RunData;
use serde_json::Value;

/// One line for each setting that was asked for but is not in force.
pub fn not_applied(asked: &[String], data: &RunData) -> Vec<Message> {
    asked
        .iter()
        .filter_map(|setting| {
            let name = setting.split('=').next().unwrap_or(setting).trim();
            let reason = reason_for(name, data)?;
            Some(Message {
                en: format!("{setting} was not applied: {}", reason.en),
                zh: format!("{setting} 未能生效：{}", reason.zh),
            })
        })
        .collect()
}

/// Why one setting is not in force; `None` when it is.
pub fn reason_for(name: &str, data: &RunData) -> Option<Message> {
    let key = format!("apply.{name}");
    let told: Vec<&Value> = data
        .facts
        .iter()
        .filter(|fact| fact.key == key)
        .map(|fact| &fact.value)
        .collect();
    if told.contains(&&Value::Bool(true)) {
        return None;
    }
    Some(reason(told.first().and_then(|value| value.as_str())))
}

/// What a reason's code means.
pub fn reason(code: Option<&str>) -> Message {
    match code {
        Some("slower") => message!(en: "it made the steps slower", zh: "它让训练变慢"),
        Some("slower-later") => {
            message!(en: "later in the run the steps were faster without it", zh: "运行一段时间后，没有它反而更快")
        }
        Some("no-gain") => {
            message!(en: "its gain is within the noise", zh: "它带来的提升在误差范围内")
        }
        Some("no-gain-expected") => {
            message!(en: "the measurements predict no gain", zh: "根据测量结果，预计没有提升")
        }
        Some("cpus-busy") => {
            message!(en: "the CPUs are busy: more workers would not be faster", zh: "CPU 已经繁忙，增加 worker 不会更快")
        }
        Some("too-short") => {
            message!(en: "the run was too short for a trial to pay off", zh: "运行时间太短，不值得试用")
        }
        Some("excluded") => message!(en: "excluded with --without", zh: "已用 --without 排除"),
        Some("not-measured") => {
            message!(en: "the program ended before it could be measured", zh: "程序在测量之前就结束了")
        }
        Some("no-loader") => {
            message!(en: "training does not use a DataLoader", zh: "训练没有使用 DataLoader")
        }
        Some("several-loaders") => {
            message!(en: "training uses several DataLoaders", zh: "有多个 DataLoader 供给训练")
        }
        Some("own-loader") => {
            message!(en: "the program subclasses DataLoader", zh: "程序使用了 DataLoader 的子类")
        }
        Some("no-batching") => {
            message!(en: "the DataLoader does not build batches (batch_size=None)", zh: "DataLoader 不组成 \
            batch（batch_size=None）")
        }
        Some("draws-random") => {
            message!(en: "the dataset draws random numbers, which would differ with other workers", zh: "数据集会取随机数：换用其他 worker 会得到不同的随机数")
        }
        Some("own-generator") => {
            message!(en: "the dataset has its own random generator: each worker would have a copy", zh: "数据集有自己的随机数生成器：每个 worker 会各有一份副本")
        }
        Some("asks-for-worker") => {
            message!(en: "the dataset queries which worker it runs in", zh: "数据集会查询自己运行在哪个 worker 中")
        }
        Some("own-worker-init") => {
            message!(en: "the DataLoader has its own worker_init_fn", zh: "DataLoader 使用自定义的 worker_init_fn")
        }
        Some("own-sampler") => {
            message!(en: "the program has its own sampler: indices must not be drawn ahead of time", zh: "程序使用自定义的 sampler：不能提前取下标")
        }
        Some("open-file") => {
            message!(en: "the dataset holds an open file that workers would share", zh: "数据集持有打开的文件，worker 会共用它")
        }
        Some("unknown-kind" | "too-large") => {
            message!(en: "the dataset holds objects that may not survive a fork", zh: "数据集中有不一定能在 fork 后使用的对象")
        }
        Some("data-on-gpu") => {
            message!(en: "the data is already on the GPU", zh: "数据已经在 GPU 上")
        }
        Some("no-fork") => {
            message!(en: "the program's workers are not forked", zh: "程序的 worker 不是用 fork 启动的")
        }
        Some("no-shared-memory") => {
            message!(en: "/dev/shm is more than half full", zh: "/dev/shm 已用一半以上")
        }
        Some("no-memory") => {
            message!(en: "not enough free memory", zh: "可用内存太少")
        }
        Some("workers-hang") => {
            message!(en: "a worker did not deliver a batch in time; the training process fetched it", zh: "有 worker 未能及时给出 batch，已由训练进程自己取得")
        }
        Some("workers-die") => {
            message!(en: "a worker died; the training process fetched its batches", zh: "有 worker 异常退出，其 batch 已由训练进程自己取得")
        }
        Some("workers-fail") => {
            message!(en: "a worker failed; the training process fetched its batches", zh: "有 worker 出错，其 batch 已由训练进程自己取得")
        }
        Some("writes-into-batch") => {
            message!(en: "the program writes into a batch after copying it", zh: "程序在拷贝之后还会改写 batch")
        }
        Some("no-mask") => {
            message!(en: "the batches have no attention_mask", zh: "batch 中没有 attention_mask")
        }
        Some("labels-in-padding") => {
            message!(en: "labels count where the mask is 0", zh: "mask 为 0 的位置也有计入 loss 的标签")
        }
        Some("left-padding") => {
            message!(en: "padding is on the left and the batches have no position_ids", zh: "padding 在左侧，且 batch 中没有 position_ids")
        }
        Some("does-not-fit") => {
            message!(en: "the data takes more than half of the free GPU memory", zh: "数据超过可用显存的一半")
        }
        Some("shapes-change") => {
            message!(en: "the batches vary in shape", zh: "batch 的形状不固定")
        }
        Some("no-model") => message!(en: "no model was found", zh: "没有找到模型"),
        Some("has-workers") => {
            message!(en: "workers build the batches; use --apply padding.trim=on", zh: "batch 由 worker 生成；请使用 --apply padding.trim=on")
        }
        Some("compiled-already") => message!(en: "the model is already compiled", zh: "模型已经编译过"),
        Some("hurts-loss") => {
            message!(en: "the loss got worse", zh: "loss 变差了")
        }
        Some("loss-unknown") => {
            message!(
                en: "too few losses were seen to check that it does not hurt the training",
                zh: "看到的 loss 太少，无法确认它不影响训练"
            )
        }
        Some("frozen-already") => {
            message!(en: "the program calls gc.freeze() itself", zh: "程序自己调用了 gc.freeze()")
        }
        Some("debugs-gc") => {
            message!(en: "the program debugs the garbage collector", zh: "程序正在调试垃圾回收")
        }
        Some("own-collate") => {
            message!(en: "the DataLoader has its own collate_fn", zh: "DataLoader 使用自定义的 collate_fn")
        }
        Some("own-getitem" | "calls-a-function" | "own-property") => {
            message!(en: "__getitem__ does more than indexing", zh: "__getitem__ 不只是按下标取值")
        }
        Some("own-getitems") => {
            message!(en: "the dataset has its own __getitems__", zh: "数据集有自己的 __getitems__")
        }
        Some("no-source") => {
            message!(en: "the source of __getitem__ cannot be read", zh: "读不到 __getitem__ 的源代码")
        }
        Some("iterable") => {
            message!(en: "the dataset is an IterableDataset: it has no index", zh: "数据集是 IterableDataset，没有下标")
        }
        Some("tensor-kind" | "data-kind" | "data-set-kind" | "data-set-format" | "columns-replaced") => {
            message!(en: "the data is not in plain tensors or arrays", zh: "数据不是普通的张量或数组")
        }
        Some("empty") => message!(en: "the dataset is empty", zh: "数据集为空"),
        Some("differs") => {
            message!(en: "the batches differed from the program's own", zh: "得到的 batch 与程序自己的不相同")
        }
        Some("changes-itself") => {
            message!(en: "the dataset changes itself while it is read", zh: "数据集在读取时会改变自身")
        }
        Some("unknown-setting") => message!(en: "unknown setting", zh: "没有这个设置项"),
        Some("unknown-value") => message!(en: "unknown value", zh: "没有这个取值"),
        Some("no-cuda") => message!(en: "the program does not use a GPU", zh: "程序没有使用 GPU"),
        Some("needs-scaler") => {
            message!(en: "fp16 needs a gradient scaler in the program; bf16 does not", zh: "fp16 需要程序自带梯度缩放；bf16 不需要")
        }
        Some("off-needs-edit") => {
            message!(en: "turning it off requires editing the program", zh: "关闭它需要修改代码")
        }
        Some("every-worker-reads-all") => {
            message!(
                en: "the dataset is an IterableDataset that does not ask for its worker (get_worker_info): \
                every worker would read everything, and samples would repeat",
                zh: "数据集是 IterableDataset，且没有查询自己所在的 worker（get_worker_info）：每个 worker 都会读取全部数据，样本会重复"
            )
        }
        Some("needs-workers") => {
            message!(en: "it needs loader.num_workers above 0", zh: "需要 loader.num_workers 大于 0")
        }
        Some("own-batch-sampler") => {
            message!(en: "the program builds its batches itself", zh: "程序自己组成 batch")
        }
        Some("evaluation-loader") => {
            message!(en: "no DataLoader for training was found", zh: "没有找到训练用的 DataLoader")
        }
        Some("recurrent") => {
            message!(en: "torch.compile skips recurrent layers", zh: "torch.compile 会跳过循环层")
        }
        Some("graphs-need-gpu") => {
            message!(en: "CUDA graphs need a GPU; compiled in the default mode instead", zh: "CUDA graph 需要 GPU；已改用默认模式编译")
        }
        Some("no-mallopt") => {
            message!(en: "the C library has no setting to keep freed memory", zh: "C 库不支持保留内存的设置")
        }
        Some("no-convolution") => {
            message!(en: "the model has no convolutions", zh: "模型中没有卷积")
        }
        Some("not-supported") => {
            message!(en: "the optimizer does not support it", zh: "该优化器不支持")
        }
        _ => message!(en: "the program never reached it", zh: "程序没有用到它"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_record::Fact;

    fn data(facts: &[(&str, Value)]) -> RunData {
        let fact = |(key, value): &(&str, Value)| Fact {
            t: 0.0,
            key: (*key).to_owned(),
            value: value.clone(),
            scope: None,
            place: None,
        };
        RunData {
            facts: facts.iter().map(fact).collect(),
            ..RunData::default()
        }
    }

    #[test]
    fn lists_only_settings_not_in_effect() {
        let data = data(&[
            ("apply.tf32", Value::from("no-cuda")),
            ("apply.loader.num_workers", Value::from(true)),
        ]);
        let asked = ["tf32=on", "loader.num_workers=2", "amp=bf16"].map(str::to_owned);
        let told = not_applied(&asked, &data);
        assert_eq!(told.len(), 2);
        assert!(told[0].en.contains("does not use a GPU") && told[1].en.starts_with("amp=bf16"));
    }
}
