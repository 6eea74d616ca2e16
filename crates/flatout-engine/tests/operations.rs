//! Convolutions over time, attention, residual blocks and heatmaps: the same bits on any number of threads, and no allocation in a step.

#![allow(clippy::unwrap_used)]

#[path = "../../../tests/support/counting.rs"]
mod counting;

use counting::allocator_calls;
use flatout_engine::{
    Activation, Causal, CpuSession, DataType, EngineError, Model, Optimizer, Plan, Recurrent, Role,
    SequenceOutput, Session, Table, Tensor, Window,
};
use std::sync::Arc;

const ROWS: usize = 60;
const BATCH: usize = 13;
const STEPS: usize = 9;

/// Adds a model up to what its head reads.
type Build = fn(&mut Model, Tensor) -> Result<Tensor, EngineError>;

const SEQUENCES: &[(&str, Build)] = &[
    ("tcn", |model, window| {
        let causal = |taps, dilation, stride, outputs| Causal {
            taps,
            dilation,
            stride,
            outputs,
        };
        let first = model.conv1d("first", window, 12, causal(3, 2, 1, STEPS), Activation::Relu)?;
        let first = model.dropout(first, 0.2)?;
        let second = model.conv1d("second", first, 12, causal(2, 1, 2, 5), Activation::None)?;
        let through = model.select_steps(first, 2, 5)?;
        let block = model.residual(second, through, Activation::Relu)?;
        model.last_step(block)
    }),
    ("transformer", |model, window| {
        let values = model.linear("input", window, 16, Activation::None)?;
        let values = model.positions("positions", values)?;
        let branch = model.layer_norm("norm1", values)?;
        let branch = model.self_attention("attention", branch, 4)?;
        let branch = model.dropout(branch, 0.2)?;
        let values = model.residual(values, branch, Activation::None)?;
        let branch = model.layer_norm("norm2", values)?;
        let branch = model.linear_gelu("wide", branch, 32)?;
        let branch = model.gelu(branch)?;
        let branch = model.linear("narrow", branch, 16, Activation::None)?;
        let values = model.residual(values, branch, Activation::None)?;
        model.mean_steps(values)
    }),
    ("bidirectional lstm", |model, window| {
        let stack = Recurrent {
            hidden: 10,
            layers: 2,
            dropout: 0.2,
            output: SequenceOutput::Last,
        };
        model.bidirectional_lstm("lstm", window, None, stack)
    }),
];

const IMAGES: &[(&str, Build)] = &[
    ("resnet", |model, images| {
        let window = |size, stride| Window {
            size,
            stride,
            padding: size / 2,
        };
        let branch = model.conv2d_plain("conv1", images, 6, window(3, 2))?;
        let branch = model.batch_norm("bn1", branch, Activation::None)?;
        let shortcut = model.conv2d_plain("down", images, 6, window(1, 2))?;
        let block = model.residual(branch, shortcut, Activation::Relu)?;
        model.global_average_pool(block)
    }),
    ("heatmap", |model, images| {
        let window = Window {
            size: 3,
            stride: 1,
            padding: 1,
        };
        let small = model.conv2d("conv1", images, 5, window, Activation::Relu)?;
        let small = model.max_pool(small, 2)?;
        let large = model.upsample(small, (7, 10))?;
        let joined = model.concat(&[large, images])?;
        let maps = model.conv2d("maps", joined, 3, window, Activation::None)?;
        model.soft_argmax(maps)
    }),
];

fn plan(build: Build, images: bool) -> Plan {
    let mut model = Model::new(BATCH);
    let rows = model.index_input("rows").unwrap();
    let input = if images {
        let pixels = model.table("pixels", DataType::U8, &[7, 10, 1]).unwrap();
        model.gather_bytes(pixels, rows, 1.0 / 128.0, -1.0).unwrap()
    } else {
        let features = model.table("features", DataType::Real, &[3]).unwrap();
        let window = model.gather_windows(features, rows, STEPS).unwrap();
        let row = model.gather_rows(features, rows).unwrap();
        let again = model.repeat_steps(row, STEPS).unwrap();
        model.concat(&[window, again]).unwrap()
    };
    let labels = model.table("labels", DataType::Real, &[1]).unwrap();
    let target = model.gather_rows(labels, rows).unwrap();
    let values = build(&mut model, input).unwrap();
    let prediction = model.linear("head", values, 1, Activation::None).unwrap();
    let loss = model.mse(prediction, target).unwrap();
    let optimizer = Optimizer {
        clip_norm: Some(1.0),
        ..Optimizer::default()
    };
    model.compile(loss, optimizer).unwrap()
}

/// The losses of some steps and everything that is kept, as bits.
fn run(build: Build, images: bool, threads: usize) -> (Vec<u64>, Vec<Vec<u32>>) {
    let mut session = CpuSession::<f32>::new(plan(build, images), threads, 3).unwrap();
    let wave = |index: usize, pace: f32| (index as f32 * pace).sin();
    let pixels: Vec<u8> = (0..ROWS * 70)
        .map(|i| (120.0 + 100.0 * wave(i, 0.37)) as u8)
        .collect();
    let tables = [
        (
            "features",
            Table::F32(Arc::new((0..ROWS * 3).map(|i| wave(i, 0.7)).collect::<Vec<_>>())),
        ),
        (
            "labels",
            Table::F32(Arc::new((0..ROWS).map(|i| wave(i, 2.1)).collect::<Vec<_>>())),
        ),
        ("pixels", Table::U8(Arc::new(pixels))),
    ];
    for (name, table) in tables {
        if session.plan().find(name).is_ok() {
            session.attach(name, table).unwrap();
        }
    }
    let rows: Vec<i32> = (0..BATCH).map(|row| (row * 17 % (ROWS - STEPS)) as i32).collect();
    let (mut losses, mut calls) = (Vec::with_capacity(20), 0);
    for step in 0..8 {
        if step == 3 {
            calls = allocator_calls();
        }
        session.set_indices("rows", &rows).unwrap();
        session.step(0.01).unwrap();
        session.evaluate().unwrap();
        losses.push(session.take_loss().unwrap().to_bits());
    }
    assert_eq!(allocator_calls(), calls, "a step allocates");
    assert!(
        f64::from_bits(losses[7]) < f64::from_bits(losses[0]),
        "nothing is learned"
    );
    let (parameters, states) = (Role::Parameter, Role::State);
    let plan = session.plan();
    let names: Vec<String> = plan
        .names(parameters)
        .chain(plan.names(states))
        .map(str::to_owned)
        .collect();
    let bits = names.iter().map(|name| {
        let values = session.read_real(name).unwrap();
        values.iter().map(|value| value.to_bits()).collect()
    });
    (losses, bits.collect())
}

#[test]
fn gives_the_same_bits_on_any_number_of_threads_and_allocates_nothing() {
    let kinds = [(SEQUENCES, false), (IMAGES, true)];
    for (name, build, images) in kinds
        .into_iter()
        .flat_map(|(list, images)| list.iter().map(move |(name, build)| (name, *build, images)))
    {
        let one = run(build, images, 1);
        for threads in [1, 2, 3, 5] {
            assert_eq!(run(build, images, threads), one, "{name} on {threads} threads");
        }
    }
}
