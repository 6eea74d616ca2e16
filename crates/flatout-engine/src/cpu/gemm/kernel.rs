//! The innermost tile of a matrix product, over packed operands. Each element of C is one sum over k in order, whatever
//! the tile size, so every kernel with fused multiply-add gives the same bits.

use crate::cpu::real::Real;

/// Depth of a packed block: a panel of the right side (32 columns) then fills the first-level cache.
pub const DEPTH: usize = 256;

/// Distance between the rows of a row-major panel. Not a power of two: rows a power of two apart would fall onto the same few
/// lines of the cache.
pub const PANEL_STRIDE: usize = DEPTH + 16;

/// What a tile kernel is given. `a` is a packed panel: rows `PANEL_STRIDE` apart, or `MicroKernel::rows` values for each k;
/// `b` has `MicroKernel::columns` values for each k, padded with zeros.
pub struct Tile<T> {
    pub depth: usize,
    pub a: *const T,
    pub row_major: bool,
    pub b: *const T,
    pub c: *mut T,
    /// Distance between rows of C.
    pub stride: usize,
    /// Rows and columns of C that exist, at most the kernel's.
    pub rows: usize,
    pub columns: usize,
    /// Add to C instead of overwriting it.
    pub accumulate: bool,
}

pub struct MicroKernel<T> {
    pub rows: usize,
    pub columns: usize,
    /// # Safety
    /// The machine must have the kernel's vector instructions; the tile's pointers must be valid for its sizes.
    pub tile: unsafe fn(&Tile<T>),
}

impl<T> Clone for MicroKernel<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for MicroKernel<T> {}

const ROWS: usize = 4;
const COLUMNS: usize = 8;

impl<T: Real> MicroKernel<T> {
    /// For any machine.
    pub fn portable() -> Self {
        Self {
            rows: ROWS,
            columns: COLUMNS,
            tile: portable_tile,
        }
    }
}

/// # Safety
/// The tile's pointers must be valid for its sizes.
unsafe fn portable_tile<T: Real>(tile: &Tile<T>) {
    let mut sums = [[T::ZERO; COLUMNS]; ROWS];
    for k in 0..tile.depth {
        // SAFETY: packed panels hold ROWS and COLUMNS values for each of `depth` steps.
        let b = unsafe { std::slice::from_raw_parts(tile.b.add(k * COLUMNS), COLUMNS) };
        for (index, row) in sums.iter_mut().enumerate().take(tile.rows) {
            let place = if tile.row_major {
                index * PANEL_STRIDE + k
            } else {
                k * ROWS + index
            };
            // SAFETY: as above, for the rows that exist.
            let left = unsafe { *tile.a.add(place) };
            for (sum, &right) in row.iter_mut().zip(b) {
                *sum += left * right;
            }
        }
    }
    for (index, row) in sums.iter().enumerate().take(tile.rows) {
        // SAFETY: `rows` × `columns` of C are valid.
        let target = unsafe { std::slice::from_raw_parts_mut(tile.c.add(index * tile.stride), tile.columns) };
        for (value, &sum) in target.iter_mut().zip(row) {
            *value = if tile.accumulate { *value + sum } else { sum };
        }
    }
}
