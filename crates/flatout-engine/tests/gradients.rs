//! Every operation's gradients against finite differences in f64.

#![allow(clippy::unwrap_used)]

mod support;

use flatout_engine::{Activation, Causal, Recurrent, SequenceOutput, Window};
use support::{every_loss, finite_differences};

#[test]
fn linear_concat_and_a_tensor_used_twice() {
    for activation in [Activation::None, Activation::Tanh, Activation::Sigmoid] {
        finite_differences(3, &[], |case| {
            let (x, y, target) = (
                case.real("x", &[3, 4]),
                case.real("y", &[3, 2]),
                case.target("target", 2),
            );
            let model = &mut case.model;
            let hidden = model.linear("one", x, 5, activation).unwrap();
            let joined = model.concat(&[hidden, y, hidden]).unwrap();
            let output = model.linear("two", joined, 2, Activation::None).unwrap();
            model.mse(output, target).unwrap()
        });
    }
}

#[test]
fn embedding() {
    finite_differences(4, &[("index", &[2, 0, 2, 1])], |case| {
        let target = case.target("target", 3);
        let index = case.model.index_input("index").unwrap();
        let rows = case.model.embedding("embedding", index, 5, 3).unwrap();
        case.model.mse(rows, target).unwrap()
    });
}

#[test]
fn lstm_stacks_with_dropout_and_constant_input() {
    finite_differences(3, &[], |case| {
        let (x, beside, target) = (
            case.real("x", &[4, 3, 2]),
            case.real("beside", &[3, 2]),
            case.target("target", 4),
        );
        let stack = |output| Recurrent {
            hidden: 4,
            layers: 2,
            dropout: 0.3,
            output,
        };
        let below = case
            .model
            .lstm("below", x, Some(beside), stack(SequenceOutput::All))
            .unwrap();
        let above = case
            .model
            .lstm("above", below, None, stack(SequenceOutput::Last))
            .unwrap();
        case.model.mse(above, target).unwrap()
    });
}

#[test]
fn gru_stacks_with_dropout_and_constant_input() {
    finite_differences(3, &[], |case| {
        let (x, beside, target) = (
            case.real("x", &[4, 3, 2]),
            case.real("beside", &[3, 2]),
            case.target("target", 4),
        );
        let stack = |output| Recurrent {
            hidden: 4,
            layers: 2,
            dropout: 0.3,
            output,
        };
        let below = case
            .model
            .gru("below", x, Some(beside), stack(SequenceOutput::All))
            .unwrap();
        let above = case
            .model
            .gru("above", below, None, stack(SequenceOutput::Last))
            .unwrap();
        case.model.mse(above, target).unwrap()
    });
}

#[test]
fn dropout_and_activations() {
    for activation in [Activation::Relu, Activation::Tanh, Activation::Sigmoid] {
        finite_differences(3, &[], |case| {
            let (x, target) = (case.real("x", &[3, 5]), case.target("target", 10));
            let active = case.model.activate(x, activation).unwrap();
            let dropped = case.model.dropout(x, 0.4).unwrap();
            let joined = case.model.concat(&[active, dropped]).unwrap();
            case.model.huber(joined, target, 0.5).unwrap()
        });
    }
}

#[test]
fn losses() {
    finite_differences(4, &[], |case| {
        let (x, target) = (case.real("x", &[4, 3]), case.target("target", 3));
        case.model.bce_with_logits(x, target).unwrap()
    });
    finite_differences(4, &[("class", &[0, 2, 1, 1])], |case| {
        let x = case.real("x", &[4, 3]);
        let class = case.model.index_input("class").unwrap();
        case.model.cross_entropy(x, class).unwrap()
    });
}

#[test]
fn terms() {
    let labels = [0.3f32, -1.2, 0.9, 2.5, -0.4, 1.0, 2.0, 0.0];
    let weights = [1.0f32, 0.5, 2.0, 0.7, 1.3, 0.9, 1.1, 0.4];
    let row = |shift: f32| {
        let moved = labels
            .iter()
            .enumerate()
            .map(move |(column, label)| if column < 5 { label + shift } else { *label });
        moved.chain(weights).map(|value| value.to_bits() as i32)
    };
    let words: Vec<i32> = [0.0, 0.7, -0.9].into_iter().flat_map(row).collect();
    finite_differences(3, &[("words", &words)], |case| {
        let x = case.real("x", &[3, 13]);
        let words = case.model.index_rows_input("words", 16).unwrap();
        case.model.terms(x, words, every_loss()).unwrap()
    });
}

