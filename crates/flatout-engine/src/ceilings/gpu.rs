//! A card: products in every precision it has, copies within it and to it, and what launching a kernel costs.

use super::Ceiling;
use crate::cuda::ceilings as measured;
pub use crate::cuda::ceilings::Card;
use crate::cuda::{CudaError, Precision};

/// Opens a card; an error says what is missing.
pub fn open(ordinal: usize) -> Result<Card, CudaError> {
    Card::open(ordinal)
}

/// One group of numbers.
pub type Part = fn(&Card, usize) -> Result<Vec<Ceiling>, CudaError>;

/// One after the other, so that progress can be shown between them.
pub const PARTS: [(&str, Part); 4] = [
    ("products", products),
    ("memory", memory),
    ("copies", copies),
    ("launch", launch),
];

fn products(card: &Card, ordinal: usize) -> Result<Vec<Ceiling>, CudaError> {
    let mut found = Vec::new();
    for precision in [Precision::F32, Precision::Tf32, Precision::Bf16, Precision::F16] {
        if let Some(flops) = measured::product(card, precision)? {
            let name = if precision == Precision::F16 {
                "f16"
            } else {
                precision.name()
            };
            found.push(Ceiling::new(
                format!("gpu.{ordinal}.{name}"),
                flops / 1e12,
                "TFLOP/s",
            ));
        }
    }
    Ok(found)
}

fn memory(card: &Card, ordinal: usize) -> Result<Vec<Ceiling>, CudaError> {
    Ok(vec![Ceiling::new(
        format!("gpu.{ordinal}.memory"),
        measured::memory(card)? / 1e9,
        "GB/s",
    )])
}

fn copies(card: &Card, ordinal: usize) -> Result<Vec<Ceiling>, CudaError> {
    let (pageable, pinned) = measured::copies(card)?;
    Ok(vec![
        Ceiling::new(format!("gpu.{ordinal}.copy.pageable"), pageable / 1e9, "GB/s"),
        Ceiling::new(format!("gpu.{ordinal}.copy.pinned"), pinned / 1e9, "GB/s"),
    ])
}

fn launch(card: &Card, ordinal: usize) -> Result<Vec<Ceiling>, CudaError> {
    Ok(vec![Ceiling::new(
        format!("gpu.{ordinal}.launch"),
        measured::launch(card)? * 1e6,
        "µs",
    )])
}
