//! The engine's side of `benches/peers/cpu_training.py`: builds one model, then for each line `N` on standard input runs N
//! training steps and prints the seconds they took. Data are resident; each step gathers its own batch.

use flatout_engine::{
    Activation, CpuSession, DataType, EngineError, Model, Optimizer, Plan, Recurrent, SequenceOutput,
    Session, Table, Window,
};
use std::io::BufRead;
use std::sync::Arc;
use std::time::Instant;

const ENTITIES: usize = 500;
const DAYS: usize = 400;
const FEATURES: usize = 20;
const ROWS: usize = 50_000;

struct Sizes {
    hidden: usize,
    layers: usize,
    steps: usize,
    batch: usize,
}

fn sequence(sizes: &Sizes, gru: bool) -> Result<Plan, EngineError> {
    let mut model = Model::new(sizes.batch);
    let prices = model.table("features", DataType::Real, &[FEATURES])?;
    let labels = model.table("labels", DataType::Real, &[1])?;
    let (start, entity) = (model.index_input("rows")?, model.index_input("entity")?);
    let window = model.gather_windows(prices, start, sizes.steps)?;
    let target = model.gather_rows(labels, start)?;
    let beside = model.embedding("embedding", entity, ENTITIES, 64)?;
    let stack = Recurrent {
        hidden: sizes.hidden,
        layers: sizes.layers,
        dropout: 0.0,
        output: SequenceOutput::Last,
    };
    let state = match gru {
        true => model.gru("rnn", window, Some(beside), stack)?,
        false => model.lstm("rnn", window, Some(beside), stack)?,
    };
    let prediction = model.linear("head", state, 1, Activation::None)?;
    let loss = model.mse(prediction, target)?;
    model.compile(loss, optimizer())
}

fn tabular(sizes: &Sizes) -> Result<Plan, EngineError> {
    let mut model = Model::new(sizes.batch);
    let features = model.table("features", DataType::Real, &[128])?;
    let labels = model.table("labels", DataType::Real, &[1])?;
    let rows = model.index_input("rows")?;
    let mut x = model.gather_rows(features, rows)?;
    let target = model.gather_rows(labels, rows)?;
    for layer in 0..sizes.layers {
        x = model.linear(&format!("layer{layer}"), x, sizes.hidden, Activation::Relu)?;
    }
    let prediction = model.linear("head", x, 1, Activation::None)?;
    let loss = model.mse(prediction, target)?;
    model.compile(loss, optimizer())
}

/// Convolutions 1 → 32 → 64 → 128 → 256 over grey images of `steps` × `steps`, each with ReLU and pooling.
fn pictures(sizes: &Sizes) -> Result<Plan, EngineError> {
    let mut model = Model::new(sizes.batch);
    let images = model.table("features", DataType::U8, &[sizes.steps, sizes.steps, 1])?;
    let labels = model.table("labels", DataType::Real, &[1])?;
    let rows = model.index_input("rows")?;
    let mut x = model.gather_bytes(images, rows, 1.0 / 255.0, 0.0)?;
    let target = model.gather_rows(labels, rows)?;
    let window = Window {
        size: 3,
        stride: 1,
        padding: 1,
    };
    for layer in 0..sizes.layers {
        x = model.conv2d(
            &format!("conv{layer}"),
            x,
            sizes.hidden << layer,
            window,
            Activation::Relu,
        )?;
        x = model.max_pool(x, 2)?;
    }
    let x = model.global_average_pool(x)?;
    let prediction = model.linear("head", x, 1, Activation::None)?;
    let loss = model.mse(prediction, target)?;
    model.compile(loss, optimizer())
}

fn optimizer() -> Optimizer {
    Optimizer {
        clip_norm: Some(1.0),
        ..Optimizer::default()
    }
}

fn values(count: usize) -> Vec<f32> {
    let stream = flatout_engine::random::Stream::new(1, 2, 3);
    (0..count as u64)
        .map(|index| stream.uniform(index) as f32 * 2.0 - 1.0)
        .collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, rest @ ..] = arguments.as_slice() else {
        return Err("usage: cpu_bench lstm|gru|mlp|cnn HIDDEN LAYERS STEPS BATCH [THREADS]".into());
    };
    let numbers: Vec<usize> = rest.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    let [hidden, layers, steps, batch, threads @ ..] = numbers.as_slice() else {
        return Err("four numbers wanted: HIDDEN LAYERS STEPS BATCH".into());
    };
    let (hidden, layers, steps, batch) = (*hidden, *layers, *steps, *batch);
    let sizes = Sizes {
        hidden,
        layers,
        steps,
        batch,
    };
    let threads = threads
        .first()
        .copied()
        .unwrap_or(flatout_core::cpus::UsableCpus::here().count());
    let (plan, row, rows, span) = match kind.as_str() {
        "lstm" => (sequence(&sizes, false)?, FEATURES, ENTITIES * DAYS, steps),
        "gru" => (sequence(&sizes, true)?, FEATURES, ENTITIES * DAYS, steps),
        "cnn" => (pictures(&sizes)?, steps * steps, 2_000, 1),
        "mlp" => (tabular(&sizes)?, 128, ROWS, 1),
        other => return Err(format!("unknown model {other}").into()),
    };
    let flops = plan.flops_per_step();
    let mut session = CpuSession::<f32>::new(plan, threads, 1)?;
    if kind == "cnn" {
        let bytes: Vec<u8> = values(rows * row)
            .iter()
            .map(|value| (value * 127.0 + 128.0) as u8)
            .collect();
        session.attach("features", Table::U8(Arc::new(bytes)))?;
    } else {
        session.attach("features", Table::F32(Arc::new(values(rows * row))))?;
    }
    session.attach("labels", Table::F32(Arc::new(values(rows))))?;
    eprintln!("{}, {:.2} GFLOP a step", session.device(), flops / 1e9);
    let mut tick = 0u64;
    let stream = flatout_engine::random::Stream::new(9, 9, 9);
    let mut chosen = vec![0i32; batch];
    let mut entities = vec![0i32; batch];
    for line in std::io::stdin().lock().lines() {
        let count: usize = line?.trim().parse()?;
        let start = Instant::now();
        for _ in 0..count {
            for (slot, entity) in chosen.iter_mut().zip(&mut entities) {
                tick += 1;
                *slot = (stream.uniform(tick) * (rows - span) as f64) as i32;
                *entity = *slot / DAYS as i32;
            }
            session.set_indices("rows", &chosen)?;
            if kind == "lstm" || kind == "gru" {
                session.set_indices("entity", &entities)?;
            }
            session.step(1e-3)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        println!("{seconds}");
        eprintln!(
            "{count} steps: {:.2} ms/step, {:.0} samples/s, {:.1} GFLOP/s, loss {:?}",
            seconds / count as f64 * 1e3,
            (batch * count) as f64 / seconds,
            flops * count as f64 / seconds / 1e9,
            session.take_loss()
        );
    }
    Ok(())
}
