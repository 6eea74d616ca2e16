//! `nn.LSTM` over windows.

use super::{Inputs, sequence};
use flatout_engine::{EngineError, Model, Tensor};

pub fn build(inputs: &Inputs, model: &mut Model) -> Result<Option<Tensor>, EngineError> {
    sequence::build(inputs, model, |model, window, entity, stack, both| match both {
        true => model.bidirectional_lstm("lstm", window, entity, stack),
        false => model.lstm("lstm", window, entity, stack),
    })
}
