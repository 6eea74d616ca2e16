//! A convolution's input as a matrix that is never stored: each row is the patch under one window, copied straight into the
//! panels of the product.

use super::Conv2d;
use crate::cpu::gemm::{Operand, PANEL_STRIDE};
use crate::cpu::real::Real;

/// `[pixels, size · size · channels]` out of the input images.
pub struct Patches<'a, T> {
    pub images: &'a [T],
    pub op: &'a Conv2d,
}

impl<T: Real> Patches<'_, T> {
    /// Values `first..first + target.len()` of a pixel's patch. Under one row of the window they lie contiguous.
    fn copy(&self, pixel: usize, first: usize, target: &mut [T]) {
        let op = self.op;
        let (over, down) = (op.output_width(), op.output_height());
        let (x, y, image) = (pixel % over, pixel / over % down, pixel / over / down);
        let line = op.window.size * op.channels;
        let left = (x * op.window.stride) as isize - op.window.padding as isize;
        // Values of a line that lie inside the image.
        let begin = (-left).max(0) as usize * op.channels;
        let end = (op.width as isize - left).clamp(0, op.window.size as isize) as usize * op.channels;
        let mut done = 0;
        while done < target.len() {
            let (row, offset) = ((first + done) / line, (first + done) % line);
            let count = (line - offset).min(target.len() - done);
            let part = &mut target[done..done + count];
            done += count;
            let source = (y * op.window.stride + row) as isize - op.window.padding as isize;
            if source < 0 || source >= op.height as isize {
                part.fill(T::ZERO);
                continue;
            }
            let (from, to) = (offset.max(begin).min(offset + count), (offset + count).min(end).max(offset));
            let to = to.max(from);
            part[..from - offset].fill(T::ZERO);
            part[to - offset..].fill(T::ZERO);
            if from < to {
                let base = (image * op.height + source as usize) * op.width * op.channels;
                let start = base as isize + left * op.channels as isize + from as isize;
                let start = start as usize;
                part[from - offset..to - offset].copy_from_slice(&self.images[start..start + to - from]);
            }
        }
    }
}

impl<T: Real> Operand<T> for Patches<'_, T> {
    fn rows(&self) -> usize {
        self.op.pixels()
    }

    fn columns(&self) -> usize {
        self.op.patch()
    }

    fn row_major(&self) -> bool {
        true
    }

    fn pack_rows(&self, first: usize, rows: usize, start: usize, depth: usize, _width: usize, panel: &mut [T]) {
        for (row, line) in panel.chunks_mut(PANEL_STRIDE).enumerate().take(rows) {
            self.copy(first + row, start, &mut line[..depth]);
        }
    }

    fn pack_columns(&self, first: usize, columns: usize, start: usize, depth: usize, width: usize, panel: &mut [T]) {
        for (row, line) in panel.chunks_exact_mut(width).enumerate().take(depth) {
            self.copy(start + row, first, &mut line[..columns]);
            line[columns..].fill(T::ZERO);
        }
    }
}

/// `[input pixels, size · size · filters]` out of the outputs' gradients: for each place under the window the gradient of
/// the output that saw this pixel there, or zero.
pub struct Reached<'a, T> {
    pub gradients: &'a [T],
    pub op: &'a Conv2d,
}

impl<T: Real> Reached<'_, T> {
    fn copy(&self, pixel: usize, first: usize, target: &mut [T]) {
        let op = self.op;
        let (x, y, image) = (pixel % op.width, pixel / op.width % op.height, pixel / op.width / op.height);
        let mut done = 0;
        while done < target.len() {
            let (place, offset) = ((first + done) / op.filters, (first + done) % op.filters);
            let count = (op.filters - offset).min(target.len() - done);
            let part = &mut target[done..done + count];
            done += count;
            let row = output_of(y, place / op.window.size, op, op.output_height());
            let column = output_of(x, place % op.window.size, op, op.output_width());
            match (row, column) {
                (Some(row), Some(column)) => {
                    let output = (image * op.output_height() + row) * op.output_width() + column;
                    part.copy_from_slice(&self.gradients[output * op.filters + offset..][..count]);
                }
                _ => part.fill(T::ZERO),
            }
        }
    }
}

/// Which output saw position `at` at place `place` of its window.
fn output_of(at: usize, place: usize, op: &Conv2d, count: usize) -> Option<usize> {
    let moved = (at + op.window.padding).checked_sub(place)?;
    let output = moved / op.window.stride;
    (moved % op.window.stride == 0 && output < count).then_some(output)
}

impl<T: Real> Operand<T> for Reached<'_, T> {
    fn rows(&self) -> usize {
        self.op.batch * self.op.height * self.op.width
    }

    fn columns(&self) -> usize {
        self.op.window.size * self.op.window.size * self.op.filters
    }

    fn row_major(&self) -> bool {
        true
    }

    fn pack_rows(&self, first: usize, rows: usize, start: usize, depth: usize, _width: usize, panel: &mut [T]) {
        for (row, line) in panel.chunks_mut(PANEL_STRIDE).enumerate().take(rows) {
            self.copy(first + row, start, &mut line[..depth]);
        }
    }

    fn pack_columns(&self, first: usize, columns: usize, start: usize, depth: usize, width: usize, panel: &mut [T]) {
        for (row, line) in panel.chunks_exact_mut(width).enumerate().take(depth) {
            self.copy(start + row, first, &mut line[..columns]);
            line[columns..].fill(T::ZERO);
        }
    }
}
