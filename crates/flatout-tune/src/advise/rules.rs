//! The values. The seeds' rules of thumb, held against what this machine really has.

use super::{Advice, Model, Question};
use crate::machine::Machine;
use flatout_core::{Message, message, units};

/// The seeds' formula: never more than this many workers a GPU.
const MOST_WORKERS: u64 = 8;
/// The seeds' formula: a worker for each so many samples of a batch.
const SAMPLES_A_WORKER: u64 = 32;
/// The seeds' rule for several GPUs: `min(workers × GPUs, 32)`.
const MOST_WORKERS_ALL: u64 = 32;
/// What a worker with torch loaded takes at least.
const WORKER_BYTES: u64 = 512 << 20;
/// The seeds' bounds of a large and a small data set.
const LARGE_DATA: u64 = 1_000_000;
const SMALL_DATA: u64 = 100_000;
/// An epoch keeps at least so many steps, so that the optimizer has something to do.
const STEPS_AN_EPOCH: u64 = 20;
/// Without a GPU: the batch of the smallest class.
const CPU_BATCH: u64 = 128;

pub fn all(machine: &Machine, question: &Question) -> Vec<Advice> {
    let batch = batch(machine, question);
    let samples_a_batch: u64 = batch.value.parse().unwrap_or(CPU_BATCH);
    let workers = workers(machine, question, samples_a_batch);
    let any_workers = workers.value != "0";
    let mut all = vec![batch, precision(machine), workers];
    if any_workers {
        all.push(prefetch(question));
        all.push(persistent());
    }
    all.push(pinning(machine));
    all.extend(hidden(machine, question));
    all.extend(switches(machine, question));
    all.extend(intervals());
    all
}

fn advice(key: &'static str, value: impl ToString, reason: Message) -> Advice {
    Advice {
        key,
        value: value.to_string(),
        reason,
    }
}

fn batch(machine: &Machine, question: &Question) -> Advice {
    let figures = machine.figures();
    let (start, why) = match (figures, machine.gpus.first()) {
        (Some(figures), _) => {
            let (card, class) = (figures.name(), &figures.class.like);
            let batch = figures.class.batch;
            (
                batch,
                message!(en: "{batch}: a {card} is of the class {class}", zh: "{card} 属于 {class} 一类，取 {batch}"),
            )
        }
        (None, Some(gpu)) => by_memory(gpu.mem_total_bytes),
        (None, None) => (
            CPU_BATCH,
            message!(en: "no GPU: {CPU_BATCH} fills a CPU's vector units", zh: "没有 GPU：{CPU_BATCH} 足以填满 CPU 的向量单元"),
        ),
    };
    let (sized, why) = match question.samples {
        Some(samples) if samples > LARGE_DATA => (
            start * 2,
            and(
                why,
                message!(en: "doubled for more than 1M samples", zh: "样本超过 100 万，加倍"),
            ),
        ),
        Some(samples) if samples < SMALL_DATA => (
            start / 2,
            and(
                why,
                message!(en: "halved for fewer than 100k samples", zh: "样本少于 10 万，减半"),
            ),
        ),
        _ => (start, why),
    };
    let most = question
        .samples
        .map_or(u64::MAX, |samples| (samples / STEPS_AN_EPOCH).max(1));
    if sized > most {
        let reason = and(
            why,
            message!(en: "and an epoch keeps {STEPS_AN_EPOCH} steps", zh: "并保证每轮至少 {STEPS_AN_EPOCH} 步"),
        );
        return advice("loader.batch_size", previous_power_of_two(most), reason);
    }
    advice("loader.batch_size", sized, why)
}

fn previous_power_of_two(most: u64) -> u64 {
    if most.is_power_of_two() {
        most
    } else {
        most.next_power_of_two() / 2
    }
}

/// A card without figures: the seeds' classes by memory.
fn by_memory(bytes: Option<u64>) -> (u64, Message) {
    let gigabytes = bytes.map(|bytes| bytes as f64 / 1e9);
    let batch = match gigabytes {
        Some(memory) if memory >= 38.0 => 512,
        Some(memory) if memory >= 22.0 => 256,
        _ => 128,
    };
    let shown = bytes.map_or("?".into(), |bytes| units::bytes(bytes as f64));
    (
        batch,
        message!(en: "{batch} for a card with {shown}", zh: "{shown} 显存取 {batch}"),
    )
}

