//! A stack of LSTM layers, PyTorch's `nn.LSTM` (gates in the order input, forget, cell, output).

mod backward;
mod cell;
mod cpu;
mod cuda;
mod shape;

pub use shape::Lstm;
