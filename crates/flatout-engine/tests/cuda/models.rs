//! Small models that together use every operation.

use crate::every_loss::every_loss;
use flatout_engine::{
    Activation, Augment, Causal, DataType, EngineError, Model, Optimizer, Plan, Recurrent, SequenceOutput,
    Tensor, Window,
};

/// Rows of every table.
pub const ROWS: usize = 400;

fn optimizer() -> Optimizer {
    Optimizer {
        clip_norm: Some(1.0),
        ..Optimizer::default()
    }
}

/// The stocks' model, small: windows, an entity's embedding, a stack of LSTMs or GRUs.
pub fn stocks(
    kind: &str,
    hidden: usize,
    dropout: f64,
    output: SequenceOutput,
    batch: usize,
) -> Result<Plan, EngineError> {
    let mut model = Model::new(batch);
    let prices = model.table("prices", DataType::Real, &[5])?;
    let labels = model.table("labels", DataType::Real, &[1])?;
    let (start, stock) = (model.index_input("start")?, model.index_input("stock")?);
    let window = model.gather_windows(prices, start, 12)?;
    let target = model.gather_rows(labels, start)?;
    let entity = model.embedding("embedding", stock, 9, 6)?;
    let stack = Recurrent {
        hidden,
        layers: 2,
        dropout,
        output,
    };
    let state = match kind {
        "gru" => model.gru("gru", window, Some(entity), stack)?,
        _ => model.lstm("lstm", window, Some(entity), stack)?,
    };
    let state = match output {
        SequenceOutput::Last => state,
        // Every step's output is used: the last gate of a second stack sums them up.
        SequenceOutput::All => {
            let stack = Recurrent {
                hidden: 16,
                layers: 1,
                dropout: 0.0,
                output: SequenceOutput::Last,
            };
            match kind {
                "gru" => model.gru("top", state, None, stack)?,
                _ => model.lstm("top", state, None, stack)?,
            }
        }
    };
    let prediction = model.linear("head", state, 1, Activation::None)?;
    model.name(prediction, "prediction")?;
    let loss = model.mse(prediction, target)?;
    model.compile(loss, optimizer())
}

/// Windows with an entity's embedding at every step, and the labels to learn from them.
fn joined_windows(model: &mut Model, steps: usize) -> Result<(Tensor, Tensor), EngineError> {
    let prices = model.table("prices", DataType::Real, &[5])?;
    let labels = model.table("labels", DataType::Real, &[1])?;
    let (start, stock) = (model.index_input("start")?, model.index_input("stock")?);
    let window = model.gather_windows(prices, start, steps)?;
    let entity = model.embedding("embedding", stock, 9, 3)?;
    let entity = model.repeat_steps(entity, steps)?;
    let target = model.gather_rows(labels, start)?;
    Ok((model.concat(&[window, entity])?, target))
}

/// Residual blocks of causal convolutions, with steps left out, a dilation and dropout.
pub fn tcn(hidden: usize, batch: usize) -> Result<Plan, EngineError> {
    let mut model = Model::new(batch);
    let (window, target) = joined_windows(&mut model, 12)?;
    let causal = |taps, dilation, stride, outputs| Causal {
        taps,
        dilation,
        stride,
        outputs,
    };
    let first = model.conv1d("conv1", window, hidden, causal(3, 1, 1, 12), Activation::Relu)?;
    let first = model.dropout(first, 0.1)?;
    let second = model.conv1d("conv2", first, hidden, causal(3, 1, 2, 6), Activation::Tanh)?;
    let through = model.conv1d("down", window, hidden, causal(1, 1, 2, 6), Activation::None)?;
    let block = model.residual(second, through, Activation::Relu)?;
    let third = model.conv1d("conv3", block, hidden, causal(2, 2, 1, 6), Activation::None)?;
    let plain = model.conv1d("conv4", block, hidden, causal(1, 1, 1, 6), Activation::Sigmoid)?;
    let block = model.residual(third, plain, Activation::None)?;
    let (last, chosen) = (model.last_step(block)?, model.select_steps(block, 3, 2)?);
    let both = [last, model.mean_steps(chosen)?];
    let joined = model.concat(&both)?;
    head(model, joined, target)
}

