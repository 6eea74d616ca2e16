//! Every operation against PyTorch's numbers (`golden/make_golden.py`): loss, outputs, gradients of parameters and inputs,
//! and parameters after a few updates.

#![allow(clippy::unwrap_used)]

mod support;

use flatout_engine::{Activation, Optimizer, Recurrent, Rule, SequenceOutput, Tensor, Window};
use support::{Case, golden};

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

/// Embedding beside the features, a recurrent stack, a linear head: the seeds' model.
fn recurrent(case: &mut Case, is_gru: bool) -> Tensor {
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
    let state = match is_gru {
        true => model.gru("rnn", x, Some(beside), stack).unwrap(),
        false => model.lstm("rnn", x, Some(beside), stack).unwrap(),
    };
    let prediction = model.linear("head", state, 1, Activation::None).unwrap();
    model.name(prediction, "prediction").unwrap();
    model.mse(prediction, target).unwrap()
}

#[test]
fn lstm_and_gru_with_embedding() {
    let optimizer = Optimizer {
        clip_norm: Some(1.0),
        ..Optimizer::default()
    };
    golden("lstm", 4, &optimizer, 0.01, |case| recurrent(case, false));
    golden("gru", 4, &optimizer, 0.01, |case| recurrent(case, true));
}

#[test]
fn losses() {
    for name in ["huber", "bce", "cross_entropy"] {
        golden(name, 4, &Optimizer::default(), 0.01, |case| {
            let x = case.real("x", &[4, 3]);
            let y = case.model.linear("one", x, 6, Activation::None).unwrap();
            case.model.name(y, "prediction").unwrap();
            match name {
                "cross_entropy" => {
                    let class = case.model.index_rows_input("class", 2).unwrap();
                    case.model.cross_entropy(y, class).unwrap()
                }
                "huber" => {
                    let target = case.target("target", 6);
                    case.model.huber(y, target, 0.7).unwrap()
                }
                _ => {
                    let target = case.target("target", 6);
                    case.model.bce_with_logits(y, target).unwrap()
                }
            }
        });
    }
}

#[test]
fn convolutions_batch_norm_and_poolings() {
    golden("cnn", 3, &Optimizer::default(), 0.01, |case| {
        let (x, target) = (case.real("x", &[3, 8, 11, 2]), case.target("target", 2));
        let model = &mut case.model;
        let window = |size, stride, padding| Window {
            size,
            stride,
            padding,
        };
        // An activation in between: a bias right before a batch norm has no gradient but rounding, which Adam blows up.
        let x = model
            .conv2d("one", x, 5, window(3, 1, 1), Activation::Tanh)
            .unwrap();
        let x = model.batch_norm("norm", x, Activation::Relu).unwrap();
        let x = model.max_pool(x, 2).unwrap();
        let x = model
            .conv2d("two", x, 4, window(3, 2, 1), Activation::Relu)
            .unwrap();
        let pooled = model.global_average_pool(x).unwrap();
        let x = model
            .conv2d("three", x, 3, window(2, 1, 0), Activation::Tanh)
            .unwrap();
        let x = model.flatten(x).unwrap();
        let x = model.linear("flat", x, 3, Activation::None).unwrap();
        let x = model.concat(&[pooled, x]).unwrap();
        let x = model.linear("head", x, 2, Activation::None).unwrap();
        model.name(x, "prediction").unwrap();
        model.mse(x, target).unwrap()
    });
}

#[test]
#[ignore = "needs a GPU"]
fn the_card_agrees_with_pytorch() {
    support::on_card(|| {
        linear_with_activations_clip_and_adamw();
        adam_and_sgd();
        lstm_and_gru_with_embedding();
        losses();
        convolutions_batch_norm_and_poolings();
    });
}
