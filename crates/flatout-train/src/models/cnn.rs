//! Convolutions of 3×3, each followed by pooling, batch normalisation and ReLU; widths double up to `hidden_size`. A class is read from
//! each map's mean, wherever the thing is; a position needs to know where, so a regression reads a few maps as they lie.

use super::Inputs;
use crate::augment::Changes;
use crate::data::Shape;
use flatout_engine::{Activation, Augment, DataType, EngineError, Model, Tensor, Window};

/// The first layers are no narrower than this.
const LEAST_FILTERS: usize = 8;
/// Maps that a regression reads positions from.
const POSITION_MAPS: usize = 16;

/// The batch of images, `[batch, height, width, channels]`; `None` for data of another kind.
pub fn images(inputs: &Inputs, model: &mut Model) -> Result<Option<Tensor>, EngineError> {
    let Shape::Pictures {
        height,
        width,
        channels,
        scale,
        shift,
    } = *inputs.shape
    else {
        return Ok(None);
    };
    let settings = inputs.settings;
    let table = model.table("features", DataType::U8, &[height, width, channels])?;
    let start = model.index_input("start")?;
    let changes = Changes::of(settings);
    let augment = match changes.on_host(inputs.target) {
        true => Augment::default(),
        false => Augment {
            flip: changes.flip,
            padding: changes.shift,
        },
    };
    let images = model.gather_pictures(table, start, (scale, shift), augment)?;
    Ok(Some(images))
}

pub fn build(inputs: &Inputs, model: &mut Model) -> Result<Option<Tensor>, EngineError> {
    let Some(images) = images(inputs, model)? else {
        return Ok(None);
    };
    let levels = levels(inputs, model, images)?;
    let last = levels.last().copied().unwrap_or(images);
    Ok(Some(head(inputs, model, last)?))
}

/// What each layer gives, from the first one on.
pub fn levels(inputs: &Inputs, model: &mut Model, images: Tensor) -> Result<Vec<Tensor>, EngineError> {
    let (settings, mut values, mut all) = (inputs.settings, images, Vec::new());
    for layer in 0..inputs.layers {
        let halvings = (inputs.layers - 1 - layer) as u32;
        let filters = settings.hidden_size.checked_shr(halvings).unwrap_or(0);
        let filters = filters.max(LEAST_FILTERS.min(settings.hidden_size));
        values = convolution(model, &format!("convolutions.{layer}"), values, filters, 3)?;
        // Pooling first: the maximum of what is normalised is what is normalised of the maximum, at a quarter of the work.
        let [_, down, over, _] = <[usize; 4]>::try_from(model.shape(values)).unwrap_or_default();
        if down >= 2 && over >= 2 {
            values = model.max_pool(values, 2)?;
        }
        values = model.batch_norm(&format!("norms.{layer}"), values, Activation::Relu)?;
        all.push(values);
    }
    Ok(all)
}

/// From the last maps to the outputs.
pub fn head(inputs: &Inputs, model: &mut Model, values: Tensor) -> Result<Tensor, EngineError> {
    let values = match inputs.target.has_numbers() {
        true => {
            let maps = convolution(model, "maps", values, POSITION_MAPS, 1)?;
            let maps = model.batch_norm("maps_norm", maps, Activation::Relu)?;
            model.flatten(maps)?
        }
        false => model.global_average_pool(values)?,
    };
    let values = model.dropout(values, inputs.settings.dropout)?;
    model.linear("head", values, inputs.target.outputs(), Activation::None)
}

fn convolution(
    model: &mut Model,
    name: &str,
    input: Tensor,
    filters: usize,
    size: usize,
) -> Result<Tensor, EngineError> {
    let window = Window {
        size,
        stride: 1,
        padding: size / 2,
    };
    model.conv2d(name, input, filters, window, Activation::None)
}
