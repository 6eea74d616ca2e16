//! Steps a second on a card, for the works of benches/peers/torch_best.py: the data on the card, indices drawn by the host.
//!
//! `cuda_bench [lstm|tcn|transformer|mlp|cnn|resnet|heatmap|all|recurrent] [bf16|f16|tf32|f32|all] [seconds] [profile] [streamed]`
//!
//! `recurrent`: LSTM and GRU of other widths, each way of the recurrence by itself.

#![allow(clippy::unwrap_used, reason = "a benchmark may fail")]

use flatout_engine::cuda::{CudaSession, Precision, Way, force_recurrence};
use flatout_engine::{
    Activation, Causal, DataType, EngineError, Model, Optimizer, Plan, Recurrent, SequenceOutput, Session,
    Table, Tensor, Window,
};
use std::sync::Arc;
use std::time::Instant;

/// Steps of a window.
const STEPS: usize = 60;

/// 500 stocks of 1,500 days, 20 features; 3 layers; an embedding of 5,000 entries.
fn recurrent(kind: &str, hidden: usize, batch: usize) -> Result<Plan, EngineError> {
    let mut model = Model::new(batch);
    let prices = model.table("rows", DataType::Real, &[20])?;
    let labels = model.table("labels", DataType::Real, &[1])?;
    let (start, stock) = (model.index_input("start")?, model.index_input("stock")?);
    let window = model.gather_windows(prices, start, 60)?;
    let target = model.gather_rows(labels, start)?;
    let entity = model.embedding("embedding", stock, 5000, 64)?;
    let stack = Recurrent {
        hidden,
        layers: 3,
        dropout: 0.0,
        output: SequenceOutput::Last,
    };
    let state = match kind {
        "gru" => model.gru("gru", window, Some(entity), stack)?,
        _ => model.lstm("lstm", window, Some(entity), stack)?,
    };
    let prediction = model.linear("head", state, 1, Activation::None)?;
    let loss = model.mse(prediction, target)?;
    model.compile(loss, Optimizer::default())
}

/// The stocks' windows with an entity's embedding at every step, and the labels to learn from them.
fn joined_windows(model: &mut Model) -> Result<(Tensor, Tensor), EngineError> {
    let prices = model.table("rows", DataType::Real, &[20])?;
    let labels = model.table("labels", DataType::Real, &[1])?;
    let (start, stock) = (model.index_input("start")?, model.index_input("stock")?);
    let window = model.gather_windows(prices, start, STEPS)?;
    let target = model.gather_rows(labels, start)?;
    let entity = model.embedding("embedding", stock, 5000, 64)?;
    let entity = model.repeat_steps(entity, STEPS)?;
    Ok((model.concat(&[window, entity])?, target))
}

/// `flatout train --model-type tcn`: blocks of two causal convolutions of three taps, the dilation doubling from block to block. Only the
/// steps that reach the last one are computed.
fn tcn(blocks: usize, hidden: usize, batch: usize) -> Result<Plan, EngineError> {
    let mut model = Model::new(batch);
    let (mut values, target) = joined_windows(&mut model)?;
    let (taps, mut wanted, mut needed) = (3, 1, Vec::new());
    for block in (0..blocks).rev() {
        let there = STEPS.div_ceil(1 << block);
        let first = (2 * (wanted - 1) + taps).min(there);
        needed.push((first, wanted));
        wanted = (first + taps - 1).min(there);
    }
    for (block, (first, second)) in needed.into_iter().rev().enumerate() {
        let causal = |taps, stride, outputs| Causal {
            taps,
            dilation: 1,
            stride,
            outputs,
        };
        let branch = model.conv1d(
            &format!("{block}.conv1"),
            values,
            hidden,
            causal(taps, 1, first),
            Activation::Relu,
        )?;
        let branch = model.conv1d(
            &format!("{block}.conv2"),
            branch,
            hidden,
            causal(taps, 2, second),
            Activation::Relu,
        )?;
        let through = match block {
            0 => model.conv1d("down", values, hidden, causal(1, 2, second), Activation::None)?,
            _ => model.select_steps(values, 2, second)?,
        };
        values = model.residual(branch, through, Activation::Relu)?;
    }
    let last = model.last_step(values)?;
    let prediction = model.linear("head", last, 1, Activation::None)?;
    let loss = model.mse(prediction, target)?;
    model.compile(loss, Optimizer::default())
}

