//! Nothing is allocated in a steady step: every model kind trains and evaluates under an allocator that counts.

#![allow(clippy::unwrap_used)]

#[path = "../../../tests/support/counting.rs"]
mod counting;

use counting::allocator_calls;
use flatout_engine::{
    Activation, CpuSession, DataType, Model, Optimizer, Plan, Recurrent, SequenceOutput, Session, Table,
    Window,
};
use std::sync::Arc;

const BATCH: usize = 8;

fn sequence(gru: bool) -> Plan {
    let mut model = Model::new(BATCH);
    let prices = model.table("features", DataType::Real, &[3]).unwrap();
    let labels = model.table("labels", DataType::Real, &[1]).unwrap();
    let (rows, entity) = (
        model.index_input("rows").unwrap(),
        model.index_input("entity").unwrap(),
    );
    let window = model.gather_windows(prices, rows, 6).unwrap();
    let target = model.gather_rows(labels, rows).unwrap();
    let beside = model.embedding("embedding", entity, 20, 2).unwrap();
    let stack = Recurrent {
        hidden: 9,
        layers: 2,
        dropout: 0.2,
        output: SequenceOutput::Last,
    };
    let state = match gru {
        true => model.gru("rnn", window, Some(beside), stack).unwrap(),
        false => model.lstm("rnn", window, Some(beside), stack).unwrap(),
    };
    let state = model.dropout(state, 0.1).unwrap();
    let prediction = model.linear("head", state, 1, Activation::None).unwrap();
    let loss = model.huber(prediction, target, 1.0).unwrap();
    compile(model, loss)
}

fn images() -> Plan {
    let mut model = Model::new(BATCH);
    let pictures = model.table("features", DataType::U8, &[8, 8, 1]).unwrap();
    let classes = model.table("labels", DataType::I32, &[1]).unwrap();
    let rows = model.index_input("rows").unwrap();
    let mut x = model.gather_bytes(pictures, rows, 1.0 / 255.0, 0.0).unwrap();
    let class = model.gather_rows(classes, rows).unwrap();
    let window = Window {
        size: 3,
        stride: 1,
        padding: 1,
    };
    for layer in 0..2 {
        x = model
            .conv2d(&format!("conv{layer}"), x, 4, window, Activation::None)
            .unwrap();
        x = model
            .batch_norm(&format!("norm{layer}"), x, Activation::Relu)
            .unwrap();
        x = model.max_pool(x, 2).unwrap();
    }
    let x = model.flatten(x).unwrap();
    let x = model.linear("head", x, 3, Activation::None).unwrap();
    let loss = model.cross_entropy(x, class).unwrap();
    compile(model, loss)
}

fn compile(model: Model, loss: flatout_engine::Tensor) -> Plan {
    let optimizer = Optimizer {
        clip_norm: Some(1.0),
        ..Optimizer::default()
    };
    model.compile(loss, optimizer).unwrap()
}

#[test]
fn a_steady_step_allocates_nothing() {
    for kind in ["lstm", "gru", "images"] {
        let plan = if kind == "images" {
            images()
        } else {
            sequence(kind == "gru")
        };
        let mut session = CpuSession::<f32>::new(plan, 2, 1).unwrap();
        if kind == "images" {
            session
                .attach("features", Table::U8(Arc::new(vec![7u8; 64 * 40])))
                .unwrap();
            session
                .attach("labels", Table::I32(Arc::new(vec![2i32; 40])))
                .unwrap();
        } else {
            session
                .attach("features", Table::F32(Arc::new(vec![0.5f32; 3 * 40])))
                .unwrap();
            session
                .attach("labels", Table::F32(Arc::new(vec![1f32; 40])))
                .unwrap();
            session.set_indices("entity", &[3; BATCH]).unwrap();
        }
        let rows: Vec<i32> = (0..BATCH as i32).collect();
        let step = |session: &mut CpuSession<f32>| {
            session.set_indices("rows", &rows).unwrap();
            session.step(1e-3).unwrap();
            session.evaluate().unwrap();
            assert!(session.take_loss().unwrap().is_finite());
        };
        (0..3).for_each(|_| step(&mut session));
        let before = allocator_calls();
        (0..20).for_each(|_| step(&mut session));
        assert_eq!(allocator_calls(), before, "{kind} allocates in a step");
    }
}
