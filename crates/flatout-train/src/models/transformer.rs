//! A pre-norm transformer encoder over the window, with learned positions and GELU; a linear head on the mean over the steps. Layers are
//! PyTorch's `nn.TransformerEncoderLayer(norm_first=True, activation="gelu")`; dropout is on both branches and inside the feed-forward
//! layer, not on the attention weights.

use super::{Inputs, windows};
use flatout_engine::{Activation, EngineError, Model, Tensor};

/// The feed-forward layer is this many times as wide as the model.
const FEED_FORWARD: usize = 4;

pub fn build(inputs: &Inputs, model: &mut Model) -> Result<Option<Tensor>, EngineError> {
    let Some(window) = windows::joined(inputs, model)? else {
        return Ok(None);
    };
    let settings = inputs.settings;
    let (hidden, rate) = (settings.hidden_size, settings.dropout);
    let values = model.linear("input", window, hidden, Activation::None)?;
    let mut values = model.positions("positions", values)?;
    for layer in 0..inputs.layers {
        let name = |part: &str| format!("encoder.layers.{layer}.{part}");
        let branch = model.layer_norm(&name("norm1"), values)?;
        let branch = model.self_attention(&name("self_attn"), branch, settings.num_heads)?;
        let branch = model.dropout(branch, rate)?;
        values = model.residual(values, branch, Activation::None)?;
        let branch = model.layer_norm(&name("norm2"), values)?;
        let branch = model.linear_gelu(&name("linear1"), branch, FEED_FORWARD * hidden)?;
        let branch = model.dropout(branch, rate)?;
        let branch = model.linear(&name("linear2"), branch, hidden, Activation::None)?;
        let branch = model.dropout(branch, rate)?;
        values = model.residual(values, branch, Activation::None)?;
    }
    let values = model.layer_norm("encoder.norm", values)?;
    let mean = model.mean_steps(values)?;
    Ok(Some(model.linear(
        "head",
        mean,
        inputs.target.outputs(),
        Activation::None,
    )?))
}