/// `flatout train --model-type transformer`.
fn transformer(layers: usize, width: usize, heads: usize, batch: usize) -> Result<Plan, EngineError> {
    let mut model = Model::new(batch);
    let (window, target) = joined_windows(&mut model)?;
    let values = model.linear("input", window, width, Activation::None)?;
    let mut values = model.positions("positions", values)?;
    for layer in 0..layers {
        let name = |part: &str| format!("{layer}.{part}");
        let branch = model.layer_norm(&name("norm1"), values)?;
        let branch = model.self_attention(&name("attention"), branch, heads)?;
        values = model.residual(values, branch, Activation::None)?;
        let branch = model.layer_norm(&name("norm2"), values)?;
        let branch = model.linear_gelu(&name("linear1"), branch, 4 * width)?;
        let branch = model.linear(&name("linear2"), branch, width, Activation::None)?;
        values = model.residual(values, branch, Activation::None)?;
    }
    let values = model.layer_norm("norm", values)?;
    let mean = model.mean_steps(values)?;
    let prediction = model.linear("head", mean, 1, Activation::None)?;
    let loss = model.mse(prediction, target)?;
    model.compile(loss, Optimizer::default())
}

/// `flatout train --model-type resnet --hidden-size 512`: ResNet-18 over gray images of 128 × 128.
fn resnet(batch: usize) -> Result<Plan, EngineError> {
    let mut model = Model::new(batch);
    let pixels = model.table("rows", DataType::U8, &[128, 128, 1])?;
    let labels = model.table("labels", DataType::Real, &[1])?;
    let start = model.index_input("start")?;
    let images = model.gather_bytes(pixels, start, 1.0 / 255.0, 0.0)?;
    let target = model.gather_rows(labels, start)?;
    let window = |size, stride| Window {
        size,
        stride,
        padding: size / 2,
    };
    let stem = model.conv2d("conv1", images, 64, window(3, 2), Activation::None)?;
    let stem = model.max_pool(stem, 2)?;
    let mut values = model.batch_norm("bn1", stem, Activation::Relu)?;
    for (stage, filters) in [64, 128, 256, 512].into_iter().enumerate() {
        for block in 0..2 {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let name = |part: &str| format!("{stage}.{block}.{part}");
            let branch = model.conv2d_plain(&name("conv1"), values, filters, window(3, stride))?;
            let branch = model.batch_norm(&name("bn1"), branch, Activation::Relu)?;
            let branch = model.conv2d_plain(&name("conv2"), branch, filters, window(3, 1))?;
            let branch = model.batch_norm(&name("bn2"), branch, Activation::None)?;
            let shortcut = match stride {
                1 => values,
                _ => {
                    let shortcut = model.conv2d_plain(&name("down"), values, filters, window(1, 2))?;
                    model.batch_norm(&name("bn3"), shortcut, Activation::None)?
                }
            };
            values = model.residual(branch, shortcut, Activation::Relu)?;
        }
    }
    let pooled = model.global_average_pool(values)?;
    let prediction = model.linear("head", pooled, 1, Activation::None)?;
    let loss = model.mse(prediction, target)?;
    model.compile(loss, Optimizer::default())
}

/// `flatout train --model-type heatmap --hidden-size 128` over gray images of 256 × 512.
fn heatmap(batch: usize) -> Result<Plan, EngineError> {
    let mut model = Model::new(batch);
    let pixels = model.table("rows", DataType::U8, &[256, 512, 1])?;
    let labels = model.table("labels", DataType::Real, &[1])?;
    let start = model.index_input("start")?;
    let mut values = model.gather_bytes(pixels, start, 1.0 / 255.0, 0.0)?;
    let target = model.gather_rows(labels, start)?;
    let window = |size| Window {
        size,
        stride: 1,
        padding: size / 2,
    };
    let mut levels = Vec::new();
    for (level, filters) in [16, 32, 64, 128].into_iter().enumerate() {
        values = model.conv2d(
            &format!("conv{level}"),
            values,
            filters,
            window(3),
            Activation::None,
        )?;
        values = model.max_pool(values, 2)?;
        values = model.batch_norm(&format!("norm{level}"), values, Activation::Relu)?;
        levels.push((values, filters));
    }
    levels.pop();
    for (level, (across, filters)) in levels.into_iter().enumerate().rev() {
        let size = (128 >> level, 256 >> level);
        let larger = model.upsample(values, size)?;
        let joined = model.concat(&[larger, across])?;
        let joined = model.conv2d_plain(&format!("up{level}"), joined, filters, window(3))?;
        values = model.batch_norm(&format!("up_norm{level}"), joined, Activation::Relu)?;
    }
    let maps = model.conv2d("maps", values, 16, window(1), Activation::None)?;
    let positions = model.soft_argmax(maps)?;
    let prediction = model.linear("head", positions, 1, Activation::None)?;
    let loss = model.mse(prediction, target)?;
    model.compile(loss, Optimizer::default())
}

