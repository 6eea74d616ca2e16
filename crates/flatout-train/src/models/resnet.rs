//! A residual network of basic blocks: two 3×3 convolutions with batch normalization and a shortcut around them, in four stages of
//! doubling width up to `hidden_size`. `num_layers` is the depth in its usual count: 10, 18 or 34. Names are torchvision's, except that the
//! stem is a 3×3 convolution and the head is `head`.

use super::{Inputs, cnn};
use flatout_engine::{Activation, EngineError, Model, Tensor, Window};

/// Blocks of the four stages by depth.
const DEPTHS: &[(usize, [usize; 4])] = &[(10, [1; 4]), (18, [2; 4]), (34, [3, 4, 6, 3])];
/// Images of at least this many pixels per side are made smaller by the stem.
const LARGE: usize = 64;
/// The first stage is no narrower than this.
const LEAST_FILTERS: usize = 8;

/// Whether there is a network of this depth.
pub fn has_depth(layers: usize) -> bool {
    DEPTHS.iter().any(|(depth, _)| *depth == layers)
}

pub fn build(inputs: &Inputs, model: &mut Model) -> Result<Option<Tensor>, EngineError> {
    let Some(images) = cnn::images(inputs, model)? else {
        return Ok(None);
    };
    let Some((_, stages)) = DEPTHS.iter().find(|(depth, _)| *depth == inputs.layers) else {
        return Ok(None);
    };
    let width_of = |stage: usize| {
        let width = inputs.settings.hidden_size >> (3 - stage);
        width.max(LEAST_FILTERS.min(inputs.settings.hidden_size))
    };
    let large = model.shape(images)[1..3].iter().all(|side| *side >= LARGE);
    let stem = window(3, if large { 2 } else { 1 });
    let mut values = model.conv2d("conv1", images, width_of(0), stem, Activation::None)?;
    if large {
        // Before the normalization, where it costs a quarter of the work.
        values = model.max_pool(values, 2)?;
    }
    values = model.batch_norm("bn1", values, Activation::Relu)?;
    for (stage, &blocks) in stages.iter().enumerate() {
        for block in 0..blocks {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let name = format!("layer{}.{block}", stage + 1);
            values = basic_block(model, &name, values, width_of(stage), stride)?;
        }
    }
    Ok(Some(cnn::head(inputs, model, values)?))
}

fn window(size: usize, stride: usize) -> Window {
    Window {
        size,
        stride,
        padding: size / 2,
    }
}

fn basic_block(
    model: &mut Model,
    name: &str,
    input: Tensor,
    filters: usize,
    stride: usize,
) -> Result<Tensor, EngineError> {
    let part = |part: &str| format!("{name}.{part}");
    let branch = model.conv2d_plain(&part("conv1"), input, filters, window(3, stride))?;
    let branch = model.batch_norm(&part("bn1"), branch, Activation::Relu)?;
    let branch = model.conv2d_plain(&part("conv2"), branch, filters, window(3, 1))?;
    let branch = model.batch_norm(&part("bn2"), branch, Activation::None)?;
    let same = stride == 1 && model.shape(input).last() == Some(&filters);
    let shortcut = if same {
        input
    } else {
        let shortcut = model.conv2d_plain(&part("downsample.0"), input, filters, window(1, stride))?;
        model.batch_norm(&part("downsample.1"), shortcut, Activation::None)?
    };
    model.residual(branch, shortcut, Activation::Relu)
}
