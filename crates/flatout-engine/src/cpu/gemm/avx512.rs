//! The f32 tile with AVX-512: 12 rows by 32 columns, 24 of 32 registers hold sums.

use super::kernel::{MicroKernel, Tile};
use std::arch::x86_64::{
    _mm512_add_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps,
    _mm512_set1_ps, _mm512_setzero_ps,
};

const ROWS: usize = 12;
const LANES: usize = 16;

pub const KERNEL: MicroKernel<f32> = MicroKernel {
    rows: ROWS,
    columns: 2 * LANES,
    tile,
};

/// # Safety
/// Needs AVX-512F; the tile's pointers must be valid for its sizes.
unsafe fn tile(tile: &Tile<f32>) {
    // SAFETY: the caller's promise, passed on.
    unsafe {
        match tile.rows {
            1 => rows::<1>(tile),
            2 => rows::<2>(tile),
            3 => rows::<3>(tile),
            4 => rows::<4>(tile),
            5 => rows::<5>(tile),
            6 => rows::<6>(tile),
            7 => rows::<7>(tile),
            8 => rows::<8>(tile),
            9 => rows::<9>(tile),
            10 => rows::<10>(tile),
            11 => rows::<11>(tile),
            _ => rows::<12>(tile),
        }
    }
}

/// # Safety
/// As [`tile`], with `R` rows.
#[target_feature(enable = "avx512f")]
unsafe fn rows<const R: usize>(tile: &Tile<f32>) {
    let mut sums = [[_mm512_setzero_ps(); 2]; R];
    let (mut a, mut b) = (tile.a, tile.b);
    for _ in 0..tile.depth {
        // SAFETY: packed panels hold ROWS and 2 · LANES values for each of `depth` steps.
        unsafe {
            let left = _mm512_loadu_ps(b);
            let right = _mm512_loadu_ps(b.add(LANES));
            for (row, sum) in sums.iter_mut().enumerate() {
                let value = _mm512_set1_ps(*a.add(row));
                sum[0] = _mm512_fmadd_ps(value, left, sum[0]);
                sum[1] = _mm512_fmadd_ps(value, right, sum[1]);
            }
            a = a.add(ROWS);
            b = b.add(2 * LANES);
        }
    }
    let mask = (1u64 << tile.columns) - 1;
    let masks = [mask as u16, (mask >> LANES) as u16];
    for (row, sum) in sums.iter().enumerate() {
        for (half, &mask) in masks.iter().enumerate() {
            // SAFETY: the mask keeps loads and stores inside the `columns` that exist.
            unsafe {
                let target = tile.c.add(row * tile.stride + half * LANES);
                let value = if tile.accumulate {
                    _mm512_add_ps(_mm512_maskz_loadu_ps(mask, target), sum[half])
                } else {
                    sum[half]
                };
                _mm512_mask_storeu_ps(target, mask, value);
            }
        }
    }
}
