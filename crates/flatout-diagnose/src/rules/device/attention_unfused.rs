//! # attention-unfused
//!
//! ## What it detects
//! Attention runs as two matrix multiplications with a softmax in between, and these kernels take a large part of the step. Either
//! the program writes attention this way, or `scaled_dot_product_attention` fell back to its math kernel.
//!
//! ## Why it is slow
//! The score matrix (tokens × tokens per head) is written to memory and read back several times, in forward and in backward. A fused
//! kernel (FlashAttention, memory-efficient attention) never writes it.
//!
//! ## Example
//! ```python
//! scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
//! out = scores.softmax(dim=-1) @ v
//! ```
//!
//! ## Use instead
//! ```python
//! out = F.scaled_dot_product_attention(q, k, v)
//! ```
//!
//! ## Evidence
//! The autograd graph of a few steps: a softmax between two batched matmuls, and its width in tokens. If the GPU was traced: the time
//! in softmax kernels and the line that launched them.
//!
//! ## Fix
//! Use `torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=…)`; in transformers, `attn_implementation="sdpa"`. If it
//! fell back to the math kernel: use fp16 or bf16, a head size of at most 256 and a mask without gradient, and pass
//! `need_weights=False` to `nn.MultiheadAttention`.
//!
//! ## When it is wrong
//! The program needs the attention weights themselves. Short sequences (up to about 64 tokens) gain little.
//!
//! ## References
//! Dao et al., "FlashAttention" (2022): 2 to 4 times faster than separate kernels. PyTorch's documentation of
//! `scaled_dot_product_attention` lists the requirements of each kernel.
//! <https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html>
//!
//! ---
//! ## 检测什么
//! attention 以两次矩阵乘法加中间的 softmax 运行，其 kernel 占了一步的相当一部分。要么程序就是这样写的，要么 `scaled_dot_product_attention` 退回到了 math 实现。
//! ## 为什么慢
//! 每个头的 token × token 分数矩阵在前向和反向中多次写入内存再读出。融合 kernel（FlashAttention、memory-efficient attention）从不写出它。
//! ## 证据
//! 几步的计算图：两次批量矩阵乘法之间的 softmax，以及 token 数。跟踪到 GPU 时：softmax kernel 的时间，以及下发它们的代码行。
//! ## 怎么改
//! `torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=…)`；transformers 中用 `attn_implementation="sdpa"`。若是退回：用 fp16 或 bf16、head 维度不超过 256、mask 不需要梯度；`nn.MultiheadAttention` 用 `need_weights=False`。
//! ## 何时不成立
//! 程序要用 attention 权重本身。短序列（约 64 个 token 以内）收益很小。
//! ## 参考
//! Dao 等《FlashAttention》（2022）：比分开的 kernel 快 2 到 4 倍。PyTorch 的 `scaled_dot_product_attention` 页面列出了各实现的要求。
//! <https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html>

use crate::analysis::kernels::MEMORY_BOUND;
use crate::analysis::{Analysis, Device};
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Confidence, Evidence, Message, Severity, message, units};
use flatout_record::KernelKind;

pub const ID: &str = "attention-unfused";
pub const WORST: Severity = Severity::Critical;

