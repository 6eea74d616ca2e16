//! What the tests share: models built with their inputs either given or trained (so that input gradients can be read), golden
//! files, and finite differences.
#![allow(dead_code, clippy::unwrap_used)]

#[path = "support/every_loss.rs"]
mod every_loss;

pub use every_loss::every_loss;

use flatout_engine::cpu::Real;
use flatout_engine::cuda::{CudaSession, Precision};
use flatout_engine::{CpuSession, Initialiser, Model, Optimizer, Role, Session, Tensor};
use serde_json::Value;

/// A model under test.
pub struct Case {
    pub model: Model,
    /// Inputs are parameters: their gradients can be read.
    pub trained_inputs: bool,
}

impl Case {
    pub fn new(batch: usize, trained_inputs: bool) -> Self {
        Self {
            model: Model::new(batch),
            trained_inputs,
        }
    }

    /// A real input of any shape.
    pub fn real(&mut self, name: &str, shape: &[usize]) -> Tensor {
        let model = &mut self.model;
        if self.trained_inputs {
            model.parameter(name, shape, Initialiser::Normal(1.0)).unwrap()
        } else if shape.len() == 3 {
            model.sequence_input(name, shape[0], shape[2]).unwrap()
        } else {
            model.input(name, &shape[1..]).unwrap()
        }
    }

    /// A given tensor, never trained.
    pub fn target(&mut self, name: &str, width: usize) -> Tensor {
        self.model.input(name, &[width]).unwrap()
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(|number| number.as_f64().unwrap()).collect()
}

fn entries(golden: &Value, key: &str) -> Vec<(String, Vec<f64>)> {
    let map = golden[key].as_object().cloned().unwrap_or_default();
    map.iter()
        .map(|(name, value)| (name.clone(), numbers(value)))
        .collect()
}

fn close(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (found - expected).abs() / (1.0 + expected.abs());
        assert!(
            error <= tolerance,
            "{what}[{index}]: {found} against PyTorch's {expected}"
        );
    }
}

fn of<T: Real>(values: &[f64]) -> Vec<T> {
    values.iter().map(|&value| T::of(value)).collect()
}

fn f64s<T: Real>(values: Vec<T>) -> Vec<f64> {
    values.into_iter().map(Real::to_f64).collect()
}

/// PyTorch's numbers; part of the program, which may run on a machine without the sources.
const GOLDEN: [(&str, &str); 17] = [
    ("adam", include_str!("golden/adam.json")),
    ("bce", include_str!("golden/bce.json")),
    ("bidirectional_gru", include_str!("golden/bidirectional_gru.json")),
    (
        "bidirectional_lstm",
        include_str!("golden/bidirectional_lstm.json"),
    ),
    ("cnn", include_str!("golden/cnn.json")),
    ("conv1d", include_str!("golden/conv1d.json")),
    ("cross_entropy", include_str!("golden/cross_entropy.json")),
    ("gru", include_str!("golden/gru.json")),
    ("heatmap", include_str!("golden/heatmap.json")),
    ("huber", include_str!("golden/huber.json")),
    ("terms", include_str!("golden/terms.json")),
    ("linear", include_str!("golden/linear.json")),
    ("lstm", include_str!("golden/lstm.json")),
    ("resnet", include_str!("golden/resnet.json")),
    ("sgd", include_str!("golden/sgd.json")),
    ("transformer", include_str!("golden/transformer.json")),
    ("columns", include_str!("golden/columns.json")),
];

