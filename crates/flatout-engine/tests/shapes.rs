//! Tensors that do not fit an operation are refused when the model is described.

#![allow(clippy::unwrap_used)]

use flatout_engine::{Activation, Causal, EngineError, Model, Tensor};

#[test]
fn shapes_that_do_not_fit_are_errors() {
    let mut model = Model::new(4);
    let (rows, sequence) = (
        model.input("rows", &[6]).unwrap(),
        model.sequence_input("sequence", 5, 6).unwrap(),
    );
    let image = model.input("image", &[4, 4, 2]).unwrap();
    let refused = |result: Result<Tensor, EngineError>| matches!(result, Err(EngineError::Shape { .. }));
    let far = Causal {
        taps: 2,
        dilation: 1,
        stride: 3,
        outputs: 3,
    };
    assert!(refused(model.conv1d("far", sequence, 4, far, Activation::None)));
    let none = Causal {
        taps: 0,
        ..Causal::every(1, 5)
    };
    assert!(refused(model.conv1d("none", sequence, 4, none, Activation::None)));
    assert!(refused(model.conv1d(
        "rows",
        rows,
        4,
        Causal::every(2, 5),
        Activation::None
    )));
    assert!(refused(model.attention(sequence, 4)));
    assert!(refused(model.attention(sequence, 0)));
    assert!(refused(model.residual(rows, sequence, Activation::None)));
    assert!(refused(model.select_steps(sequence, 3, 3)));
    assert!(refused(model.select_steps(sequence, 1, 0)));
    assert!(refused(model.mean_steps(rows)));
    assert!(refused(model.tokens("tokens", sequence, 4)));
    assert!(refused(model.join_steps(&[sequence, image])));
    assert!(refused(model.join_steps(&[])));
    assert!(refused(model.repeat_steps(sequence, 2)));
    assert!(refused(model.positions("positions", rows)));
    assert!(refused(model.upsample(image, (3, 9))));
    assert!(refused(model.soft_argmax(rows)));
}
