//! The values. The seeds' rules of thumb, held against what this machine really has.

mod loader;
#[cfg(test)]
mod tests;

use super::{Advice, Model, Question};
use crate::machine::Machine;
use flatout_core::{Message, message, units};

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
    let workers = loader::workers(machine, question, samples_a_batch);
    let any_workers = workers.value != "0";
    let mut all = vec![batch, precision(machine), workers];
    if any_workers {
        all.push(loader::prefetch(question));
        all.push(loader::persistent());
    }
    all.push(loader::pinning(machine));
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
                message!(en: "{batch}: {card} is a GPU of class {class}", zh: "{card} 属于 {class} 一类，取 {batch}"),
            )
        }
        (None, Some(gpu)) => by_memory(gpu.mem_total_bytes),
        (None, None) => (
            CPU_BATCH,
            message!(en: "no GPU: batch size {CPU_BATCH} fills a CPU's vector units", zh: "没有 GPU：{CPU_BATCH} 足以填满 CPU 的向量单元"),
        ),
    };
    let (sized, why) = match question.samples {
        Some(samples) if samples > LARGE_DATA => (
            start * 2,
            and(
                why,
                message!(en: "doubled for datasets above 1M samples", zh: "样本超过 100 万，加倍"),
            ),
        ),
        Some(samples) if samples < SMALL_DATA => (
            start / 2,
            and(
                why,
                message!(en: "halved for datasets below 100k samples", zh: "样本少于 10 万，减半"),
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
            message!(en: "keeps at least {STEPS_AN_EPOCH} steps per epoch", zh: "并保证每轮至少 {STEPS_AN_EPOCH} 步"),
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
        message!(en: "{batch} for a GPU with {shown}", zh: "{shown} 显存取 {batch}"),
    )
}

fn precision(machine: &Machine) -> Advice {
    let Some(gpu) = machine.gpus.first() else {
        return if machine.cpu_bf16 {
            advice(
                "amp",
                "bf16",
                message!(en: "this CPU has bf16 instructions", zh: "本机 CPU 有 bf16 硬件指令"),
            )
        } else {
            advice(
                "amp",
                "off",
                message!(en: "no GPU, and this CPU has no bf16 instructions", zh: "没有 GPU，CPU 也没有 bf16 单元"),
            )
        };
    };
    match gpu.compute_capability {
        Some((major, _)) if major >= 8 => advice(
            "amp",
            "bf16",
            message!(en: "compute capability 8.0 or above: bf16 on tensor cores, no loss scaling needed", zh: "计算能力 8.0 或更高：张量核心支持 bf16，无需损失缩放"),
        ),
        Some((7, minor)) => advice(
            "amp",
            "fp16",
            message!(en: "compute capability 7.{minor}: tensor cores support fp16 only; use a GradScaler", zh: "计算能力 7.{minor}：张量核心只支持 fp16；请配合 GradScaler"),
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
        message!(en: "a starting hidden size for GPUs like {like}; tune it for your task", zh: "{like} 一类的起始宽度；最终由任务决定"),
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
            message!(en: "operations that stay in fp32 then use tensor cores", zh: "仍为 fp32 的部分也使用张量核心"),
        ));
    }
    all.push(advice(
        "optimizer.fused",
        "on",
        message!(en: "one kernel updates all parameters (Adam, AdamW, \
    SGD)", zh: "所有参数一个 kernel（Adam、AdamW、SGD）"),
    ));
    match question.model {
        Some(Model::Convolution) => {
            all.push(advice(
                "channels_last",
                "on",
                message!(en: "convolutions on tensor cores prefer NHWC", zh: "张量核心上的卷积偏好 NHWC"),
            ));
            all.push(advice(
                "cudnn.benchmark",
                "on",
                message!(en: "input shapes stay the same: cuDNN picks \
            the fastest algorithm once", zh: "输入尺寸不变：让 cuDNN 选一次最快算法"),
            ));
            all.push(advice(
                "compile",
                "default",
                message!(en: "fuses the elementwise operations between convolutions", zh: "融合卷积之间的小算子"),
            ));
        }
        Some(Model::Recurrent) => {
            all.push(advice(
                "compile",
                "off",
                message!(en: "torch.compile skips recurrent layers", zh: "torch.compile 会跳过循环层"),
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
    let reason = message!(en: "epochs between evaluations; no training steps run during an evaluation", zh: "每隔几轮评估：评估期间不训练");
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
