//! A loss made of terms: several targets with a loss each, and a weight per row and target.
//!
//! `L = Σ_terms share · 1/rows · Σ_rows weight[row, column] · l(prediction[row, …], label[row, column])`
//!
//! Labels and weights come as words, `[batch, 2 · columns]`: the bits of the f32 labels of a row, then those of its weights. So they keep
//! all their digits where activations have sixteen bits, and a class number is exact.

mod cpu;
mod cuda;
mod shape;

pub use shape::{Term, TermLoss, Terms};