/// A pre-norm encoder: the tensor cores' attention, or a warp per row, by the size of a head.
pub fn transformer(width: usize, heads: usize, steps: usize) -> Result<Plan, EngineError> {
    let mut model = Model::new(19);
    let (window, target) = joined_windows(&mut model, steps)?;
    let values = model.linear("input", window, width, Activation::None)?;
    let mut values = model.positions("positions", values)?;
    for layer in 0..2 {
        let branch = model.layer_norm(&format!("norm{layer}"), values)?;
        let branch = model.self_attention(&format!("attention{layer}"), branch, heads)?;
        let branch = model.dropout(branch, 0.1)?;
        values = model.residual(values, branch, Activation::None)?;
        let branch = model.layer_norm(&format!("second_norm{layer}"), values)?;
        // One layer with its GELU, one with the GELU by itself.
        let name = format!("wide{layer}");
        let branch = match layer {
            0 => model.linear_gelu(&name, branch, 2 * width)?,
            _ => {
                let wide = model.linear(&name, branch, 2 * width, Activation::None)?;
                model.gelu(wide)?
            }
        };
        let branch = model.linear(&format!("narrow{layer}"), branch, width, Activation::None)?;
        values = model.residual(values, branch, Activation::None)?;
    }
    let values = model.layer_norm("norm", values)?;
    let mean = model.mean_steps(values)?;
    head(model, mean, target)
}

/// Features and a category as a sequence, one encoder layer over them; features are used twice, so their gradient adds up.
pub fn columns(width: usize) -> Result<Plan, EngineError> {
    let mut model = Model::new(37);
    let prices = model.table("prices", DataType::Real, &[5])?;
    let labels = model.table("labels", DataType::Real, &[1])?;
    let start = model.index_input("start")?;
    let (row, target) = (
        model.gather_rows(prices, start)?,
        model.gather_rows(labels, start)?,
    );
    let features = model.linear("input", row, 9, Activation::Tanh)?;
    let tokens = model.tokens("tokens", features, width)?;
    let again = model.linear("again", features, width, Activation::None)?;
    let values = model.join_steps(&[tokens, again])?;
    let branch = model.layer_norm("norm1", values)?;
    let branch = model.self_attention("attention", branch, 2)?;
    let values = model.residual(values, branch, Activation::None)?;
    let mean = model.mean_steps(values)?;
    head(model, mean, target)
}

/// Both directions, with what lies between the layers reversed twice.
pub fn bidirectional(kind: &str) -> Result<Plan, EngineError> {
    let mut model = Model::new(40);
    let prices = model.table("prices", DataType::Real, &[5])?;
    let labels = model.table("labels", DataType::Real, &[1])?;
    let (start, stock) = (model.index_input("start")?, model.index_input("stock")?);
    let window = model.gather_windows(prices, start, 12)?;
    let target = model.gather_rows(labels, start)?;
    let entity = model.embedding("embedding", stock, 9, 6)?;
    let stack = Recurrent {
        hidden: 48,
        layers: 2,
        dropout: 0.1,
        output: SequenceOutput::Last,
    };
    let state = match kind {
        "gru" => model.bidirectional_gru("gru", window, Some(entity), stack)?,
        _ => model.bidirectional_lstm("lstm", window, Some(entity), stack)?,
    };
    head(model, state, target)
}

/// A level down and up again, joined with the one of its size; the positions of the maps' peaks.
pub fn heatmaps(channels: usize, maps: usize) -> Result<Plan, EngineError> {
    let mut model = Model::new(24);
    let (images, target) = pictures(&mut model, &[22, 17, 1])?;
    let first = model.conv2d("conv1", images, channels, THREE, Activation::Relu)?;
    let small = model.conv2d("conv2", first, channels, THREE, Activation::Tanh)?;
    let small = model.max_pool(small, 3)?;
    let larger = model.upsample(small, (22, 17))?;
    let joined = model.concat(&[larger, first])?;
    let maps = model.conv2d("maps", joined, maps, THREE, Activation::None)?;
    let positions = model.soft_argmax(maps)?;
    head(model, positions, target)
}

