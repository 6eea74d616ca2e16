//! A temporal convolutional network: residual blocks of two causal convolutions, the dilation doubling from block to block, a linear head
//! on the last step.
//!
//! The head reads one step, so a block's output is needed only where the blocks above look: every 2ⁱ-th step counted from the last. Only
//! these steps are computed. They lie next to each other, so a dilated convolution becomes a plain one, and a block does half the work of the
//! one below it. The result is that of the dilated network over every step.

use super::{Inputs, windows};
use flatout_engine::{Activation, Causal, EngineError, Model, Tensor};

/// Steps that one block computes: after its first and after its second convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Needed {
    first: usize,
    second: usize,
}

/// What each block computes of a window, from the lowest block up: the head reads the last step, and everything else follows from it.
fn needed(steps: usize, blocks: usize, taps: usize) -> Vec<Needed> {
    let mut all = Vec::new();
    let mut wanted = 1;
    for block in (0..blocks).rev() {
        // Steps that there are at this distance of each other.
        let there = steps.div_ceil(1usize.checked_shl(block as u32).unwrap_or(usize::MAX));
        let first = (2 * (wanted - 1) + taps).min(there);
        all.push(Needed {
            first,
            second: wanted,
        });
        let below = first + taps - 1;
        // The block below has its own distance, half of this one; it gives every second of its steps.
        wanted = below.min(there);
    }
    all.reverse();
    all
}

pub fn build(inputs: &Inputs, model: &mut Model) -> Result<Option<Tensor>, EngineError> {
    let Some(mut values) = windows::joined(inputs, model)? else {
        return Ok(None);
    };
    let settings = inputs.settings;
    let (hidden, taps) = (settings.hidden_size, settings.kernel_size);
    let blocks = needed(settings.sequence_length, inputs.layers, taps);
    for (block, needed) in blocks.into_iter().enumerate() {
        let name = |part: &str| format!("blocks.{block}.{part}");
        let [_, _, width] = <[usize; 3]>::try_from(model.shape(values)).unwrap_or_default();
        let causal = |stride, outputs| Causal {
            taps,
            dilation: 1,
            stride,
            outputs,
        };
        let first = causal(1, needed.first);
        let branch = model.conv1d(&name("conv1"), values, hidden, first, Activation::Relu)?;
        let branch = model.dropout(branch, settings.dropout)?;
        let second = causal(2, needed.second);
        let branch = model.conv1d(&name("conv2"), branch, hidden, second, Activation::Relu)?;
        let branch = model.dropout(branch, settings.dropout)?;
        let through = if width == hidden {
            model.select_steps(values, 2, needed.second)?
        } else {
            let one = Causal { taps: 1, ..second };
            model.conv1d(&name("downsample"), values, hidden, one, Activation::None)?
        };
        values = model.residual(branch, through, Activation::Relu)?;
    }
    let last = model.last_step(values)?;
    Ok(Some(model.linear(
        "head",
        last,
        inputs.target.outputs(),
        Activation::None,
    )?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computes_the_steps_that_reach_the_last_one_and_no_others() {
        for steps in [1, 2, 7, 16, 60, 61] {
            for blocks in 1..7 {
                for taps in [1, 2, 3, 5] {
                    let found = needed(steps, blocks, taps);
                    // Distances from the last step, block by block from the top.
                    let mut wanted = std::collections::BTreeSet::from([0]);
                    for (block, needed) in found.iter().enumerate().rev() {
                        let dilation = 1 << block;
                        assert_eq!(needed.second, wanted.len(), "{steps} {blocks} {taps} {block}");
                        let reach = |from: &std::collections::BTreeSet<usize>| {
                            let all = from
                                .iter()
                                .flat_map(|at| (0..taps).map(move |tap| at + tap * dilation));
                            all.filter(|at| *at < steps).collect()
                        };
                        let inner: std::collections::BTreeSet<usize> = reach(&wanted);
                        assert!(needed.first >= inner.len() && needed.first <= steps.div_ceil(dilation));
                        let outer: std::collections::BTreeSet<usize> = reach(&inner);
                        let all: std::collections::BTreeSet<usize> = outer.union(&wanted).copied().collect();
                        wanted = (0..steps)
                            .step_by(dilation)
                            .filter(|at| *at <= all.last().copied().unwrap_or(0))
                            .collect();
                    }
                }
            }
        }
    }
}
