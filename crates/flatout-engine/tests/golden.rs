//! Every operation against PyTorch's numbers (`golden/make_golden.py`): loss, outputs, gradients of parameters and inputs,
//! and parameters after a few updates.

#![allow(clippy::unwrap_used)]

mod support;

use flatout_engine::{Activation, Causal, Optimizer, Recurrent, Rule, SequenceOutput, Tensor, Window};
use support::{Case, every_loss, golden};

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
fn terms_with_weights() {
    golden("terms", 4, &Optimizer::default(), 0.01, |case| {
        let x = case.real("x", &[4, 3]);
        let y = case.model.linear("one", x, 13, Activation::None).unwrap();
        case.model.name(y, "prediction").unwrap();
        let words = case.model.index_rows_input("words", 16).unwrap();
        case.model.terms(y, words, every_loss()).unwrap()
    });
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
fn causal_convolutions_and_residuals() {
    golden("conv1d", 3, &Optimizer::default(), 0.01, |case| {
        let (x, target) = (case.real("x", &[7, 3, 4]), case.target("target", 2));
        let model = &mut case.model;
        let causal = |taps, dilation, stride, outputs| Causal {
            taps,
            dilation,
            stride,
            outputs,
        };
        let one = model
            .conv1d("one", x, 5, causal(3, 2, 1, 7), Activation::Tanh)
            .unwrap();
        // Only every second step is read again: the others are not computed.
        let two = model
            .conv1d("two", one, 5, causal(2, 1, 2, 4), Activation::None)
            .unwrap();
        let down = model
            .conv1d("down", x, 5, causal(1, 1, 2, 4), Activation::None)
            .unwrap();
        let y = model.residual(two, down, Activation::Relu).unwrap();
        let three = model
            .conv1d("three", y, 5, causal(3, 1, 4, 1), Activation::None)
            .unwrap();
        let last = model.select_steps(y, 1, 1).unwrap();
        let y = model.residual(three, last, Activation::Relu).unwrap();
        let y = model.last_step(y).unwrap();
        let y = model.linear("head", y, 2, Activation::None).unwrap();
        model.name(y, "prediction").unwrap();
        model.mse(y, target).unwrap()
    });
}

#[test]
fn bidirectional_lstm_and_gru() {
    for (name, is_gru) in [("bidirectional_lstm", false), ("bidirectional_gru", true)] {
        golden(name, 4, &Optimizer::default(), 0.01, |case| {
            let (x, target) = (case.real("x", &[6, 4, 3]), case.target("target", 1));
            let model = &mut case.model;
            let entity = model.index_input("entity").unwrap();
            let beside = model.embedding("embedding", entity, 4, 2).unwrap();
            let stack = Recurrent {
                hidden: 5,
                layers: 2,
                dropout: 0.0,
                output: SequenceOutput::Last,
            };
            let state = match is_gru {
                true => model.bidirectional_gru("rnn", x, Some(beside), stack).unwrap(),
                false => model.bidirectional_lstm("rnn", x, Some(beside), stack).unwrap(),
            };
            let y = model.linear("head", state, 1, Activation::None).unwrap();
            model.name(y, "prediction").unwrap();
            model.mse(y, target).unwrap()
        });
    }
}

#[test]
fn residual_blocks_of_images() {
    golden("resnet", 3, &Optimizer::default(), 0.01, |case| {
        let (x, target) = (case.real("x", &[3, 7, 6, 2]), case.target("target", 2));
        let model = &mut case.model;
        let window = |size, stride| Window {
            size,
            stride,
            padding: size / 2,
        };
        let y = model.conv2d_plain("conv1", x, 4, window(3, 2)).unwrap();
        let y = model.batch_norm("bn1", y, Activation::Relu).unwrap();
        let y = model.conv2d_plain("conv2", y, 4, window(3, 1)).unwrap();
        let y = model.batch_norm("bn2", y, Activation::None).unwrap();
        let down = model.conv2d_plain("down", x, 4, window(1, 2)).unwrap();
        let down = model.batch_norm("bn3", down, Activation::None).unwrap();
        let x = model.residual(y, down, Activation::Relu).unwrap();
        let y = model.conv2d_plain("conv3", x, 4, window(3, 1)).unwrap();
        let y = model.batch_norm("bn4", y, Activation::None).unwrap();
        let y = model.residual(y, x, Activation::Relu).unwrap();
        let y = model.global_average_pool(y).unwrap();
        let y = model.linear("head", y, 2, Activation::None).unwrap();
        model.name(y, "prediction").unwrap();
        model.mse(y, target).unwrap()
    });
}

#[test]
fn upsampling_and_positions_of_peaks() {
    let optimizer = Optimizer {
        rule: Rule::Sgd,
        weight_decay: 0.0,
        ..Optimizer::default()
    };
    golden("heatmap", 3, &optimizer, 0.05, |case| {
        let (x, target) = (case.real("x", &[3, 7, 9, 2]), case.target("target", 2));
        let model = &mut case.model;
        let window = Window {
            size: 3,
            stride: 1,
            padding: 1,
        };
        let small = model.conv2d("one", x, 4, window, Activation::Tanh).unwrap();
        let small = model.max_pool(small, 2).unwrap();
        let large = model.upsample(small, (7, 9)).unwrap();
        let joined = model.concat(&[large, x]).unwrap();
        let maps = model.conv2d("two", joined, 3, window, Activation::None).unwrap();
        let positions = model.soft_argmax(maps).unwrap();
        let y = model.linear("head", positions, 2, Activation::None).unwrap();
        model.name(y, "prediction").unwrap();
        model.mse(y, target).unwrap()
    });
}

#[test]
fn transformer_encoder() {
    let optimizer = Optimizer {
        rule: Rule::Sgd,
        weight_decay: 0.0,
        ..Optimizer::default()
    };
    golden("transformer", 4, &optimizer, 0.02, |case| {
        let (x, target) = (case.real("x", &[5, 4, 3]), case.target("target", 1));
        let model = &mut case.model;
        let entity = model.index_input("entity").unwrap();
        let beside = model.embedding("embedding", entity, 4, 2).unwrap();
        let beside = model.repeat_steps(beside, 5).unwrap();
        let x = model.concat(&[x, beside]).unwrap();
        let x = model.linear("input", x, 8, Activation::None).unwrap();
        let mut x = model.positions("positions", x).unwrap();
        for layer in 0..2 {
            let name = |part: &str| format!("encoder.layers.{layer}.{part}");
            let y = model.layer_norm(&name("norm1"), x).unwrap();
            let y = model.self_attention(&name("self_attn"), y, 2).unwrap();
            x = model.residual(x, y, Activation::None).unwrap();
            let y = model.layer_norm(&name("norm2"), x).unwrap();
            let y = model.linear_gelu(&name("linear1"), y, 32).unwrap();
            let y = model.linear(&name("linear2"), y, 8, Activation::None).unwrap();
            x = model.residual(x, y, Activation::None).unwrap();
        }
        let x = model.layer_norm("encoder.norm", x).unwrap();
        let x = model.mean_steps(x).unwrap();
        let x = model.linear("head", x, 1, Activation::None).unwrap();
        model.name(x, "prediction").unwrap();
        model.mse(x, target).unwrap()
    });
}

#[test]
fn columns_of_a_row() {
    let optimizer = Optimizer {
        rule: Rule::Sgd,
        weight_decay: 0.0,
        ..Optimizer::default()
    };
    golden("columns", 4, &optimizer, 0.02, |case| {
        let (x, target) = (case.real("x", &[4, 3]), case.target("target", 2));
        let model = &mut case.model;
        let code = model.index_input("code").unwrap();
        let features = model.tokens("tokens", x, 4).unwrap();
        let category = model.embedding("embedding", code, 5, 4).unwrap();
        let x = model.join_steps(&[features, category]).unwrap();
        let name = |part: &str| format!("encoder.layers.0.{part}");
        let y = model.layer_norm(&name("norm1"), x).unwrap();
        let y = model.self_attention(&name("self_attn"), y, 2).unwrap();
        let x = model.residual(x, y, Activation::None).unwrap();
        let y = model.layer_norm(&name("norm2"), x).unwrap();
        let y = model.linear_gelu(&name("linear1"), y, 8).unwrap();
        let y = model.linear(&name("linear2"), y, 4, Activation::None).unwrap();
        let x = model.residual(x, y, Activation::None).unwrap();
        let x = model.layer_norm("encoder.norm", x).unwrap();
        let x = model.mean_steps(x).unwrap();
        let x = model.activate(x, Activation::Relu).unwrap();
        let x = model.linear("head", x, 2, Activation::None).unwrap();
        model.name(x, "prediction").unwrap();
        model.mse(x, target).unwrap()
    });
}

#[test]
#[ignore = "needs a GPU"]
fn the_gpu_agrees_with_pytorch() {
    support::on_card(|| {
        linear_with_activations_clip_and_adamw();
        adam_and_sgd();
        lstm_and_gru_with_embedding();
        losses();
        convolutions_batch_norm_and_poolings();
        causal_convolutions_and_residuals();
        bidirectional_lstm_and_gru();
        residual_blocks_of_images();
        upsampling_and_positions_of_peaks();
        transformer_encoder();
        columns_of_a_row();
    });
}