fn workers(machine: &Machine, question: &Question, batch: u64) -> Advice {
    let usable = machine.cpus.count() as u64;
    let gpus = machine.gpus.len().max(1) as u64;
    let formula = (usable / 2)
        .min(MOST_WORKERS)
        .min((batch / SAMPLES_A_WORKER).max(1));
    let online = machine.cpus.online;
    let limits = message!(
        en: "min(cores/2, {MOST_WORKERS}, batch/{SAMPLES_A_WORKER}) with {usable} usable CPUs (of {online}; affinity and cgroup)",
        zh: "min(核数/2, {MOST_WORKERS}, batch/{SAMPLES_A_WORKER})，可用 CPU 为 {usable} 个（共 {online} 个；按 affinity 与 cgroup）"
    );
    if usable < 2 {
        let reason = message!(en: "only {usable} CPU is usable: a worker would take it from the training", zh: "只有 {usable} 个可用 CPU：worker 会与训练抢占");
        return advice("loader.num_workers", 0, reason);
    }
    let mut count = formula;
    let mut reason = limits;
    if gpus > 1 {
        count = (formula * gpus)
            .min(MOST_WORKERS_ALL)
            .min(usable.saturating_sub(gpus).max(1));
        reason = and(
            reason,
            message!(en: "for all {gpus} GPUs together: min(workers × GPUs, {MOST_WORKERS_ALL}), within the CPUs", zh: "{gpus} 个 GPU 合计：min(workers × GPU 数, {MOST_WORKERS_ALL})，且不超过 CPU"),
        );
    }
    if question.samples.is_some_and(|samples| samples < SMALL_DATA) && count > 4 {
        count = 4;
        reason = and(
            reason,
            message!(en: "4 for fewer than 100k samples", zh: "样本少于 10 万，取 4"),
        );
    }
    let by_memory = machine
        .memory_bytes
        .map_or(u64::MAX, |bytes| bytes / 2 / WORKER_BYTES);
    if count > by_memory {
        count = by_memory;
        let memory = units::bytes(machine.memory_bytes.unwrap_or_default() as f64);
        reason = and(
            reason,
            message!(en: "half of {memory} holds {count}", zh: "{memory} 内存的一半可容纳 {count} 个"),
        );
    }
    advice("loader.num_workers", count, reason)
}

fn prefetch(question: &Question) -> Advice {
    if question.samples.is_some_and(|samples| samples > LARGE_DATA) {
        let reason = message!(en: "more than 1M samples: a deeper queue evens out slow reads", zh: "样本超过 100 万：更深的队列可抹平慢读取");
        return advice("loader.prefetch_factor", 4, reason);
    }
    advice(
        "loader.prefetch_factor",
        2,
        message!(en: "two batches a worker; 4 when waits come in bursts", zh: "每个 worker 预取两个 batch；等待成串出现时取 4"),
    )
}

fn persistent() -> Advice {
    let reason = message!(en: "workers are not started anew each epoch", zh: "不必每轮重新启动 worker");
    advice("loader.persistent_workers", "on", reason)
}

fn pinning(machine: &Machine) -> Advice {
    if machine.gpus.is_empty() {
        return advice(
            "loader.pin_memory",
            "off",
            message!(en: "there is no GPU to copy to", zh: "没有需要拷贝到的 GPU"),
        );
    }
    advice(
        "loader.pin_memory",
        "on",
        message!(en: "copies from pinned memory run beside the computation (with non_blocking=True)", zh: "锁页内存的拷贝可与计算并行（配合 non_blocking=True）"),
    )
}

fn precision(machine: &Machine) -> Advice {
    let Some(gpu) = machine.gpus.first() else {
        return if machine.cpu_bf16 {
            advice(
                "amp",
                "bf16",
                message!(en: "this CPU multiplies bf16 in hardware", zh: "本机 CPU 有 bf16 硬件指令"),
            )
        } else {
            advice(
                "amp",
                "off",
                message!(en: "no GPU, and this CPU has no bf16 units", zh: "没有 GPU，CPU 也没有 bf16 单元"),
            )
        };
    };
    match gpu.compute_capability {
        Some((major, minor)) if major >= 8 => advice(
            "amp",
            "bf16",
            message!(en: "compute capability {major}.{minor}: bf16 on tensor cores, no loss scaling needed", zh: "计算能力 {major}.{minor}：张量核心支持 bf16，无需损失缩放"),
        ),
        Some((7, minor)) => advice(
            "amp",
            "fp16",
            message!(en: "compute capability 7.{minor}: tensor cores know fp16 only; use a GradScaler", zh: "计算能力 7.{minor}：张量核心只支持 fp16；请配合 GradScaler"),
        ),
        Some((major, minor)) => advice(
            "amp",
            "off",
            message!(en: "compute capability {major}.{minor} has no tensor cores", zh: "计算能力 {major}.{minor} 没有张量核心"),
        ),
        None => advice(
            "amp",
            "off",
            message!(en: "the compute capability is unknown", zh: "计算能力未知"),
        ),
    }
}

fn hidden(machine: &Machine, question: &Question) -> Option<Advice> {
    let class = &machine.figures()?.class;
    if question.model == Some(Model::Convolution) {
        return None;
    }
    let like = &class.like;
    Some(advice(
        "hidden_size",
        class.hidden,
        message!(en: "a starting width for cards like {like}; the task decides", zh: "{like} 一类的起始宽度；最终由任务决定"),
    ))
}