thread_local! {
    static ON_CARD: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Has [`golden`] compare the card instead of the CPU.
pub fn on_card(cases: impl FnOnce()) {
    ON_CARD.set(true);
    cases();
    ON_CARD.set(false);
}

/// The card in f32: sums are made in another order than PyTorch's.
const CARD_TOLERANCE: f64 = 5e-5;

fn against_card(
    name: &str,
    golden: &Value,
    batch: usize,
    optimizer: &Optimizer,
    learning_rate: f64,
    build: &impl Fn(&mut Case) -> Tensor,
) {
    let open = |trained_inputs: bool| {
        let mut case = Case::new(batch, trained_inputs);
        let loss = build(&mut case);
        let plan = case.model.compile(loss, optimizer.clone()).unwrap();
        let mut session = CudaSession::new(plan, 0, Precision::F32, 1).unwrap();
        for (key, values) in entries(golden, "inputs")
            .iter()
            .chain(&entries(golden, "parameters"))
        {
            session.write(key, &of::<f32>(values)).unwrap();
        }
        for (key, values) in entries(golden, "indices") {
            let values: Vec<i32> = values.iter().map(|&value| value as i32).collect();
            session.set_indices(&key, &values).unwrap();
        }
        session
    };
    let read = |session: &mut CudaSession, key: &str, length: usize, gradient: bool| {
        let mut values = vec![0f32; length];
        match gradient {
            true => session.read_gradient(key, &mut values).unwrap(),
            false => session.read(key, &mut values).unwrap(),
        }
        f64s(values)
    };
    let mut session = open(true);
    session.accumulate(1.0).unwrap();
    let found = session.take_loss().unwrap();
    let (mut largest, mut compared) = (0f64, 0);
    let mut check = |what: &str, found: &[f64], expected: &[f64], tolerance: f64| {
        close(&format!("{name}: {what}"), found, expected, tolerance);
        let errors = found
            .iter()
            .zip(expected)
            .map(|(found, expected)| (found - expected).abs());
        largest = errors.fold(largest, f64::max);
        compared += found.len();
    };
    check(
        "loss",
        &[found],
        &[golden["loss"].as_f64().unwrap()],
        CARD_TOLERANCE,
    );
    for key in ["outputs", "states", "gradients", "input_gradients"] {
        for (tensor, values) in entries(golden, key) {
            let found = read(&mut session, &tensor, values.len(), key.ends_with("gradients"));
            check(&format!("{key} {tensor}"), &found, &values, CARD_TOLERANCE);
        }
    }
    session.evaluate().unwrap();
    for (tensor, values) in entries(golden, "evaluated") {
        let found = read(&mut session, &tensor, values.len(), false);
        check(&format!("evaluated {tensor}"), &found, &values, CARD_TOLERANCE);
    }
    let mut session = open(false);
    for expected in numbers(&golden["losses"]) {
        session.step(learning_rate).unwrap();
        let found = session.take_loss().unwrap();
        check("loss of a step", &[found], &[expected], 20.0 * CARD_TOLERANCE);
    }
    for (tensor, values) in entries(golden, "trained") {
        let found = read(&mut session, &tensor, values.len(), false);
        check(
            &format!("trained {tensor}"),
            &found,
            &values,
            100.0 * CARD_TOLERANCE,
        );
    }
    println!("{name:16} {compared} numbers, the furthest from PyTorch's by {largest:.1e}");
}

/// Compares a model with the golden file of its name, in both precisions. `build` names its output `prediction` and
/// returns the loss.
pub fn golden(
    name: &str,
    batch: usize,
    optimizer: &Optimizer,
    learning_rate: f64,
    build: impl Fn(&mut Case) -> Tensor,
) {
    let (_, text) = GOLDEN.iter().find(|(of, _)| *of == name).unwrap();
    let golden: Value = serde_json::from_str(text).unwrap();
    if ON_CARD.get() {
        return against_card(name, &golden, batch, optimizer, learning_rate, &build);
    }
    for threads in [1, 3] {
        against::<f64>(&golden, batch, threads, optimizer, learning_rate, &build, 1e-9);
        against::<f32>(&golden, batch, threads, optimizer, learning_rate, &build, 2e-5);
    }
}

fn session<T: Real>(
    golden: &Value,
    case: Case,
    loss: Tensor,
    optimizer: &Optimizer,
    threads: usize,
) -> CpuSession<T> {
    let plan = case.model.compile(loss, optimizer.clone()).unwrap();
    let mut session = CpuSession::<T>::new(plan, threads, 1).unwrap();
    for (key, values) in entries(golden, "inputs")
        .iter()
        .chain(&entries(golden, "parameters"))
    {
        session.write_real(key, &of(values)).unwrap();
    }
    for (key, values) in entries(golden, "indices") {
        let values: Vec<i32> = values.iter().map(|&value| value as i32).collect();
        session.set_indices(&key, &values).unwrap();
    }
    session
}

fn against<T: Real>(
    golden: &Value,
    batch: usize,
    threads: usize,
    optimizer: &Optimizer,
    learning_rate: f64,
    build: &impl Fn(&mut Case) -> Tensor,
    tolerance: f64,
) {
    let mut case = Case::new(batch, true);
    let loss = build(&mut case);
    let mut trained = session::<T>(golden, case, loss, optimizer, threads);
    trained.accumulate(1.0).unwrap();
    let found = trained.take_loss().unwrap();
    close("loss", &[found], &[golden["loss"].as_f64().unwrap()], tolerance);
    for (key, values) in entries(golden, "outputs")
        .iter()
        .chain(&entries(golden, "states"))
    {
        close(key, &f64s(trained.read_real(key).unwrap()), values, tolerance);
    }
    for (key, values) in entries(golden, "gradients")
        .iter()
        .chain(&entries(golden, "input_gradients"))
    {
        close(
            &format!("gradient of {key}"),
            &f64s(trained.gradient_real(key).unwrap()),
            values,
            tolerance,
        );
    }

    trained.evaluate().unwrap();
    for (key, values) in entries(golden, "evaluated") {
        close(
            &format!("evaluated {key}"),
            &f64s(trained.read_real(&key).unwrap()),
            &values,
            tolerance,
        );
    }

    let mut case = Case::new(batch, false);
    let loss = build(&mut case);
    let mut session = session::<T>(golden, case, loss, optimizer, threads);
    for expected in numbers(&golden["losses"]) {
        session.step(learning_rate).unwrap();
        close(
            "loss of a step",
            &[session.take_loss().unwrap()],
            &[expected],
            20.0 * tolerance,
        );
    }
    for (key, values) in entries(golden, "trained") {
        close(
            &format!("trained {key}"),
            &f64s(session.read_real(&key).unwrap()),
            &values,
            100.0 * tolerance,
        );
    }
}

/// Compares every parameter's gradient with central differences of the training loss, in f64.
pub fn finite_differences(batch: usize, indices: &[(&str, &[i32])], build: impl Fn(&mut Case) -> Tensor) {
    let mut case = Case::new(batch, true);
    let loss = build(&mut case);
    let plan = case.model.compile(loss, Optimizer::default()).unwrap();
    let names: Vec<String> = plan.names(Role::Parameter).map(str::to_owned).collect();
    let given: Vec<(String, usize)> = plan
        .buffers()
        .iter()
        .filter(|buffer| buffer.role == Role::Input && buffer.data_type == flatout_engine::DataType::Real)
        .map(|buffer| (buffer.name.clone(), buffer.len()))
        .collect();
    let mut session = CpuSession::<f64>::new(plan, 2, 5).unwrap();
    for (name, values) in indices {
        session.set_indices(name, values).unwrap();
    }
    for (name, length) in given {
        let values: Vec<f64> = (0..length)
            .map(|index| ((index * 7 + 3) % 11) as f64 / 11.0)
            .collect();
        session.write_real(&name, &values).unwrap();
    }
    let position = session.position();
    session.accumulate(1.0).unwrap();
    let gradients: Vec<Vec<f64>> = names
        .iter()
        .map(|name| session.gradient_real(name).unwrap())
        .collect();
    let mut loss_at = |name: &str, values: &[f64]| {
        session.write_real(name, values).unwrap();
        // The same micro-batch again: the same dropout.
        session.set_position(position);
        session.take_loss();
        session.accumulate(1.0).unwrap();
        session.take_loss().unwrap()
    };
    let mut checked = 0;
    for (name, gradient) in names.iter().zip(&gradients) {
        let mut values = initial(&build, batch, name);
        for index in (0..values.len()).step_by((values.len() / 12).max(1)) {
            let (kept, width) = (values[index], 1e-6);
            values[index] = kept + width;
            let above = loss_at(name, &values);
            values[index] = kept - width;
            let below = loss_at(name, &values);
            values[index] = kept;
            loss_at(name, &values);
            let difference = (above - below) / (2.0 * width);
            let error =
                (difference - gradient[index]).abs() / (1e-3 + difference.abs() + gradient[index].abs());
            assert!(
                error < 1e-5,
                "{name}[{index}]: {} against the difference {difference}",
                gradient[index]
            );
            checked += 1;
        }
    }
    assert!(checked > 0);
    assert!(
        gradients.iter().flatten().any(|gradient| gradient.abs() > 1e-6),
        "all gradients vanish"
    );
}

/// A parameter's initial values for the seed that `finite_differences` uses.
fn initial(build: &impl Fn(&mut Case) -> Tensor, batch: usize, name: &str) -> Vec<f64> {
    let mut case = Case::new(batch, true);
    let loss = build(&mut case);
    let plan = case.model.compile(loss, Optimizer::default()).unwrap();
    CpuSession::<f64>::new(plan, 1, 5)
        .unwrap()
        .read_real(name)
        .unwrap()
}
