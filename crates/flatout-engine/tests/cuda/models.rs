//! Small models that together use every operation.

use flatout_engine::{
    Activation, Augment, DataType, EngineError, Model, Optimizer, Plan, Recurrent, SequenceOutput, Tensor,
    Window,
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

pub fn tabular() -> Result<Plan, EngineError> {
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
    model.compile(loss, optimizer())
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
