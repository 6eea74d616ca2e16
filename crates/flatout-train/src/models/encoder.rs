//! Pre-norm encoder layers with GELU, as PyTorch's `nn.TransformerEncoderLayer(norm_first=True, activation="gelu")`. Dropout is on both
//! branches and inside the feed-forward layer, not on the attention weights.

use super::Inputs;
use flatout_engine::{Activation, EngineError, Model, Tensor};

/// The feed-forward layer is this many times as wide as the model.
const FEED_FORWARD: usize = 4;

/// All layers over `[steps, batch, hidden_size]`, then the mean over the steps of their normalized result.
pub fn mean(inputs: &Inputs, model: &mut Model, mut values: Tensor) -> Result<Tensor, EngineError> {
    let settings = inputs.settings;
    let (hidden, rate) = (settings.hidden_size, settings.dropout);
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
    model.mean_steps(values)
}