#[test]
fn images() {
    for (size, stride, padding) in [(3, 1, 1), (2, 2, 0), (3, 2, 2)] {
        finite_differences(2, &[], |case| {
            let (x, target) = (case.real("x", &[2, 6, 7, 3]), case.target("target", 2));
            let window = Window {
                size,
                stride,
                padding,
            };
            let model = &mut case.model;
            let x = model.conv2d("one", x, 4, window, Activation::Tanh).unwrap();
            let x = model.batch_norm("norm", x, Activation::Sigmoid).unwrap();
            let pooled = model.max_pool(x, 2).unwrap();
            let (whole, mean) = (
                model.flatten(pooled).unwrap(),
                model.global_average_pool(x).unwrap(),
            );
            let joined = model.concat(&[whole, mean]).unwrap();
            let x = model.linear("head", joined, 2, Activation::None).unwrap();
            model.mse(x, target).unwrap()
        });
    }
}

#[test]
fn upsampled_images_and_positions_of_peaks() {
    for size in [(4, 6), (5, 7), (9, 3)] {
        finite_differences(2, &[], |case| {
            let (x, target) = (case.real("x", &[2, 2, 3, 3]), case.target("target", 2));
            let model = &mut case.model;
            let larger = model.upsample(x, size).unwrap();
            let window = Window {
                size: 3,
                stride: 1,
                padding: 1,
            };
            let maps = model.conv2d("maps", larger, 4, window, Activation::None).unwrap();
            let positions = model.soft_argmax(maps).unwrap();
            let y = model.linear("head", positions, 2, Activation::None).unwrap();
            model.mse(y, target).unwrap()
        });
    }
}

#[test]
fn batch_norm_of_rows() {
    finite_differences(5, &[], |case| {
        let (x, target) = (case.real("x", &[5, 3]), case.target("target", 3));
        let x = case.model.batch_norm("norm", x, Activation::None).unwrap();
        case.model.mse(x, target).unwrap()
    });
}

#[test]
fn causal_convolutions() {
    for (taps, dilation, stride, outputs) in [
        (3, 1, 1, 6),
        (2, 3, 2, 3),
        (3, 2, 5, 1),
        (1, 1, 2, 2),
        (4, 4, 1, 2),
    ] {
        finite_differences(2, &[], |case| {
            let (x, target) = (case.real("x", &[6, 2, 3]), case.target("target", 2));
            let model = &mut case.model;
            let causal = Causal {
                taps,
                dilation,
                stride,
                outputs,
            };
            let one = model.conv1d("one", x, 4, causal, Activation::Tanh).unwrap();
            let same = model
                .conv1d("two", one, 4, Causal::every(2, outputs), Activation::None)
                .unwrap();
            let sum = model.residual(one, same, Activation::Sigmoid).unwrap();
            let (mean, last) = (model.mean_steps(sum).unwrap(), model.last_step(sum).unwrap());
            let joined = model.concat(&[mean, last]).unwrap();
            let y = model.linear("head", joined, 2, Activation::None).unwrap();
            model.mse(y, target).unwrap()
        });
    }
}

#[test]
fn attention_layer_norm_gelu_and_positions() {
    for heads in [1, 2, 3] {
        finite_differences(2, &[], |case| {
            let (x, beside, target) = (
                case.real("x", &[5, 2, 4]),
                case.real("beside", &[2, 2]),
                case.target("target", 6),
            );
            let model = &mut case.model;
            let beside = model.repeat_steps(beside, 5).unwrap();
            let joined = model.concat(&[x, beside]).unwrap();
            let placed = model.positions("positions", joined).unwrap();
            let normed = model.layer_norm("norm", placed).unwrap();
            let attended = model.self_attention("attention", normed, heads).unwrap();
            let sum = model.residual(placed, attended, Activation::None).unwrap();
            let curved = model.gelu(sum).unwrap();
            let output = model.mean_steps(curved).unwrap();
            model.mse(output, target).unwrap()
        });
    }
}

#[test]
fn tokens_of_features_and_joined_steps() {
    finite_differences(2, &[], |case| {
        let (x, row, target) = (
            case.real("x", &[2, 5]),
            case.real("row", &[2, 3]),
            case.target("target", 3),
        );
        let model = &mut case.model;
        let tokens = model.tokens("tokens", x, 3).unwrap();
        let chosen = model.select_steps(tokens, 2, 2).unwrap();
        // The same rows twice: gradients add up.
        let joined = model.join_steps(&[tokens, row, chosen, row]).unwrap();
        let placed = model.positions("positions", joined).unwrap();
        let curved = model.activate(placed, Activation::Tanh).unwrap();
        let output = model.mean_steps(curved).unwrap();
        model.mse(output, target).unwrap()
    });
}

#[test]
fn chosen_and_reversed_steps() {
    finite_differences(2, &[], |case| {
        let (x, target) = (case.real("x", &[5, 2, 3]), case.target("target", 6));
        let model = &mut case.model;
        let reversed = model.reverse_steps(x).unwrap();
        let both = model.concat(&[x, reversed]).unwrap();
        let chosen = model.select_steps(both, 2, 3).unwrap();
        let curved = model.activate(chosen, Activation::Tanh).unwrap();
        let output = model.mean_steps(curved).unwrap();
        model.mse(output, target).unwrap()
    });
}