/// A matrix of scores of fewer tokens stays in the cache.
const TOKENS: f64 = 64.0;
/// Beside its softmax, attention has its masks, scalings and dropout as separate kernels of the same size, and both matmuls: their
/// time is at least that of the softmax.
const GOES: f64 = 2.0;
/// Of the memory-bound kernels of such a step, what works on the scores.
const AROUND: f64 = 0.8;
const SURELY: f64 = 0.5;
/// From this many tokens on, the scores are larger than everything else of a layer: all memory-bound kernels and half of the matmuls are
/// attention's. Two encoders of 4,096 tokens on an H200 became 5.4 and 8.0 times as fast with scaled_dot_product_attention.
const LONG: f64 = 1024.0;
const SURELY_LONG: f64 = 0.75;
const MATMULS: f64 = 0.5;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let facts = &analysis.facts;
    let count = facts.number("attention.unfused").filter(|count| *count >= 1.0)?;
    let tokens = facts
        .number("attention.tokens")
        .filter(|tokens| *tokens > TOKENS)?;
    if analysis.device() != Device::Cuda {
        return None;
    }
    let kernels = analysis.kernels.as_ref()?;
    let softmax = kernels.share(&[KernelKind::Softmax]);
    // Masks, scaling and dropout over the same matrix of scores are elementwise kernels.
    let memory_bound = kernels.share(&MEMORY_BOUND);
    let matmuls = kernels.share(&[KernelKind::TensorCore, KernelKind::MatrixFp32]) * MATMULS;
    // Those over the scores take less than reading and writing the scores does.
    let matmuls = matmuls.min(memory_bound * 0.3);
    let (surely, over_scores) = if tokens >= LONG {
        (memory_bound * SURELY_LONG, memory_bound + matmuls)
    } else {
        (softmax * SURELY, memory_bound * AROUND)
    };
    let share = (softmax * GOES)
        .max(over_scores)
        .min(analysis.device_busy_share()?);
    if share < WARNING_SHARE {
        return None;
    }
    let fell_back = facts.number("attention.math").is_some_and(|math| math >= count);
    let line = kernels
        .line_of(&[KernelKind::Softmax])
        .map(|line| line.place())
        .or_else(|| analysis.mention(&["scaled_dot_product_attention", "softmax("]));
    Some(
        Candidate::new(ID, severity_of(share), title(fell_back, count, tokens))
            .confidence(Confidence::High)
            .evidence(analysis.in_window(Evidence::new(
                message!(en: "time in softmax kernels", zh: "softmax kernel 的时间"),
                softmax * 100.0,
                "%",
            )))
            .evidence(Evidence::new(message!(en: "tokens", zh: "token 数"), tokens, "").against(TOKENS))
            .place(line.as_ref())
            .claims(
                Stretch::Device,
                Reach::Specific,
                surely.min(share) * window.wall_s(),
                share * window.wall_s(),
            )
            .code(line.as_ref(), fix(fell_back)),
    )
}

fn title(fell_back: bool, count: f64, tokens: f64) -> Message {
    let (count, tokens) = (units::count(count), units::count(tokens));
    if fell_back {
        message!(
            en: "scaled_dot_product_attention falls back to its math kernel ({count} per step, {tokens} tokens)",
            zh: "scaled_dot_product_attention 退回到 math 实现（每步 {count} 次，{tokens} 个 token）"
        )
    } else {
        message!(
            en: "Attention runs as separate kernels ({count} per step, {tokens} tokens)",
            zh: "attention 以分开的 kernel 运行（每步 {count} 次，{tokens} 个 token）"
        )
    }
}

fn fix(fell_back: bool) -> Message {
    if fell_back {
        message!(
            en: "Use bf16 or fp16, a head size of at most 256 and a mask without gradient; leave the flash \
            and memory-efficient kernels enabled",
            zh: "使用 bf16 或 fp16、不超过 256 的 head 维度和不需要梯度的 mask；不要禁用 flash 与 memory-efficient 实现"
        )
    } else {
        message!(
            en: "Use F.scaled_dot_product_attention(q, k, v, is_causal=…); in transformers, \
            attn_implementation=\"sdpa\"",
            zh: "F.scaled_dot_product_attention(q, k, v, is_causal=…)；transformers 中用 attn_implementation=\"sdpa\""
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, check as run, check_empty};
    use flatout_core::Place;

    fn separate(softmax_ms: f64, tokens: u64) -> Build {
        Build::steady(20)
            .batch(512)
            .gpu(|gpu| gpu.util = Some(0.95))
            .fact("amp.dtype", "bf16")
            .fact("attention.unfused", 12)
            .fact("attention.tokens", tokens)
            .kernels(&[(KernelKind::Softmax, softmax_ms), (KernelKind::TensorCore, 700.0)])
            .launch(
                &["main (t.py:9)", "attend (t.py:4)"],
                KernelKind::Softmax,
                softmax_ms,
            )
    }

    #[test]
    fn fires() {
        let finding = run(check, separate(200.0, 1024)).unwrap();
        assert_eq!(finding.places, [Place::new("t.py", 4)]);
        assert!(finding.title.en.starts_with("Attention runs as separate kernels"));
        let math = separate(200.0, 1024).fact("attention.math", 12);
        assert!(run(check, math).unwrap().title.en.contains("math kernel"));
    }

    #[test]
    fn quiet() {
        assert!(run(check, separate(200.0, 32)).is_none());
        assert!(run(check, separate(10.0, 1024)).is_none());
        assert!(run(check, separate(200.0, 1024).fact("attention.unfused", 0)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
