//! Scales all gradients down together when their global norm is above a limit.

mod cpu;

pub(crate) use cpu::{NormSpace, norm};

/// The factor on the gradients, as PyTorch's `clip_grad_norm_` has it.
pub fn factor(norm: f64, limit: Option<f64>) -> f64 {
    match limit {
        Some(limit) => (limit / (norm + 1e-6)).min(1.0),
        None => 1.0,
    }
}
