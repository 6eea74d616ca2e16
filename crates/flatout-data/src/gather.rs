//! Runs of memory that lie anywhere, copied one behind the other: what a batch of windows or rows is made of.
//!
//! The processor foresees reading within a run but not where the next one begins, so plain copying waits for memory at the start of
//! each. Here all lines of some runs are asked for in one go, a few runs before they are copied, and asked for again a little later; how
//! they are written is `copy`'s matter.

mod copy;

use crate::block::Plain;
use copy::Copier;
use std::ops::Range;

const LINE_BYTES: usize = 64;
/// Lines that are asked for in one go.
const GROUP_LINES: usize = 64;
/// How many goes before its copy a group is asked for. More than once, because the processor drops what it is asked for while it has no
/// room to remember it, and a line that is there costs next to nothing to ask for again. Windows of 4.8 kB out of 60 MB on a Zen 4, as a share
/// of plain copying: 0.46 without asking, 0.72–0.78 asked for once whatever the lead, 0.92–1.01 twice, 0.96–1.07 three times.
const LEAD_GROUPS: [usize; 3] = [1, 2, 4];
/// Of one run: in longer ones the processor has found the pattern by then, and more would push each other out of the second cache.
const MOST_LINES: usize = 512;

/// Copies the `width` values from `block[starts(i)]` on to place `i` of `into`, for each `i` that `into` has room for.
pub(crate) fn runs<T: Plain>(block: &[T], width: usize, starts: impl Fn(usize) -> usize, into: &mut [T]) {
    if width == 0 {
        return;
    }
    let count = into.len() / width;
    let line_values = LINE_BYTES / size_of::<T>();
    let lines = width.div_ceil(line_values).min(MOST_LINES);
    let group = (GROUP_LINES / lines).max(1);
    let ask = |runs: Range<usize>| {
        for run in runs.start.min(count)..runs.end.min(count) {
            let first = starts(run);
            (0..lines).for_each(|line| ask_for(block, first + line * line_values));
            // A run that does not begin with a line reaches into one more.
            ask_for(block, first + width - 1);
        }
    };
    let copier = Copier::new(size_of_val(into), width * size_of::<T>());
    ask(0..LEAD_GROUPS[2] * group);
    for (number, targets) in into[..count * width].chunks_mut(group * width).enumerate() {
        let first = number * group;
        for lead in LEAD_GROUPS {
            ask(first + lead * group..first + (lead + 1) * group);
        }
        for (index, target) in targets.chunks_exact_mut(width).enumerate() {
            copier.copy(&block[starts(first + index)..][..width], target);
        }
    }
    copier.finish();
}

/// Single values from all over a block: all are asked for before the first is needed.
pub(crate) fn values<T: Plain>(block: &[T], places: impl Fn(usize) -> usize, into: &mut [T]) {
    const AHEAD: usize = 32;
    let count = into.len();
    (0..AHEAD.min(count)).for_each(|index| ask_for(block, places(index)));
    for (index, slot) in into.iter_mut().enumerate() {
        ask_for(block, places((index + AHEAD).min(count - 1)));
        *slot = block[places(index)];
    }
}

/// Asks for the line of `block[index]` to be brought into the second cache. It is not checked that the block has it: asking reads nothing, and
/// a check a line is as much work as the asking.
#[inline(always)]
pub(crate) fn ask_for<T>(block: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a hint, which neither reads nor fails, wherever the address leads.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(block.as_ptr().wrapping_add(index).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (block, index);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn copies_what_plain_slicing_copies(
            rows in 1usize..200,
            width in 1usize..70,
            length in 1usize..40,
            picks in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let block: Vec<u32> = (0..(rows * width) as u32).collect();
            let length = length.min(rows);
            let starts: Vec<usize> = picks.iter().map(|pick| pick.index(rows - length + 1) * width).collect();
            let mut into = vec![0; starts.len() * length * width];
            runs(&block, length * width, |index| starts[index], &mut into);
            let expected: Vec<u32> = starts.iter().flat_map(|&start| block[start..start + length * width].to_vec()).collect();
            prop_assert_eq!(into, expected);
            let mut single = vec![0; starts.len()];
            values(&block, |index| starts[index], &mut single);
            let expected: Vec<u32> = starts.iter().map(|&start| block[start]).collect();
            prop_assert_eq!(single, expected);
        }
    }
}
