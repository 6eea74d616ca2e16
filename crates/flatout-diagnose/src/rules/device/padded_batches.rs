//! # padded-batches
//!
//! ## What it detects
//! Much of each batch is padding: the model computes on tokens without meaning.
//!
//! ## Why it is slow
//! Every sample is padded to the longest one, or to a fixed `max_length`. A transformer spends as much time on a padding token as on
//! a real one.
//!
//! ## Example
//! ```python
//! batch = tokenizer(texts, padding="max_length", max_length=512, return_tensors="pt")
//! ```
//!
//! ## Use instead
//! ```python
//! batch = tokenizer(texts, padding=True, return_tensors="pt")
//! ```
//!
//! ## Evidence
//! The share of padding in the first batches: zeros in the attention mask, or else a value at the end of most rows. Also how much of
//! it is common to all rows of a batch, so that a shorter batch would do.
//!
//! ## Fix
//! Pad to the longest sample of each batch (`DataCollatorWithPadding`, `padding=True` instead of `padding="max_length"`,
//! `pad_sequence` in `collate_fn`), and batch samples of similar length together (`group_by_length=True`, in transformers 5
//! `train_sampling_strategy="group_by_length"`, or a sampler that sorts within buckets).
//!
//! ## When it is wrong
//! Shapes must stay fixed (CUDA graphs, `torch.compile` without dynamic shapes): pad to a few lengths instead. The model skips
//! padding itself (packed sequences, nested tensors).
//!
//! ## References
//! Hugging Face's guides on padding and on `group_by_length`. Krell et al. (2021): half of the tokens in BERT's pretraining data are
//! padding.
//! <https://huggingface.co/docs/transformers/pad_truncation>
//!
//! ---
//! ## 检测什么
//! 每个 batch 里很大一部分是填充：模型在没有意义的 token 上计算。
//! ## 为什么慢
//! 每个样本都与最长的样本或固定的 `max_length` 一样长。transformer 对填充 token 付出与真实 token 同样的代价。
//! ## 证据
//! 最初几个 batch 中填充的占比：attention mask 中的零，否则是多数行末尾的同一个值；以及其中所有行共有、可以直接截短的部分。
//! ## 怎么改
//! 填充到每个 batch 中最长的样本（`DataCollatorWithPadding`，用 `padding=True` 代替 `padding="max_length"`，在 `collate_fn` 中用 `pad_sequence`），并把长度相近的样本放在一起（`group_by_length=True`，transformers 5 起为 `train_sampling_strategy="group_by_length"`；或分桶排序的 sampler）。
//! ## 何时不成立
//! 形状必须一致（CUDA graph、不支持动态形状的 `torch.compile`）：此时填充到少数几种长度。自己会跳过填充的模型（packed sequence、nested tensor）。
//! ## 参考
//! Hugging Face 关于 padding 和 `group_by_length` 的指南。Krell 等（2021）：BERT 预训练数据中一半的 token 是填充。
//! <https://huggingface.co/docs/transformers/pad_truncation>

use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Confidence, Evidence, Message, Severity, message, units};

pub const ID: &str = "padded-batches";
pub const WORST: Severity = Severity::Critical;

/// Less is usual where samples of similar length are put together.
const SHARE: f64 = 0.25;
/// A shorter batch does from this share on.
const TRIM: f64 = 0.1;
/// All of the padding's time may go, and most of what a shorter batch saves surely does. An encoder of two layers whose texts are padded
/// from 56 to 256 tokens: 61 ms of CPU time per step, 10 ms without (2026-11-18); attention grows with the square of the length.
const GOES: f64 = 1.0;
const SURELY: f64 = 0.8;
/// The GPU must be what limits.
const GPU_BUSY: f64 = 0.5;

