//! Positions from heatmaps: a U-Net (the layers of the plain CNN downward; upward, each level joined with the one of its size) whose maps at half
//! the image's size are read by a soft argmax, the mean position under a softmax over the pixels. A linear head turns the maps' positions into
//! the label's units.

use super::{Inputs, cnn};
use flatout_engine::{Activation, EngineError, Model, Tensor, Window};

/// Maps whose peaks are read.
const MAPS: usize = 16;

pub fn build(inputs: &Inputs, model: &mut Model) -> Result<Option<Tensor>, EngineError> {
    let Some(images) = cnn::images(inputs, model)? else {
        return Ok(None);
    };
    let levels = cnn::levels(inputs, model, images)?;
    let Some((&lowest, above)) = levels.split_last() else {
        return Ok(None);
    };
    let window = Window {
        size: 3,
        stride: 1,
        padding: 1,
    };
    let mut values = lowest;
    for (level, &across) in above.iter().enumerate().rev() {
        let [_, height, width, filters] = <[usize; 4]>::try_from(model.shape(across)).unwrap_or_default();
        let larger = model.upsample(values, (height, width))?;
        let joined = model.concat(&[larger, across])?;
        let joined = model.conv2d_plain(&format!("ups.{level}"), joined, filters, window)?;
        values = model.batch_norm(&format!("up_norms.{level}"), joined, Activation::Relu)?;
    }
    let one = Window {
        size: 1,
        stride: 1,
        padding: 0,
    };
    let maps = model.conv2d("maps", values, MAPS, one, Activation::None)?;
    let positions = model.soft_argmax(maps)?;
    let positions = model.dropout(positions, inputs.settings.dropout)?;
    Ok(Some(model.linear(
        "head",
        positions,
        inputs.target.outputs(),
        Activation::None,
    )?))
}