fn mlp(batch: usize) -> Result<Plan, EngineError> {
    let mut model = Model::new(batch);
    let rows = model.table("rows", DataType::Real, &[128])?;
    let labels = model.table("labels", DataType::Real, &[1])?;
    let start = model.index_input("start")?;
    let mut values = model.gather_rows(rows, start)?;
    let target = model.gather_rows(labels, start)?;
    for layer in 0..4 {
        values = model.linear(&format!("layer{layer}"), values, 1024, Activation::Relu)?;
    }
    let prediction = model.linear("head", values, 1, Activation::None)?;
    let loss = model.mse(prediction, target)?;
    model.compile(loss, Optimizer::default())
}

/// Grey images of 128 × 128, four convolutions, each pooled.
fn cnn(batch: usize) -> Result<Plan, EngineError> {
    let mut model = Model::new(batch);
    let pixels = model.table("rows", DataType::U8, &[128, 128, 1])?;
    let labels = model.table("labels", DataType::Real, &[1])?;
    let start = model.index_input("start")?;
    let mut values = model.gather_bytes(pixels, start, 1.0 / 255.0, 0.0)?;
    let target = model.gather_rows(labels, start)?;
    let window = Window {
        size: 3,
        stride: 1,
        padding: 1,
    };
    for (layer, filters) in [32, 64, 128, 256].into_iter().enumerate() {
        values = model.conv2d(&format!("conv{layer}"), values, filters, window, Activation::Relu)?;
        values = model.max_pool(values, 2)?;
    }
    let values = model.global_average_pool(values)?;
    let prediction = model.linear("head", values, 1, Activation::None)?;
    let loss = model.mse(prediction, target)?;
    model.compile(loss, Optimizer::default())
}