/// Whether a shorter batch does, without other samples in it.
pub fn trims(analysis: &Analysis) -> bool {
    let trim = analysis
        .of_the_input("padding.trim")
        .and_then(|fact| fact.value.as_f64());
    trim.is_some_and(|trim| trim >= TRIM)
}

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let number = |key: &str| analysis.of_the_input(key).and_then(|fact| fact.value.as_f64());
    let padding = number("padding.share").filter(|share| *share >= SHARE)?;
    let trim = number("padding.trim").unwrap_or(0.0);
    let (stretch, computing) = match analysis.device() {
        Device::Cuda => (
            Stretch::Device,
            analysis.device_busy_share().filter(|busy| *busy >= GPU_BUSY)?,
        ),
        _ => (Stretch::Dispatch, analysis.computing_share()),
    };
    let share = computing * padding * GOES;
    if share < WARNING_SHARE {
        return None;
    }
    let loader = analysis.train_loader().and_then(|loader| loader.place.clone());
    let place = analysis
        .mention(&["padding=\"max_length\"", "padding='max_length'", "pad_sequence("])
        .or(loader);
    let masked = analysis
        .of_the_input("padding.mask")
        .is_some_and(|fact| fact.value == true);
    let shown = units::percent(padding);
    let candidate = Candidate::new(
        ID,
        severity_of(share),
        message!(
            en: "{shown} of the tokens in each batch are padding",
            zh: "每个 batch 中 {shown} 的 token 是填充"
        ),
    )
    .confidence(if masked {
        Confidence::High
    } else {
        Confidence::Medium
    })
    .evidence(analysis.in_run(
        Evidence::new(message!(en: "padding", zh: "填充"), padding * 100.0, "%").against(SHARE * 100.0),
    ))
    .evidence(Evidence::new(
        message!(en: "padding beyond the longest sample of each batch", zh: "超出 batch 中最长样本的填充"),
        trim * 100.0,
        "%",
    ))
    .place(place.as_ref())
    .claims(
        stretch,
        Reach::Specific,
        computing * trim * SURELY * window.wall_s(),
        share * window.wall_s(),
    )
    .code(place.as_ref(), fix(trim));
    if !masked || trim < TRIM {
        return Some(candidate);
    }
    // Only a mask tells for sure what may go.
    Some(candidate.setting(
        "padding.trim",
        None,
        "on",
        message!(
            en: "padding.trim=on cuts each batch to its longest sample",
            zh: "padding.trim=on 把每个 batch 裁到最长的样本"
        ),
    ))
}

fn fix(trim: f64) -> Message {
    if trim >= TRIM {
        message!(
            en: "Pad to the longest sample of each batch: DataCollatorWithPadding, padding=True, or pad_sequence in collate_fn",
            zh: "填充到每个 batch 中最长的样本：DataCollatorWithPadding、padding=True，或在 collate_fn 中用 pad_sequence"
        )
    } else {
        message!(
            en: "Batch samples of similar length together: group_by_length=True (transformers 5: \
            train_sampling_strategy=\"group_by_length\"), or a batch sampler that sorts within buckets",
            zh: "把长度相近的样本放在一起：group_by_length=True（transformers 5：train_sampling_strategy=\"group_by_length\"），或分桶排序的 batch sampler"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};

    fn padded(share: f64, trim: f64) -> Build {
        Build::steady(20)
            .batch(512)
            .fact("device", "cpu")
            .fact("padding.share", share)
            .fact("padding.trim", trim)
            .fact("padding.mask", true)
    }

    #[test]
    fn fires() {
        let fixed = run(check, padded(0.8, 0.6)).unwrap();
        assert!(format!("{:?}", fixed.fixes).contains("DataCollatorWithPadding"));
        let grouped = run(check, padded(0.4, 0.0)).unwrap();
        assert!(!format!("{:?}", grouped.fixes).contains("DataCollatorWithPadding"));
    }

    #[test]
    fn quiet() {
        assert!(run(check, padded(0.1, 0.0)).is_none());
        // A GPU that waits for its host computes on padding in time that is free.
        let idle = padded(0.8, 0.6).gpu(|gpu| gpu.util = Some(0.2));
        assert!(run(check, idle).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
