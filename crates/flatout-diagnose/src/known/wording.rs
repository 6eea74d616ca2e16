//! A costly line in words: its title, what the samples show, and what to do about it.

use super::{Cost, Known, Part};
use crate::account::activity::Activity;
use crate::account::center::Center;
use flatout_core::{Message, message, units};

pub fn title(cost: &Cost, share: f64) -> Message {
    let shown = units::percent(share);
    let at = cost.center.described();
    let function = &cost.center.hot.function;
    match (cost.known, cost.part) {
        (Known::FileReadPerSample, _) => message!(
            en: "{at} reads a file for every sample: {shown} of the time",
            zh: "{at} 对每个样本都读取文件：占 {shown} 的时间"
        ),
        (Known::DataframeRowPerSample, _) => message!(
            en: "{at} indexes a DataFrame for every sample: {shown} of the time",
            zh: "{at} 对每个样本都索引 DataFrame：占 {shown} 的时间"
        ),
        (Known::SlowSampler, _) => message!(
            en: "The sampler at {at} takes {shown} of the time",
            zh: "{at} 的 sampler 占 {shown} 的时间"
        ),
        (Known::IteratorPerBatch, _) => message!(
            en: "{at} builds a new iterator for every batch: {shown} of the time",
            zh: "{at} 为每个 batch 新建迭代器：占 {shown} 的时间"
        ),
        (Known::PythonLoopPerSample, _) => message!(
            en: "A Python loop at {at} prepares samples: {shown} of the time",
            zh: "{at} 用 Python 循环准备样本：占 {shown} 的时间"
        ),
        (Known::ImageDecodedLarge, _) => message!(
            en: "{at} decodes and transforms images: {shown} of the time",
            zh: "{at} 解码并变换图像：占 {shown} 的时间"
        ),
        (Known::BlockingCall, _) => {
            let what = blocked_in(cost.center);
            Message {
                en: format!("The training loop {} at {at}: {shown} of the time", what.en),
                zh: format!("训练循环在 {at} {}：占 {shown} 的时间", what.zh),
            }
        }
        (Known::Metrics, _) => message!(
            en: "{at} computes metrics on the CPU at every step: {shown} of the time",
            zh: "{at} 每一步都在 CPU 上计算指标：占 {shown} 的时间"
        ),
        (Known::Logging, _) => message!(
            en: "{at} writes logs at every step: {shown} of the time",
            zh: "{at} 每一步都写日志：占 {shown} 的时间"
        ),
        (Known::MemoryReleased, _) => message!(
            en: "{at} collects or releases memory at every step: {shown} of the time",
            zh: "{at} 每一步都回收或释放内存：占 {shown} 的时间"
        ),
        (Known::ModelCopied, _) => message!(
            en: "{at} copies the model repeatedly: {shown} of the time",
            zh: "{at} 反复复制模型：占 {shown} 的时间"
        ),
        (Known::PythonLoopInStep, _) => {
            let header = cost
                .center
                .inner_loop
                .as_ref()
                .map_or("", |inner| inner.text.as_str());
            message!(
                en: "Python loop `{header}` at {at} takes {shown} of the time",
                zh: "{at} 的 Python 循环 `{header}` 占 {shown} 的时间"
            )
        }
        (Known::HiddenSync, _) => message!(
            en: "{at} makes the CPU wait for the GPU within the step: {shown} of the time",
            zh: "{at} 使 CPU 在一步之内等待 GPU：占 {shown} 的时间"
        ),
        (Known::CostlyOperator, _) => message!(
            en: "The operator at {at} takes {shown} of the time",
            zh: "{at} 的算子占 {shown} 的时间"
        ),
        (Known::HostWork, Part::Batch) => message!(
            en: "Preparing samples in {function}() at {at} takes {shown} of the time",
            zh: "{at} 的 {function}() 准备样本，占 {shown} 的时间"
        ),
        (Known::HostWork, Part::Step) => message!(
            en: "{function}() at {at} takes {shown} of the time outside the model",
            zh: "{at} 的 {function}()（模型之外）占 {shown} 的时间"
        ),
    }
}

fn blocked_in(center: &Center) -> Message {
    match center.activity() {
        Activity::Sleeping => message!(en: "sleeps", zh: "睡眠"),
        Activity::FileAccess => message!(en: "reads or writes files", zh: "读写文件"),
        _ => message!(en: "waits for a lock, thread or process", zh: "等待锁、线程或进程"),
    }
}