/// Basic blocks with batch normalization and shortcuts, one of them projected.
pub fn residual_images() -> Result<Plan, EngineError> {
    let mut model = Model::new(24);
    let (images, target) = pictures(&mut model, &[21, 18, 3])?;
    let half = Window { stride: 2, ..THREE };
    let first = model.conv2d("conv1", images, 16, THREE, Activation::None)?;
    let first = model.batch_norm("bn1", first, Activation::Relu)?;
    let branch = model.conv2d_plain("conv2", first, 24, half)?;
    let branch = model.batch_norm("bn2", branch, Activation::Relu)?;
    let branch = model.conv2d_plain("conv3", branch, 24, THREE)?;
    let branch = model.batch_norm("bn3", branch, Activation::None)?;
    let one = Window {
        size: 1,
        stride: 2,
        padding: 0,
    };
    let shortcut = model.conv2d_plain("down", first, 24, one)?;
    let shortcut = model.batch_norm("bn4", shortcut, Activation::None)?;
    let second = model.residual(branch, shortcut, Activation::Relu)?;
    let branch = model.conv2d_plain("conv4", second, 24, THREE)?;
    let branch = model.batch_norm("bn5", branch, Activation::None)?;
    let third = model.residual(branch, second, Activation::Relu)?;
    let pooled = model.global_average_pool(third)?;
    head(model, pooled, target)
}

pub fn tabular() -> Result<Plan, EngineError> {
    tabular_with(optimizer())
}

pub fn averaged() -> Result<Plan, EngineError> {
    tabular_with(Optimizer {
        average: Some(0.75),
        ..optimizer()
    })
}

fn tabular_with(optimizer: Optimizer) -> Result<Plan, EngineError> {
    let mut model = Model::new(48);
    let prices = model.table("prices", DataType::Real, &[5])?;
    let labels = model.table("labels", DataType::Real, &[1])?;
    let (start, stock) = (model.index_input("start")?, model.index_input("stock")?);
    let row = model.gather_rows(prices, start)?;
    let target = model.gather_rows(labels, start)?;
    let entity = model.embedding("embedding", stock, 9, 6)?;
    let joined = model.concat(&[row, entity])?;
    let first = model.linear("first", joined, 40, Activation::Relu)?;
    let second = model.linear("second", first, 24, Activation::Tanh)?;
    let third = model.linear("third", second, 16, Activation::Sigmoid)?;
    let prediction = model.linear("head", third, 1, Activation::None)?;
    model.name(prediction, "prediction")?;
    let loss = model.mse(prediction, target)?;
    model.compile(loss, optimizer)
}

/// Rows of prices through one hidden layer to so many outputs.
fn features(model: &mut Model, outputs: usize) -> Result<(Tensor, Tensor), EngineError> {
    let prices = model.table("prices", DataType::Real, &[5])?;
    let start = model.index_input("start")?;
    let row = model.gather_rows(prices, start)?;
    let hidden = model.linear("hidden", row, 24, Activation::Tanh)?;
    Ok((model.linear("head", hidden, outputs, Activation::None)?, start))
}

pub fn huber() -> Result<Plan, EngineError> {
    let mut model = Model::new(48);
    let (prediction, start) = features(&mut model, 1)?;
    let labels = model.table("labels", DataType::Real, &[1])?;
    let target = model.gather_rows(labels, start)?;
    let loss = model.huber(prediction, target, 0.4)?;
    model.compile(loss, optimizer())
}

pub fn bce() -> Result<Plan, EngineError> {
    let mut model = Model::new(48);
    let (logit, start) = features(&mut model, 1)?;
    let chances = model.table("chances", DataType::Real, &[1])?;
    let target = model.gather_rows(chances, start)?;
    let loss = model.bce_with_logits(logit, target)?;
    model.compile(loss, optimizer())
}

pub fn cross_entropy() -> Result<Plan, EngineError> {
    let mut model = Model::new(48);
    let (logits, start) = features(&mut model, 2 * 7)?;
    let classes = model.table("classes", DataType::I32, &[2])?;
    let target = model.gather_rows(classes, start)?;
    let loss = model.cross_entropy(logits, target)?;
    model.compile(loss, optimizer())
}

/// Every loss of a term, with a weight per row.
pub fn terms() -> Result<Plan, EngineError> {
    let mut model = Model::new(48);
    let (prediction, start) = features(&mut model, 13)?;
    let words = model.table("words", DataType::I32, &[16])?;
    let target = model.gather_rows(words, start)?;
    let loss = model.terms(prediction, target, every_loss())?;
    model.compile(loss, optimizer())
}

