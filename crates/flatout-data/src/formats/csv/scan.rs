//! The structural index of a block: where fields and records end. 64 bytes at a time with SSE2, which every x86-64 has;
//! elsewhere byte by byte.

/// Appends the position of every delimiter and line feed outside quotes.
pub fn index(block: &[u8], delimiter: u8, quoted: bool, into: &mut Vec<u32>) {
    into.clear();
    let mut inside = false;
    let mut chunks = block.chunks_exact(64);
    let mut base = 0u32;
    for chunk in &mut chunks {
        let [delimiters, feeds, quotes] = masks(chunk, delimiter);
        let mut ends = delimiters | feeds;
        if quoted {
            let covered = prefix_xor(quotes) ^ if inside { u64::MAX } else { 0 };
            inside = covered >> 63 == 1;
            ends &= !covered;
        }
        push_bits(ends, base, into);
        base += 64;
    }
    for (position, &byte) in (base..).zip(chunks.remainder()) {
        if byte == b'"' && quoted {
            inside = !inside;
        } else if !inside && (byte == delimiter || byte == b'\n') {
            into.push(position);
        }
    }
}

#[inline(always)]
fn push_bits(mut bits: u64, base: u32, into: &mut Vec<u32>) {
    let count = bits.count_ones() as usize;
    into.reserve(64);
    let length = into.len();
    let target = into.spare_capacity_mut();
    for slot in target.iter_mut().take(count) {
        slot.write(base + bits.trailing_zeros());
        bits &= bits - 1;
    }
    // SAFETY: exactly `count` slots behind the old length were written.
    unsafe { into.set_len(length + count) };
}

/// Bit i is the parity of bits 0..=i: 1 from an opening quote to before its closing one.
#[inline]
fn prefix_xor(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn masks(chunk: &[u8], delimiter: u8) -> [u64; 3] {
    use std::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8};
    let mut masks = [0u64; 3];
    // SAFETY: SSE2 is part of x86-64; the four loads stay within the 64 bytes of the chunk, which the slice checks.
    unsafe {
        let wanted = [delimiter, b'\n', b'"'].map(|byte| _mm_set1_epi8(byte as i8));
        for (part, bytes) in chunk[..64].chunks_exact(16).enumerate() {
            let bytes = _mm_loadu_si128(bytes.as_ptr().cast::<__m128i>());
            for (mask, &byte) in masks.iter_mut().zip(&wanted) {
                let equal = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, byte)) as u32;
                *mask |= u64::from(equal) << (16 * part);
            }
        }
    }
    masks
}

#[cfg(not(target_arch = "x86_64"))]
fn masks(chunk: &[u8], delimiter: u8) -> [u64; 3] {
    let mut masks = [0u64; 3];
    for (bit, &byte) in chunk.iter().enumerate() {
        for (mask, wanted) in masks.iter_mut().zip([delimiter, b'\n', b'"']) {
            *mask |= u64::from(byte == wanted) << bit;
        }
    }
    masks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(block: &[u8], quoted: bool) -> Vec<u32> {
        let mut inside = false;
        let mut ends = Vec::new();
        for (position, &byte) in (0..).zip(block) {
            if byte == b'"' && quoted {
                inside = !inside;
            } else if !inside && (byte == b',' || byte == b'\n') {
                ends.push(position);
            }
        }
        ends
    }

    proptest! {
        #[test]
        fn the_same_as_byte_by_byte(text in "[a,\n\"]{0,300}", quoted: bool) {
            let mut ends = Vec::new();
            index(text.as_bytes(), b',', quoted, &mut ends);
            prop_assert_eq!(ends, plain(text.as_bytes(), quoted));
        }
    }
}
