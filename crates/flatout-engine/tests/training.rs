//! What a trainer relies on: bit-equal runs, exact resuming, gradient accumulation, padded batches, and errors in words.

#![allow(clippy::unwrap_used)]

use flatout_engine::{
    Activation, CpuSession, DataType, EngineError, Model, Optimizer, Plan, Recurrent, Role, Rule,
    SequenceOutput, Session, Table,
};
use std::sync::Arc;

const ROWS: usize = 60;

fn plan(batch: usize, dropout: f64) -> Plan {
    let optimizer = Optimizer {
        clip_norm: Some(1.0),
        ..Optimizer::default()
    };
    plan_with(batch, dropout, optimizer)
}

fn plan_with(batch: usize, dropout: f64, optimizer: Optimizer) -> Plan {
    let mut model = Model::new(batch);
    let features = model.table("features", DataType::Real, &[3]).unwrap();
    let labels = model.table("labels", DataType::Real, &[1]).unwrap();
    let (rows, entity) = (
        model.index_input("rows").unwrap(),
        model.index_input("entity").unwrap(),
    );
    let window = model.gather_windows(features, rows, 5).unwrap();
    let target = model.gather_rows(labels, rows).unwrap();
    let beside = model.embedding("embedding", entity, 7, 2).unwrap();
    let stack = Recurrent {
        hidden: 20,
        layers: 2,
        dropout,
        output: SequenceOutput::Last,
    };
    let state = model.lstm("lstm", window, Some(beside), stack).unwrap();
    let hidden = model.linear("hidden", state, 40, Activation::Relu).unwrap();
    let prediction = model.linear("head", hidden, 1, Activation::None).unwrap();
    model.name(prediction, "prediction").unwrap();
    let loss = model.mse(prediction, target).unwrap();
    model.compile(loss, optimizer).unwrap()
}

fn session(batch: usize, dropout: f64, threads: usize) -> CpuSession<f32> {
    over(plan(batch, dropout), threads)
}

fn session_with(batch: usize, threads: usize, optimizer: Optimizer) -> CpuSession<f32> {
    over(plan_with(batch, 0.0, optimizer), threads)
}

fn over(plan: Plan, threads: usize) -> CpuSession<f32> {
    let mut session = CpuSession::new(plan, threads, 3).unwrap();
    let features: Vec<f32> = (0..ROWS * 3).map(|index| (index as f32 * 0.7).sin()).collect();
    let labels: Vec<f32> = (0..ROWS).map(|index| (index as f32 * 2.1).sin()).collect();
    session
        .attach("features", Table::F32(Arc::new(features)))
        .unwrap();
    session.attach("labels", Table::F32(Arc::new(labels))).unwrap();
    session
}

fn choose(session: &mut CpuSession<f32>, first: usize, batch: usize) {
    let rows: Vec<i32> = (first..first + batch)
        .map(|row| (row * 13 % (ROWS - 5)) as i32)
        .collect();
    let entities: Vec<i32> = rows.iter().map(|row| row % 7).collect();
    session.set_indices("rows", &rows).unwrap();
    session.set_indices("entity", &entities).unwrap();
}

fn train(session: &mut CpuSession<f32>, batch: usize, steps: std::ops::Range<usize>) {
    for step in steps {
        choose(session, step * batch, batch);
        session.step(0.01).unwrap();
    }
}

/// All parameters and states, as bits.
fn bits(session: &mut CpuSession<f32>) -> Vec<(String, Vec<u32>)> {
    let plan = session.plan();
    let names: Vec<String> = plan
        .names(Role::Parameter)
        .chain(plan.names(Role::State))
        .map(str::to_owned)
        .collect();
    let read = |name: &String| {
        session
            .read_real(name)
            .unwrap()
            .iter()
            .map(|value| value.to_bits())
            .collect()
    };
    names.iter().map(|name| (name.clone(), read(name))).collect()
}

#[test]
fn bit_equal_whatever_the_number_of_threads() {
    let run = |threads| {
        let mut session = session(26, 0.2, threads);
        train(&mut session, 26, 0..4);
        bits(&mut session)
    };
    let one = run(1);
    for threads in [1, 2, 3, 5] {
        assert_eq!(run(threads), one, "{threads} threads");
    }
}

#[test]
fn resuming_is_exact() {
    let mut whole = session(8, 0.3, 2);
    train(&mut whole, 8, 0..6);
    let mut first = session(8, 0.3, 2);
    train(&mut first, 8, 0..3);
    let (saved, position) = (bits(&mut first), first.position());
    let mut second = session(8, 0.3, 2);
    for (name, values) in saved {
        let values: Vec<f32> = values.into_iter().map(f32::from_bits).collect();
        second.write(&name, &values).unwrap();
    }
    second.set_position(position);
    train(&mut second, 8, 3..6);
    assert_eq!(bits(&mut second), bits(&mut whole));
}