/// Activations that stand alone, dropout, batch norms of widths that do and do not divide by eight.
pub fn regularised() -> Result<Plan, EngineError> {
    let mut model = Model::new(96);
    let (prices, labels) = (
        model.table("prices", DataType::Real, &[5])?,
        model.table("labels", DataType::Real, &[1])?,
    );
    let start = model.index_input("start")?;
    let (row, target) = (
        model.gather_rows(prices, start)?,
        model.gather_rows(labels, start)?,
    );
    let first = model.linear("first", row, 40, Activation::None)?;
    let first = model.batch_norm("norm1", first, Activation::Relu)?;
    let first = model.dropout(first, 0.2)?;
    let second = model.linear("second", first, 27, Activation::None)?;
    let second = model.batch_norm("norm2", second, Activation::None)?;
    let second = model.activate(second, Activation::Sigmoid)?;
    let prediction = model.linear("head", second, 1, Activation::None)?;
    let loss = model.mse(prediction, target)?;
    model.compile(loss, optimizer())
}

/// Images of bytes, and the labels to learn from them.
fn pictures(model: &mut Model, shape: &[usize]) -> Result<(Tensor, Tensor), EngineError> {
    let (pixels, labels) = (
        model.table("pixels", DataType::U8, shape)?,
        model.table("labels", DataType::Real, &[1])?,
    );
    let start = model.index_input("start")?;
    let images = model.gather_bytes(pixels, start, 1.0 / 128.0, -1.0)?;
    Ok((images, model.gather_rows(labels, start)?))
}

const THREE: Window = Window {
    size: 3,
    stride: 1,
    padding: 1,
};

fn head(mut model: Model, values: Tensor, target: Tensor) -> Result<Plan, EngineError> {
    let prediction = model.linear("head", values, 1, Activation::None)?;
    let loss = model.mse(prediction, target)?;
    model.compile(loss, optimizer())
}

/// The first layer by kernels of its own, the second by the library, both pooled; the third not.
pub fn pooled_images() -> Result<Plan, EngineError> {
    let mut model = Model::new(24);
    let (images, target) = pictures(&mut model, &[22, 38, 1])?;
    let first = model.conv2d("conv1", images, 16, THREE, Activation::Relu)?;
    let first = model.max_pool(first, 2)?;
    let second = model.conv2d("conv2", first, 32, THREE, Activation::Relu)?;
    let second = model.max_pool(second, 2)?;
    let third = model.conv2d("conv3", second, 32, THREE, Activation::Relu)?;
    let pooled = model.global_average_pool(third)?;
    head(model, pooled, target)
}

/// Three channels, strides, numbers of filters that do not divide by eight, a pooling that leaves pixels over.
pub fn odd_images() -> Result<Plan, EngineError> {
    let mut model = Model::new(19);
    let (images, target) = pictures(&mut model, &[21, 19, 3])?;
    let wide = Window {
        size: 3,
        stride: 2,
        padding: 1,
    };
    let first = model.conv2d("conv1", images, 16, wide, Activation::None)?;
    let first = model.batch_norm("norm1", first, Activation::Relu)?;
    let second = model.conv2d("conv2", first, 12, THREE, Activation::Tanh)?;
    // A name: whoever may look at it must find it, so it is not pooled on the way.
    model.name(second, "seen")?;
    let second = model.max_pool(second, 2)?;
    let third = model.conv2d("conv3", second, 10, THREE, Activation::Sigmoid)?;
    let third = model.batch_norm("norm3", third, Activation::None)?;
    let flat = model.flatten(third)?;
    head(model, flat, target)
}

/// One layer's output is read by two: gradients are added.
pub fn joined_images() -> Result<Plan, EngineError> {
    let mut model = Model::new(16);
    let (images, target) = pictures(&mut model, &[12, 12, 1])?;
    let first = model.conv2d("conv1", images, 8, THREE, Activation::Tanh)?;
    let second = model.conv2d("conv2", first, 8, THREE, Activation::Relu)?;
    let both = model.concat(&[first, second])?;
    let pooled = model.max_pool(both, 3)?;
    let flat = model.flatten(pooled)?;
    head(model, flat, target)
}

/// Pictures that change at random while they are trained on.
pub fn moved_images() -> Result<Plan, EngineError> {
    let mut model = Model::new(24);
    let table = model.table("pixels", DataType::U8, &[14, 18, 3])?;
    let labels = model.table("labels", DataType::Real, &[1])?;
    let start = model.index_input("start")?;
    let augment = Augment {
        flip: true,
        padding: 3,
    };
    let images = model.gather_pictures(table, start, (1.0 / 64.0, -2.0), augment)?;
    let target = model.gather_rows(labels, start)?;
    let first = model.conv2d("conv1", images, 16, THREE, Activation::Relu)?;
    let flat = model.flatten(first)?;
    head(model, flat, target)
}
