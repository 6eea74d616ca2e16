//! Copies blocks of a matrix into the order in which the tile kernel reads them.

use super::kernel::PANEL_STRIDE;
use crate::cpu::real::Real;

/// One side of a product: something that can be copied into panels.
pub trait Operand<T>: Sync {
    fn rows(&self) -> usize;
    fn columns(&self) -> usize;

    /// How [`Operand::pack_rows`] lays out its panels.
    fn row_major(&self) -> bool;

    /// Packs rows `first..first + rows`, columns `start..start + depth` as a left panel: row-major with rows `PANEL_STRIDE`
    /// apart, or `width` values for each column.
    fn pack_rows(&self, first: usize, rows: usize, start: usize, depth: usize, width: usize, panel: &mut [T]);

    /// Packs columns `first..first + columns`, rows `start..start + depth` as a right panel: for each row the values of the
    /// columns, padded with zeros to `width`.
    fn pack_columns(
        &self,
        first: usize,
        columns: usize,
        start: usize,
        depth: usize,
        width: usize,
        panel: &mut [T],
    );
}

/// A matrix to read: any strides, so a transpose is free.
#[derive(Clone, Copy)]
pub struct Matrix<'a, T> {
    data: &'a [T],
    pub rows: usize,
    pub columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a, T: Real> Matrix<'a, T> {
    /// Row-major, rows `stride` apart.
    pub fn strided(data: &'a [T], rows: usize, columns: usize, stride: usize) -> Self {
        assert!(rows == 0 || columns == 0 || (rows - 1) * stride + columns <= data.len());
        Self {
            data,
            rows,
            columns,
            row_stride: stride,
            column_stride: 1,
        }
    }

    /// Row-major without gaps.
    pub fn new(data: &'a [T], rows: usize, columns: usize) -> Self {
        Self::strided(data, rows, columns, columns)
    }

    #[must_use]
    pub fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }
}

impl<T: Real> Operand<T> for Matrix<'_, T> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn row_major(&self) -> bool {
        self.column_stride == 1 && self.row_stride > 1
    }

    fn pack_rows(
        &self,
        first: usize,
        rows: usize,
        start: usize,
        depth: usize,
        width: usize,
        panel: &mut [T],
    ) {
        let offset = first * self.row_stride + start * self.column_stride;
        if self.row_major() {
            for (row, line) in panel.chunks_mut(PANEL_STRIDE).enumerate().take(rows) {
                line[..depth].copy_from_slice(&self.data[offset + row * self.row_stride..][..depth]);
            }
            return;
        }
        let strides = (self.row_stride, self.column_stride);
        pack(self.data, offset, strides, (rows, depth, width), panel);
    }

    fn pack_columns(
        &self,
        first: usize,
        columns: usize,
        start: usize,
        depth: usize,
        width: usize,
        panel: &mut [T],
    ) {
        let offset = start * self.row_stride + first * self.column_stride;
        let strides = (self.column_stride, self.row_stride);
        pack(self.data, offset, strides, (columns, depth, width), panel);
    }
}

/// `panel[k · width + i] = data[offset + i · strides.0 + k · strides.1]`.
fn pack<T: Real>(
    data: &[T],
    offset: usize,
    (across, along): (usize, usize),
    (count, depth, width): (usize, usize, usize),
    panel: &mut [T],
) {
    let panel = &mut panel[..depth * width];
    if across == 1 {
        // A copy of a length known to the compiler is a few moves instead of a call.
        match (count, width) {
            (12, 12) => return pack_whole::<T, 12>(&data[offset..], along, panel),
            (16, 16) => return pack_whole::<T, 16>(&data[offset..], along, panel),
            (32, 32) => return pack_whole::<T, 32>(&data[offset..], along, panel),
            _ => {}
        }
        for (k, target) in panel.chunks_exact_mut(width).enumerate() {
            let source = offset + k * along;
            target[..count].copy_from_slice(&data[source..source + count]);
            target[count..].fill(T::ZERO);
        }
        return;
    }
    if along == 1 {
        return pack_transposing(data, offset, across, (count, depth, width), panel);
    }
    for (k, target) in panel.chunks_exact_mut(width).enumerate() {
        for (i, value) in target.iter_mut().enumerate() {
            *value = if i < count {
                data[offset + i * across + k * along]
            } else {
                T::ZERO
            };
        }
    }
}

/// `panel[k · N + i] = data[i + k · along]`.
fn pack_whole<T: Real, const N: usize>(data: &[T], along: usize, panel: &mut [T]) {
    let (lines, _) = panel.as_chunks_mut::<N>();
    for (k, target) in lines.iter_mut().enumerate() {
        if let Some(source) = data[k * along..].first_chunk::<N>() {
            *target = *source;
        }
    }
}

/// Rows that lie contiguous become columns. Eight steps of k at a time keep the panel's cache lines hot.
fn pack_transposing<T: Real>(
    data: &[T],
    offset: usize,
    across: usize,
    (count, depth, width): (usize, usize, usize),
    panel: &mut [T],
) {
    const STEP: usize = 8;
    for start in (0..depth).step_by(STEP) {
        let steps = STEP.min(depth - start);
        let block = &mut panel[start * width..(start + steps) * width];
        for i in 0..width {
            if i < count {
                let source = &data[offset + i * across + start..][..steps];
                for (k, &value) in source.iter().enumerate() {
                    block[k * width + i] = value;
                }
            } else {
                (0..steps).for_each(|k| block[k * width + i] = T::ZERO);
            }
        }
    }
}