#[test]
fn micro_batches_add_up_to_the_whole_batch() {
    let (mut whole, mut parts) = (session(12, 0.0, 2), session(4, 0.0, 2));
    choose(&mut whole, 0, 12);
    whole.step(0.01).unwrap();
    for part in 0..3 {
        choose(&mut parts, part * 4, 4);
        parts.accumulate(1.0 / 3.0).unwrap();
    }
    parts.update(0.01).unwrap();
    assert!((whole.take_loss().unwrap() - parts.take_loss().unwrap()).abs() < 1e-6);
    for name in ["lstm.weight_hh_l0", "embedding.weight", "head.bias"] {
        let (one, two) = (
            whole.gradient_real(name).unwrap(),
            parts.gradient_real(name).unwrap(),
        );
        for (one, two) in one.iter().zip(&two) {
            assert!((one - two).abs() < 1e-6, "{name}: {one} {two}");
        }
    }
}

#[test]
fn padding_affects_neither_loss_nor_gradient() {
    let (mut small, mut padded) = (session(3, 0.0, 2), session(5, 0.0, 2));
    choose(&mut small, 0, 3);
    choose(&mut padded, 0, 5);
    padded.set_valid_rows(3);
    for session in [&mut small, &mut padded] {
        session.accumulate(1.0).unwrap();
        session.evaluate().unwrap();
    }
    assert!((small.take_loss().unwrap() - padded.take_loss().unwrap()).abs() < 1e-6);
    assert!((small.take_evaluation_loss().unwrap() - padded.take_evaluation_loss().unwrap()).abs() < 1e-6);
    let (one, two) = (
        small.gradient_real("head.weight").unwrap(),
        padded.gradient_real("head.weight").unwrap(),
    );
    assert!(one.iter().zip(&two).all(|(one, two)| (one - two).abs() < 1e-6));
}

#[test]
fn it_learns() {
    let mut session = session(16, 0.0, 2);
    train(&mut session, 16, 0..20);
    let early = session.take_loss().unwrap();
    train(&mut session, 16, 20..300);
    session.take_loss();
    train(&mut session, 16, 300..320);
    let late = session.take_loss().unwrap();
    assert!(late < early / 4.0, "{early} to {late}");
}

#[test]
fn mistakes_are_errors_not_panics() {
    let mut session = session(4, 0.0, 1);
    session.set_indices("entity", &[0; 4]).unwrap();
    session
        .set_indices("rows", &[0, 0, 0, (ROWS - 4) as i32])
        .unwrap();
    assert!(matches!(
        session.step(0.01),
        Err(EngineError::Index { index: 56, .. })
    ));
    session.set_indices("rows", &[-1; 4]).unwrap();
    assert!(matches!(session.evaluate(), Err(EngineError::Index { .. })));
    session.set_indices("rows", &[0; 4]).unwrap();
    session.set_indices("entity", &[7; 4]).unwrap();
    assert!(matches!(
        session.step(0.01),
        Err(EngineError::Index {
            operation: "embedding",
            ..
        })
    ));
    assert!(matches!(
        session.set_indices("rows", &[0; 3]),
        Err(EngineError::Length { .. })
    ));
    assert!(matches!(
        session.set("rows", &[0.0; 4]),
        Err(EngineError::ValueType { .. })
    ));
    assert!(matches!(
        session.write("lstm.weight_ih", &[]),
        Err(EngineError::UnknownName { nearest: Some(_), .. })
    ));
    let mut bare = CpuSession::<f32>::new(plan(4, 0.0), 1, 1).unwrap();
    assert!(matches!(bare.step(0.01), Err(EngineError::NotAttached { .. })));
    let mut model = Model::new(0);
    let x = model.input("x", &[2]).unwrap();
    let y = model.linear("one", x, 2, Activation::None).unwrap();
    let loss = model.mse(y, x).unwrap();
    assert!(matches!(
        model.compile(loss, Optimizer::default()),
        Err(EngineError::Setting { .. })
    ));
}

#[test]
fn averages_follow_the_parameters_and_change_places_with_them() {
    for rule in [Rule::AdamW, Rule::Sgd] {
        let optimizer = |average| Optimizer {
            rule,
            average,
            clip_norm: Some(1.0),
            ..Optimizer::default()
        };
        let (mut with, mut without) = (
            session_with(4, 2, optimizer(Some(0.75))),
            session_with(4, 2, optimizer(None)),
        );
        with.begin_averages().unwrap();
        let read = |session: &mut CpuSession<f32>, name: &str| {
            let mut values = [0f32; 40];
            session.read(name, &mut values).unwrap();
            values
        };
        let (name, average) = ("hidden.bias", "optimizer.average.hidden.bias");
        let mut expected = read(&mut with, name);
        for step in 0..5 {
            train(&mut with, 4, step..step + 1);
            train(&mut without, 4, step..step + 1);
            let parameter = read(&mut with, name);
            assert_eq!(
                parameter,
                read(&mut without, name),
                "averages changed the training"
            );
            for (average, parameter) in expected.iter_mut().zip(parameter) {
                // torch.optim.swa_utils.get_ema_multi_avg_fn(0.75)
                *average += 0.25 * (parameter - *average);
            }
            let found = read(&mut with, average);
            assert!(
                found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6),
                "{rule:?}"
            );
            assert_ne!(found, parameter);
        }
        let before = bits(&mut with);
        let (parameter, found) = (read(&mut with, name), read(&mut with, average));
        with.exchange_averages().unwrap();
        assert_eq!(
            (read(&mut with, name), read(&mut with, average)),
            (found, parameter)
        );
        with.exchange_averages().unwrap();
        assert!(bits(&mut with) == before);
    }
}
