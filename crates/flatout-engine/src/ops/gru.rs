//! A stack of GRU layers, PyTorch's `nn.GRU` (gates in the order reset, update, new).

mod backward;
mod cell;
mod cpu;
mod cuda;
mod shape;

pub use shape::Gru;
