//! What is compiled for a card, and everything that any card may ask for, so that tests can compile it without one.

use super::{COMMON, Precision};
use crate::ops;

pub(super) fn real_of(precision: Precision) -> u32 {
    match precision {
        Precision::F32 | Precision::Tf32 => 0,
        Precision::Bf16 => 1,
        Precision::F16 => 2,
    }
}

/// The kernels of all operations as one text, compiled together.
pub(super) fn plan_kernels() -> String {
    let mut text = COMMON.to_owned();
    for kernels in ops::cuda_kernels() {
        text += kernels;
    }
    text
}

/// One compilation that a card may ask for.
pub struct Kernel {
    pub name: String,
    pub text: String,
    pub architecture: u32,
    pub defines: Vec<String>,
}

/// All compilations for Ampere and Hopper: tests try them without a card.
pub fn kernels() -> Vec<Kernel> {
    let mut all = Vec::new();
    for architecture in [80, 90] {
        for real in 0..3 {
            let (name, text) = ("plan".to_owned(), plan_kernels());
            all.push(Kernel {
                name,
                text,
                architecture,
                defines: vec![format!("REAL={real}")],
            });
        }
    }
    for (name, defines) in ops::recurrent::persistent_variants() {
        let text = ops::recurrent::RECURRENCE.to_owned();
        all.push(Kernel {
            name,
            text,
            architecture: 90,
            defines,
        });
    }
    for (name, text, mut defines) in ops::conv2d::examples() {
        defines.push("REAL=1".to_owned());
        let architecture = 80;
        all.push(Kernel {
            name,
            text,
            architecture,
            defines,
        });
    }
    all
}
