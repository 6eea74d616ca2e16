//! Every operation against PyTorch's numbers (`golden/make_golden.py`): loss, outputs, gradients of parameters and inputs,
//! and parameters after a few updates.

mod support;

use flatout_engine::{Activation, Optimizer, Recurrent, Rule, SequenceOutput};
use support::golden;

#[test]
fn linear_with_activations_clip_and_adamw() {
    let optimizer = Optimizer {
        weight_decay: 0.1,
        clip_norm: Some(0.05),
        ..Optimizer::default()
    };
    golden("linear", 4, &optimizer, 0.01, |case| {
        let (x, target) = (case.real("x", &[4, 5]), case.target("target", 2));
        let model = &mut case.model;
        let x = model.linear("one", x, 7, Activation::Relu).unwrap();
        let x = model.linear("two", x, 6, Activation::Tanh).unwrap();
        let x = model.linear("three", x, 3, Activation::Sigmoid).unwrap();
        let x = model.linear("four", x, 2, Activation::None).unwrap();
        model.name(x, "prediction").unwrap();
        model.mse(x, target).unwrap()
    });
}

#[test]
fn adam_and_sgd() {
    for (name, rule, rate, weight_decay) in [("adam", Rule::Adam, 0.01, 0.1), ("sgd", Rule::Sgd, 0.05, 0.01)]
    {
        let optimizer = Optimizer {
            rule,
            weight_decay,
            ..Optimizer::default()
        };
        golden(name, 4, &optimizer, rate, |case| {
            let (x, target) = (case.real("x", &[4, 3]), case.target("target", 2));
            let x = case.model.linear("one", x, 2, Activation::None).unwrap();
            case.model.name(x, "prediction").unwrap();
            case.model.mse(x, target).unwrap()
        });
    }
}

#[test]
fn lstm_with_embedding() {
    let optimizer = Optimizer {
        clip_norm: Some(1.0),
        ..Optimizer::default()
    };
    golden("lstm", 4, &optimizer, 0.01, |case| {
        let (x, target) = (case.real("x", &[6, 4, 3]), case.target("target", 1));
        let model = &mut case.model;
        let entity = model.index_input("entity").unwrap();
        let beside = model.embedding("embedding", entity, 4, 2).unwrap();
        let stack = Recurrent {
            hidden: 5,
            layers: 3,
            dropout: 0.0,
            output: SequenceOutput::Last,
        };
        let state = model.lstm("rnn", x, Some(beside), stack).unwrap();
        let prediction = model.linear("head", state, 1, Activation::None).unwrap();
        model.name(prediction, "prediction").unwrap();
        model.mse(prediction, target).unwrap()
    });
}