fn random(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// What is the same for all works.
struct How {
    precision: Precision,
    seconds: f64,
    /// Where a step's time goes.
    detail: bool,
    /// Tables stay with the host.
    streamed: bool,
}

fn measure(name: &str, plan: Plan, width: usize, windows: bool, how: &How) {
    let &How {
        precision,
        seconds,
        detail,
        streamed,
    } = how;
    let begun = Instant::now();
    let (batch, flops) = (plan.batch(), plan.flops_per_step());
    let mut session = CudaSession::new(plan, 0, precision, 1).unwrap();
    if streamed {
        session.set_table_budget(0);
    }
    // Images are many values each: fewer of them.
    let (images, mut state) = (width > 1000, 1);
    let rows = match width {
        100_000.. => 512,
        1001.. => 4096,
        _ => 750_000usize,
    };
    let table: Vec<f32> = (0..rows * width)
        .map(|_| (random(&mut state) as f32 / 1e9) - 1.0)
        .collect();
    let labels: Vec<f32> = table.iter().step_by(width).copied().collect();
    if images {
        let bytes: Vec<u8> = table.iter().map(|value| (value * 120.0 + 127.0) as u8).collect();
        session.attach("rows", Table::U8(Arc::new(bytes))).unwrap();
    } else {
        session.attach("rows", Table::F32(Arc::new(table))).unwrap();
    }
    session.attach("labels", Table::F32(Arc::new(labels))).unwrap();
    let ready = begun.elapsed().as_secs_f64();
    let batches: Vec<(Vec<i32>, Vec<i32>)> = (0..64)
        .map(|_| {
            let start: Vec<i32> = (0..batch)
                .map(|_| (random(&mut state) % (rows as u64 - 60)) as i32)
                .collect();
            let stock = start.iter().map(|row| row / 1500).collect();
            (start, stock)
        })
        .collect();
    let mut count = 0usize;
    let mut step = |session: &mut CudaSession| {
        let (start, stock) = &batches[count % batches.len()];
        session.set_indices("start", start).unwrap();
        if windows {
            session.set_indices("stock", stock).unwrap();
        }
        session.step(1e-3).unwrap();
        count += 1;
    };
    step(&mut session);
    session.wait().unwrap();
    let first = begun.elapsed().as_secs_f64();
    (0..20).for_each(|_| step(&mut session));
    session.wait().unwrap();
    let (timed, mut steps) = (Instant::now(), 0);
    while timed.elapsed().as_secs_f64() < seconds {
        (0..80).for_each(|_| step(&mut session));
        session.wait().unwrap();
        steps += 80;
    }
    let each = timed.elapsed().as_secs_f64() / f64::from(steps);
    let loss = session.take_loss().unwrap();
    println!(
        "{name:24} {:5}{} {:12.0} samples/s {:8.3} ms {:7.1} TFLOP/s  ready {ready:.2} s, first step {first:.2} s, loss {loss:.5}, {:.2} GiB",
        precision.name(),
        if streamed { " streamed" } else { "" },
        batch as f64 / each,
        each * 1e3,
        flops / each / 1e12,
        session.memory_bytes() as f64 / f64::from(1 << 30),
    );
    if detail {
        let mut parts = session.profile().unwrap();
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        let total: f64 = parts.iter().map(|(_, time)| time).sum();
        println!(
            "  parts alone {:.1} µs in all, the step {:.1} µs",
            total * 1e3,
            each * 1e6
        );
        for (part, time) in parts.iter().filter(|(_, time)| *time > 0.01 * total) {
            println!("  {part:32} {:8.1} µs {:5.1}%", time * 1e3, 100.0 * time / total);
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |name: &str| {
        arguments
            .first()
            .is_none_or(|given| given == name || given == "all")
    };
    let precisions = match arguments.get(1).map(String::as_str) {
        Some("f32") => vec![Precision::F32],
        Some("tf32") => vec![Precision::Tf32],
        Some("f16") => vec![Precision::F16],
        Some("all") => vec![Precision::Bf16, Precision::Tf32, Precision::F32],
        _ => vec![Precision::Bf16],
    };
    let streamed = arguments.iter().any(|argument| argument == "streamed");
    let detail = arguments.iter().any(|argument| argument == "profile");
    let seconds = arguments.get(2).and_then(|text| text.parse().ok()).unwrap_or(2.0);
    for precision in precisions {
        let how = How {
            precision,
            seconds,
            detail,
            streamed,
        };
        if arguments.first().is_some_and(|given| given == "recurrent") {
            for (kind, hidden) in [
                ("lstm", 256),
                ("gru", 256),
                ("lstm", 384),
                ("lstm", 512),
                ("gru", 512),
            ] {
                for way in [Way::Persistent, Way::StepByStep] {
                    force_recurrence(Some(way));
                    let name = format!("{kind} 3×{hidden} {way:?}");
                    measure(&name, recurrent(kind, hidden, 512).unwrap(), 20, true, &how);
                }
            }
            force_recurrence(None);
            continue;
        }
        for batch in [512, 4096] {
            if wanted("lstm") {
                measure(
                    &format!("lstm 3×256 batch {batch}"),
                    recurrent("lstm", 256, batch).unwrap(),
                    20,
                    true,
                    &how,
                );
            }
        }
        if wanted("tcn") {
            let plan = tcn(6, 128, 1024).unwrap();
            measure("tcn 6×128 batch 1024", plan, 20, true, &how);
        }
        if wanted("transformer") {
            let plan = transformer(4, 256, 4, 1024).unwrap();
            measure("transformer 4×256 batch 1024", plan, 20, true, &how);
        }
        if wanted("resnet") {
            let name = "resnet 18 batch 512";
            measure(name, resnet(512).unwrap(), 128 * 128, false, &how);
        }
        if wanted("heatmap") {
            let name = "heatmap 256×512 batch 64";
            measure(name, heatmap(64).unwrap(), 256 * 512, false, &how);
        }
        for batch in [128, 512] {
            if wanted("cnn") {
                let name = format!("cnn 4 conv batch {batch}");
                measure(&name, cnn(batch).unwrap(), 128 * 128, false, &how);
            }
        }
        for batch in [512, 8192] {
            if wanted("mlp") {
                measure(
                    &format!("mlp 4×1024 batch {batch}"),
                    mlp(batch).unwrap(),
                    128,
                    false,
                    &how,
                );
            }
        }
    }
}
