//! The card against the CPU: the same plan, the same seed, the same batches. Needs a GPU: run with `--ignored` on one.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use flatout_engine::cuda::{CudaSession, Precision};
use flatout_engine::{
    Activation, CpuSession, DataType, EngineError, Model, Optimizer, Plan, Recurrent, Role, SequenceOutput,
    Session, Table,
};
use std::sync::Arc;

const ROWS: usize = 400;

/// What a test trains: a plan, its tables and the indices of a step.
struct Case {
    name: &'static str,
    plan: fn() -> Result<Plan, EngineError>,
    inputs: &'static [(&'static str, usize)],
}

fn optimizer() -> Optimizer {
    Optimizer {
        clip_norm: Some(1.0),
        ..Optimizer::default()
    }
}

/// The stocks' model, small: windows, an entity's embedding, a stack of LSTMs.
fn stocks(hidden: usize, dropout: f64, output: SequenceOutput, batch: usize) -> Result<Plan, EngineError> {
    let mut model = Model::new(batch);
    let prices = model.table("prices", DataType::Real, &[5])?;
    let labels = model.table("labels", DataType::Real, &[1])?;
    let (start, stock) = (model.index_input("start")?, model.index_input("stock")?);
    let window = model.gather_windows(prices, start, 12)?;
    let target = model.gather_rows(labels, start)?;
    let entity = model.embedding("embedding", stock, 9, 6)?;
    let stack = Recurrent {
        hidden,
        layers: 2,
        dropout,
        output,
    };
    let state = model.lstm("lstm", window, Some(entity), stack)?;
    let state = match output {
        SequenceOutput::Last => state,
        // Every step's output is used: the last gate of a second stack sums them up.
        SequenceOutput::All => {
            let stack = Recurrent {
                hidden: 16,
                layers: 1,
                dropout: 0.0,
                output: SequenceOutput::Last,
            };
            model.lstm("top", state, None, stack)?
        }
    };
    let prediction = model.linear("head", state, 1, Activation::None)?;
    model.name(prediction, "prediction")?;
    let loss = model.mse(prediction, target)?;
    model.compile(loss, optimizer())
}

fn tabular() -> Result<Plan, EngineError> {
    let mut model = Model::new(48);
    let prices = model.table("prices", DataType::Real, &[5])?;
    let labels = model.table("labels", DataType::Real, &[1])?;
    let (start, stock) = (model.index_input("start")?, model.index_input("stock")?);
    let row = model.gather_rows(prices, start)?;
    let target = model.gather_rows(labels, start)?;
    let entity = model.embedding("embedding", stock, 9, 6)?;
    let joined = model.concat(&[row, entity])?;
    let first = model.linear("first", joined, 40, Activation::Relu)?;
    let second = model.linear("second", first, 24, Activation::Tanh)?;
    let third = model.linear("third", second, 16, Activation::Sigmoid)?;
    let prediction = model.linear("head", third, 1, Activation::None)?;
    model.name(prediction, "prediction")?;
    let loss = model.mse(prediction, target)?;
    model.compile(loss, optimizer())
}

const CASES: &[Case] = &[
    Case {
        name: "tabular",
        plan: tabular,
        inputs: &[("start", ROWS), ("stock", 9)],
    },
    Case {
        name: "lstm 64",
        plan: || stocks(64, 0.0, SequenceOutput::Last, 48),
        inputs: &[("start", ROWS - 12), ("stock", 9)],
    },
    Case {
        name: "lstm 40 (padded), odd batch",
        plan: || stocks(40, 0.0, SequenceOutput::Last, 37),
        inputs: &[("start", ROWS - 12), ("stock", 9)],
    },
    Case {
        name: "lstm 128 with dropout",
        plan: || stocks(128, 0.3, SequenceOutput::Last, 64),
        inputs: &[("start", ROWS - 12), ("stock", 9)],
    },
    Case {
        name: "lstm 256, all outputs",
        plan: || stocks(256, 0.0, SequenceOutput::All, 70),
        inputs: &[("start", ROWS - 12), ("stock", 9)],
    },
];

/// Reproducible values that look random.
fn noise(index: usize) -> f32 {
    ((index as f32 * 12.9898).sin() * 43_758.547).fract()
}

fn prepare(session: &mut dyn Session) {
    let prices: Vec<f32> = (0..ROWS * 5).map(noise).collect();
    let labels: Vec<f32> = (0..ROWS)
        .map(|row| prices[row * 5] + 0.5 * prices[row * 5 + 1])
        .collect();
    session.attach("prices", Table::F32(Arc::new(prices))).unwrap();
    session.attach("labels", Table::F32(Arc::new(labels))).unwrap();
}

fn fill(session: &mut dyn Session, case: &Case, step: usize) {
    let batch = session.plan().batch();
    for (number, (name, limit)) in case.inputs.iter().enumerate() {
        let index = |row: usize| ((step * 7919 + row * 104_729 + number * 31) % limit) as i32;
        session
            .set_indices(name, &(0..batch).map(index).collect::<Vec<_>>())
            .unwrap();
    }
}