fn switches(machine: &Machine, question: &Question) -> Vec<Advice> {
    let mut all = Vec::new();
    let Some(gpu) = machine.gpus.first() else {
        return all;
    };
    if gpu.compute_capability.is_some_and(|(major, _)| major >= 8) {
        all.push(advice(
            "tf32",
            "on",
            message!(en: "what stays in fp32 runs on tensor cores", zh: "仍为 fp32 的部分也使用张量核心"),
        ));
    }
    all.push(advice("optimizer.fused", "on", message!(en: "one kernel for all parameters (Adam, AdamW, SGD)", zh: "所有参数一个 kernel（Adam、AdamW、SGD）")));
    match question.model {
        Some(Model::Convolution) => {
            all.push(advice(
                "channels_last",
                "on",
                message!(en: "convolutions on tensor cores want NHWC", zh: "张量核心上的卷积偏好 NHWC"),
            ));
            all.push(advice("cudnn.benchmark", "on", message!(en: "input shapes stay the same: let cuDNN choose once", zh: "输入尺寸不变：让 cuDNN 选一次最快算法")));
            all.push(advice(
                "compile",
                "default",
                message!(en: "fuses the small operations between convolutions", zh: "融合卷积之间的小算子"),
            ));
        }
        Some(Model::Recurrent) => {
            all.push(advice(
                "compile",
                "off",
                message!(en: "torch.compile passes over recurrent layers", zh: "torch.compile 会跳过循环层"),
            ));
        }
        Some(Model::Dense | Model::Transformer) => {
            all.push(advice(
                "compile",
                "default",
                message!(en: "fewer kernels and launches", zh: "减少 kernel 数量和下发次数"),
            ));
        }
        None => {}
    }
    all
}

fn intervals() -> [Advice; 2] {
    let reason = message!(en: "epochs between evaluations: each one empties the GPU's queue", zh: "每隔几轮评估：每次评估都会让 GPU 队列变空");
    let saving = message!(en: "epochs between checkpoints", zh: "每隔几轮保存检查点");
    [
        advice("eval_interval", 5, reason),
        advice("checkpoint_interval", 5, saving),
    ]
}

fn and(first: Message, second: Message) -> Message {
    Message {
        en: format!("{}; {}", first.en, second.en),
        zh: format!("{}；{}", first.zh, second.zh),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(machine: &Machine, question: &Question, key: &str) -> Option<String> {
        all(machine, question)
            .into_iter()
            .find(|advice| advice.key == key)
            .map(|advice| advice.value)
    }

    fn machine(gpu: &str, gpus: usize, cpus: usize) -> Machine {
        let mut machine = Machine::here().with_gpu(gpu, gpus).unwrap().with_cpus(cpus);
        machine.memory_bytes = Some(256 << 30);
        machine
    }

    #[test]
    fn the_seeds_table_and_formula() {
        let question = Question::default();
        for (gpu, batch) in [("A100", "512"), ("RTX 3090", "256"), ("RTX 2080", "128")] {
            assert_eq!(
                value(&machine(gpu, 1, 20), &question, "loader.batch_size").as_deref(),
                Some(batch)
            );
        }
        // Their own case: 20 cores, batch 512.
        assert_eq!(
            value(&machine("A100", 1, 20), &question, "loader.num_workers").as_deref(),
            Some("8")
        );
        assert_eq!(
            value(&machine("RTX 3090", 4, 64), &question, "loader.num_workers").as_deref(),
            Some("32")
        );
    }

    #[test]
    fn the_machine_wins_over_the_formula() {
        let question = Question::default();
        assert_eq!(
            value(&machine("A100", 1, 2), &question, "loader.num_workers").as_deref(),
            Some("1")
        );
        assert_eq!(
            value(&machine("A100", 1, 1), &question, "loader.num_workers").as_deref(),
            Some("0")
        );
        assert_eq!(
            value(&machine("A100", 4, 8), &question, "loader.num_workers").as_deref(),
            Some("4")
        );
    }

    #[test]
    fn data_and_model_count() {
        let one = machine("A100", 1, 32);
        let sized = |samples| Question {
            samples: Some(samples),
            ..Question::default()
        };
        assert_eq!(
            value(&one, &sized(5_000_000), "loader.batch_size").as_deref(),
            Some("1024")
        );
        assert_eq!(
            value(&one, &sized(5_000_000), "loader.prefetch_factor").as_deref(),
            Some("4")
        );
        assert_eq!(
            value(&one, &sized(50_000), "loader.num_workers").as_deref(),
            Some("4")
        );
        assert_eq!(
            value(&one, &sized(1_000), "loader.batch_size").as_deref(),
            Some("32")
        );
        let recurrent = Question {
            model: Some(Model::Recurrent),
            ..Question::default()
        };
        assert_eq!(value(&one, &recurrent, "compile").as_deref(), Some("off"));
        assert_eq!(
            value(&machine("V100", 1, 8), &recurrent, "amp").as_deref(),
            Some("fp16")
        );
        assert_eq!(value(&machine("V100", 1, 8), &recurrent, "tf32"), None);
    }
}
