//! The f32 tile with AVX2 and FMA: 6 rows by 16 columns, 12 of 16 registers hold sums.

use super::kernel::{MicroKernel, PANEL_STRIDE, Tile};
use std::arch::x86_64::{
    _mm256_add_ps, _mm256_broadcast_ss, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_setzero_ps, _mm256_storeu_ps,
};

const ROWS: usize = 6;
const LANES: usize = 8;

pub const KERNEL: MicroKernel<f32> = MicroKernel {
    rows: ROWS,
    columns: 2 * LANES,
    tile,
};

/// # Safety
/// Needs AVX2 and FMA; the tile's pointers must be valid for its sizes.
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
            _ => rows::<6, ROW_MAJOR>(tile),
        }
    }
}

/// # Safety
/// As [`tile`], with `R` rows.
#[target_feature(enable = "avx2,fma")]
unsafe fn rows<const R: usize, const ROW_MAJOR: bool>(tile: &Tile<f32>) {
    let mut sums = [[_mm256_setzero_ps(); 2]; R];
    let (mut a, mut b) = (tile.a, tile.b);
    for _ in 0..tile.depth {
        // SAFETY: packed panels hold ROWS and 2 · LANES values for each of `depth` steps.
        unsafe {
            let left = _mm256_loadu_ps(b);
            let right = _mm256_loadu_ps(b.add(LANES));
            for (row, sum) in sums.iter_mut().enumerate() {
                let value = _mm256_broadcast_ss(&*a.add(if ROW_MAJOR { row * PANEL_STRIDE } else { row }));
                sum[0] = _mm256_fmadd_ps(value, left, sum[0]);
                sum[1] = _mm256_fmadd_ps(value, right, sum[1]);
            }
            a = a.add(if ROW_MAJOR { 1 } else { ROWS });
            b = b.add(2 * LANES);
        }
    }
    let whole = tile.columns == 2 * LANES;
    for (row, sum) in sums.iter().enumerate() {
        // SAFETY: row `row` of C has `columns` values; the narrow case goes through a buffer of full width.
        unsafe {
            let target = tile.c.add(row * tile.stride);
            let mut buffer = [0f32; 2 * LANES];
            let from = if whole { target } else { buffer.as_mut_ptr() };
            if tile.accumulate && !whole {
                std::ptr::copy_nonoverlapping(target, from, tile.columns);
            }
            for (half, &sum) in sum.iter().enumerate() {
                let place = from.add(half * LANES);
                let value = if tile.accumulate {
                    _mm256_add_ps(_mm256_loadu_ps(place), sum)
                } else {
                    sum
                };
                _mm256_storeu_ps(place, value);
            }
            if !whole {
                std::ptr::copy_nonoverlapping(from, target, tile.columns);
            }
        }
    }
}