fn gradient(session: &mut dyn Session, name: &str) -> Vec<f32> {
    let id = session.plan().find(name).unwrap();
    let mut values = vec![0f32; session.plan().buffer(id).len()];
    session.read_gradient(name, &mut values).unwrap();
    values
}

fn relative(found: &[f32], expected: &[f32]) -> f64 {
    let squares =
        |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
    let apart = squares(&mut found.iter().zip(expected).map(|(a, b)| f64::from(a - b)));
    apart / squares(&mut expected.iter().map(|value| f64::from(*value))).max(1e-12)
}

/// How far a precision may be off.
struct Tolerance {
    /// Of all gradients together, relative to their norm.
    whole: f64,
    /// Of one tensor's gradient, relative to its own norm: sums that nearly cancel keep the rounding of what they add up.
    tensor: f64,
    /// Of losses.
    loss: f64,
}

/// An evaluation, the gradients of one step and the mean loss of a run, each within the precision's tolerance.
fn parity(precision: Precision, within: &Tolerance) {
    for case in CASES {
        let mut cpu = CpuSession::<f32>::new((case.plan)().unwrap(), 2, 7).unwrap();
        let mut card = CudaSession::new((case.plan)().unwrap(), 0, precision, 7).unwrap();
        let what = format!("{} {}", case.name, precision.name());
        for session in [&mut cpu as &mut dyn Session, &mut card] {
            prepare(session);
            session.set_valid_rows(21);
            fill(session, case, 99);
            session.evaluate().unwrap();
            session.set_valid_rows(session.plan().batch());
            fill(session, case, 0);
            session.accumulate(1.0).unwrap();
        }
        let (expected, found) = (
            cpu.take_evaluation_loss().unwrap(),
            card.take_evaluation_loss().unwrap(),
        );
        assert!(
            (found - expected).abs() / expected <= within.loss,
            "{what}: evaluation {found} against {expected}"
        );
        let names: Vec<String> = cpu.plan().names(Role::Parameter).map(str::to_owned).collect();
        let (mut all_found, mut all_expected) = (Vec::new(), Vec::new());
        for name in &names {
            let (found, expected) = (gradient(&mut card, name), gradient(&mut cpu, name));
            let error = relative(&found, &expected);
            assert!(
                error <= within.tensor,
                "{what}: gradient of {name} is off by {error:.2e}"
            );
            all_found.extend(found);
            all_expected.extend(expected);
        }
        let error = relative(&all_found, &all_expected);
        assert!(error <= within.whole, "{what}: gradients are off by {error:.2e}");
        for session in [&mut cpu as &mut dyn Session, &mut card] {
            session.update(1e-3).unwrap();
            for step in 1..60 {
                fill(session, case, step);
                session.step(1e-3).unwrap();
            }
        }
        let (expected, found) = (cpu.take_loss().unwrap(), card.take_loss().unwrap());
        println!("{what:34} gradients off by {error:.1e}, mean loss {found:.6} against {expected:.6}");
        assert!(
            (found - expected).abs() / expected <= within.loss,
            "{what}: loss {found} against {expected}"
        );
    }
}

#[test]
#[ignore = "needs a GPU"]
fn f32_agrees_with_the_cpu() {
    parity(
        Precision::F32,
        &Tolerance {
            whole: 1e-5,
            tensor: 2e-4,
            loss: 1e-3,
        },
    );
}

#[test]
#[ignore = "needs a GPU"]
fn tf32_agrees_with_the_cpu() {
    parity(
        Precision::Tf32,
        &Tolerance {
            whole: 2e-3,
            tensor: 1e-2,
            loss: 5e-3,
        },
    );
}

#[test]
#[ignore = "needs a GPU"]
fn bf16_agrees_with_the_cpu() {
    parity(
        Precision::Bf16,
        &Tolerance {
            whole: 2e-2,
            tensor: 0.15,
            loss: 2e-2,
        },
    );
}

#[test]
#[ignore = "needs a GPU"]
fn the_same_seed_gives_the_same_bits() {
    for case in CASES {
        let run = || {
            let mut session = CudaSession::new((case.plan)().unwrap(), 0, Precision::Bf16, 3).unwrap();
            prepare(&mut session);
            for step in 0..20 {
                fill(&mut session, case, step);
                session.step(1e-3).unwrap();
            }
            let mut bits = vec![0f32; 1];
            session.read("head.bias", &mut bits).unwrap();
            (session.take_loss().unwrap().to_bits(), bits[0].to_bits())
        };
        assert_eq!(run(), run(), "{}", case.name);
    }
}

#[test]
#[ignore = "needs a GPU"]
fn an_index_outside_its_table_is_refused() {
    let mut session = CudaSession::new(tabular().unwrap(), 0, Precision::F32, 3).unwrap();
    prepare(&mut session);
    assert!(matches!(
        session.set_indices("stock", &[9; 48]),
        Err(EngineError::Index { .. })
    ));
}

#[test]
fn without_a_driver_the_reason_is_said() {
    // On a machine with a card this opens it; elsewhere it must explain itself and not panic.
    match CudaSession::new(tabular().unwrap(), 0, Precision::F32, 3) {
        Ok(session) => assert!(session.device().contains("sm_")),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