/// The line, and what it does in how many words the samples allow.
pub fn detail(cost: &Cost) -> Message {
    let text = cost.center.text().unwrap_or_default();
    let via = cost.center.via.as_ref().map(|frame| frame.qualified());
    let what = cost.center.activity().name();
    let (en_via, zh_via) = match via {
        Some(via) => (format!(", mostly in {via}"), format!("，主要在 {via} 中")),
        None => (String::new(), String::new()),
    };
    let (en_worker, zh_worker) = if cost.in_worker {
        (" of a DataLoader worker", "（DataLoader worker）")
    } else {
        ("", "")
    };
    if text.is_empty() {
        return Message {
            en: format!("The stack samples{en_worker} show {}{en_via}.", what.en),
            zh: format!("采样{zh_worker}显示：{}{zh_via}。", what.zh),
        };
    }
    Message {
        en: format!("`{text}`: the stack samples{en_worker} show {}{en_via}.", what.en),
        zh: format!("`{text}`：采样{zh_worker}显示：{}{zh_via}。", what.zh),
    }
}

pub fn fix(cost: &Cost) -> Message {
    match (cost.known, cost.part) {
        (Known::FileReadPerSample, _) => message!(
            en: "Read the file once, in __init__ or on first access, and keep it; open archives and \
            databases once per worker",
            zh: "只读取一次（在 __init__ 或首次访问时）并保留；压缩包和数据库每个 worker 只打开一次"
        ),
        (Known::DataframeRowPerSample, _) => message!(
            en: "Convert the columns to NumPy arrays or tensors once in __init__, and index those",
            zh: "在 __init__ 中把各列一次性转换为 NumPy 数组或 tensor，再对其索引"
        ),
        (Known::SlowSampler, _) => message!(
            en: "Draw the indices of a whole epoch at once, with torch.randperm, torch.multinomial or NumPy",
            zh: "一次性生成整个 epoch 的索引：torch.randperm、torch.multinomial 或 NumPy"
        ),
        (Known::IteratorPerBatch, _) => message!(
            en: "Build the iterator once and call next() on it; create a new one only when it is exhausted",
            zh: "只建立一次迭代器并对它调用 next()；耗尽后再新建"
        ),
        (Known::PythonLoopPerSample, _) => message!(
            en: "Replace the loop with operations on whole arrays, or prepare the result once before training",
            zh: "用整个数组的运算代替循环，或在训练前一次性准备好结果"
        ),
        (Known::ImageDecodedLarge, _) => message!(
            en: "Decode at the size you need (Image.draft, reduced-size JPEG decoding) or store smaller \
            images once; decode in workers",
            zh: "按所需尺寸解码（Image.draft、缩小的 JPEG 解码），或预先存成小图；在 worker 中解码"
        ),
        (Known::BlockingCall, _) => message!(
            en: "Move it out of the loop, do it every N steps, or do it in another thread",
            zh: "移出循环、每 N 步做一次，或放到另一个线程"
        ),
        (Known::Metrics, _) => message!(
            en: "Compute it every N steps or once per epoch, or on the GPU, where the predictions already are",
            zh: "每 N 步或每个 epoch 计算一次，或直接在预测所在的 tensor 上计算"
        ),
        (Known::Logging, _) => message!(
            en: "Log every N steps, keep the file open, and do not flush after each line",
            zh: "每 N 步记录一次，保持文件打开，不要逐行 flush"
        ),
        (Known::MemoryReleased, _) => message!(
            en: "Remove the call: Python and the caching allocator release memory on their own",
            zh: "删除该调用：Python 和缓存分配器会自行释放内存"
        ),
        (Known::ModelCopied, _) => message!(
            en: "Copy it every N steps, or update the copy in place with torch._foreach_lerp_ or torch.optim.swa_utils",
            zh: "每 N 步复制一次，或用 torch._foreach_lerp_、torch.optim.swa_utils 就地更新副本"
        ),
        (Known::PythonLoopInStep, _) => message!(
            en: "Replace the loop with one operation over the whole dimension (batched matmul, cumsum, \
            gather, nn.LSTM, vmap)",
            zh: "用对整个维度的一次运算代替循环（批量 matmul、cumsum、gather、nn.LSTM、vmap）"
        ),
        (Known::HiddenSync, _) => message!(
            en: "Keep the decision on the GPU (torch.where, clamp, multiplying by a mask), or check every N \
            steps",
            zh: "把判断留在设备上（torch.where、clamp、乘以掩码），或每 N 步检查一次"
        ),
        (Known::CostlyOperator, _) => message!(
            en: "If the result does not change, compute it once before the loop; otherwise use a cheaper \
            operator (an embedding instead of a one-hot matmul) or run it every N steps",
            zh: "若结果不变就在循环前计算一次，换用更便宜的算子（用 embedding 代替 one-hot 乘法），或每 N 步做一次"
        ),
        (Known::HostWork, Part::Batch) => message!(
            en: "Do it once before training, or make it cheaper",
            zh: "在训练前一次做完，或降低其成本"
        ),
        (Known::HostWork, Part::Step) => message!(
            en: "Do it every N steps, on whole tensors, or in another thread",
            zh: "改为每 N 步做一次、对整个 tensor 操作，或放到另一个线程"
        ),
    }
}
