//! One vector per feature of a row: `y[feature, row] = x[row, feature] · W[feature] + b[feature]`, a sequence over the features.

mod cpu;
mod cuda;
mod shape;

pub use shape::Tokens;
