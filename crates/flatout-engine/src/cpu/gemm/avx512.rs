//! The f32 tile with AVX-512: 12 rows by 32 columns, 24 of 32 registers hold sums.

use super::kernel::{MicroKernel, PANEL_STRIDE, Tile};
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
        if tile.row_major {
            of_height::<true>(tile);
        } else {
            of_height::<false>(tile);
        }
    }
}

/// # Safety
/// As [`tile`].
unsafe fn of_height<const ROW_MAJOR: bool>(tile: &Tile<f32>) {
    // SAFETY: the caller's promise, passed on.
    unsafe {
        match tile.rows {
            1 => rows::<1, ROW_MAJOR>(tile),
            2 => rows::<2, ROW_MAJOR>(tile),
            3 => rows::<3, ROW_MAJOR>(tile),
            4 => rows::<4, ROW_MAJOR>(tile),
            5 => rows::<5, ROW_MAJOR>(tile),
            6 => rows::<6, ROW_MAJOR>(tile),
            7 => rows::<7, ROW_MAJOR>(tile),
            8 => rows::<8, ROW_MAJOR>(tile),
            9 => rows::<9, ROW_MAJOR>(tile),
            10 => rows::<10, ROW_MAJOR>(tile),
            11 => rows::<11, ROW_MAJOR>(tile),
            _ => rows::<12, ROW_MAJOR>(tile),
        }
    }
}

/// # Safety
/// As [`tile`], with `R` rows.
#[target_feature(enable = "avx512f")]
unsafe fn rows<const R: usize, const ROW_MAJOR: bool>(tile: &Tile<f32>) {
    let mut sums = [[_mm512_setzero_ps(); 2]; R];
    let (mut a, mut b) = (tile.a, tile.b);
    for _ in 0..tile.depth {
        // SAFETY: packed panels hold ROWS and 2 · LANES values for each of `depth` steps.
        unsafe {
            let left = _mm512_loadu_ps(b);
            let right = _mm512_loadu_ps(b.add(LANES));
            for (row, sum) in sums.iter_mut().enumerate() {
                let value = _mm512_set1_ps(*a.add(if ROW_MAJOR { row * PANEL_STRIDE } else { row }));
                sum[0] = _mm512_fmadd_ps(value, left, sum[0]);
                sum[1] = _mm512_fmadd_ps(value, right, sum[1]);
            }
            a = a.add(if ROW_MAJOR { 1 } else { ROWS });
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
