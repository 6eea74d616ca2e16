//! A convolution's input as a matrix that is never stored: each row is the patch under one window, copied straight into the
//! panels of the product. A panel asks for the same stretch of many pixels, so stretches are the outer loop: what is the same for
//! all pixels is worked out once.

use super::Conv2d;
use crate::cpu::gemm::{Operand, PANEL_STRIDE};
use crate::cpu::real::Real;

/// Walks over pixels without a division for each.
#[derive(Clone, Copy)]
struct Walk {
    x: usize,
    y: usize,
    image: usize,
    over: usize,
    down: usize,
}

impl Walk {
    fn from(pixel: usize, over: usize, down: usize) -> Self {
        Self {
            x: pixel % over,
            y: pixel / over % down,
            image: pixel / over / down,
            over,
            down,
        }
    }

    fn step(&mut self) {
        self.x += 1;
        if self.x == self.over {
            self.x = 0;
            self.y += 1;
            if self.y == self.down {
                self.y = 0;
                self.image += 1;
            }
        }
    }
}

/// A few values are not worth a call.
#[inline(always)]
fn copy<T: Real>(target: &mut [T], source: &[T]) {
    if target.len() < 8 {
        for (target, &value) in target.iter_mut().zip(source) {
            *target = value;
        }
    } else {
        target.copy_from_slice(&source[..target.len()]);
    }
}

/// Lines of a panel: which pixels, which values of each, and how far the lines are apart.
struct Lines {
    first: usize,
    count: usize,
    start: usize,
    length: usize,
    apart: usize,
}

impl Lines {
    /// A line a pixel, for the side whose rows are packed.
    fn of_rows(first: usize, rows: usize, start: usize, depth: usize) -> Self {
        Self {
            first,
            count: rows,
            start,
            length: depth,
            apart: PANEL_STRIDE,
        }
    }

    /// A line a pixel of the depth, for the side whose columns are packed.
    fn of_columns(first: usize, columns: usize, start: usize, depth: usize, width: usize) -> Self {
        Self {
            first: start,
            count: depth,
            start: first,
            length: columns,
            apart: width,
        }
    }
}

/// `[pixels, size · size · channels]` out of the input images.
pub struct Patches<'a, T> {
    pub images: &'a [T],
    pub op: &'a Conv2d,
}

impl<T: Real> Patches<'_, T> {
    fn pack(&self, lines: &Lines, panel: &mut [T]) {
        let op = self.op;
        let line = op.window.size * op.channels;
        let begin = Walk::from(lines.first, op.output_width(), op.output_height());
        let mut done = 0;
        while done < lines.length {
            // Under one row of the window a patch lies contiguous.
            let (row, offset) = ((lines.start + done) / line, (lines.start + done) % line);
            let count = (line - offset).min(lines.length - done);
            let mut at = begin;
            for target in panel.chunks_mut(lines.apart).take(lines.count) {
                self.stretch(&at, row, offset, &mut target[done..done + count]);
                at.step();
            }
            done += count;
        }
    }

    /// Values from `offset` on of row `row` of the window over one pixel.
    #[inline(always)]
    fn stretch(&self, at: &Walk, row: usize, offset: usize, target: &mut [T]) {
        let op = self.op;
        let (size, channels) = (op.window.size, op.channels);
        let source = (at.y * op.window.stride + row).wrapping_sub(op.window.padding);
        if source >= op.height {
            return target.fill(T::ZERO);
        }
        let left = (at.x * op.window.stride) as isize - op.window.padding as isize;
        let base = ((at.image * op.height + source) * op.width) as isize + left;
        let base = base * channels as isize;
        if left >= 0 && left as usize + size <= op.width {
            return copy(target, &self.images[base as usize + offset..][..target.len()]);
        }
        let begin = (-left).max(0) as usize * channels;
        let end = (op.width as isize - left).clamp(0, size as isize) as usize * channels;
        let last = offset + target.len();
        let from = begin.clamp(offset, last);
        let to = end.clamp(from, last);
        target[..from - offset].fill(T::ZERO);
        target[to - offset..].fill(T::ZERO);
        if from < to {
            let start = (base + from as isize) as usize;
            copy(
                &mut target[from - offset..to - offset],
                &self.images[start..start + to - from],
            );
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

    fn pack_rows(
        &self,
        first: usize,
        rows: usize,
        start: usize,
        depth: usize,
        _width: usize,
        panel: &mut [T],
    ) {
        self.pack(&Lines::of_rows(first, rows, start, depth), panel);
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
        self.pack(&Lines::of_columns(first, columns, start, depth, width), panel);
        pad(panel, depth, columns, width);
    }
}

/// `[input pixels, size · size · filters]` out of the outputs' gradients: for each place under the window the gradient of
/// the output that saw this pixel there, or zero.
pub struct Reached<'a, T> {
    pub gradients: &'a [T],
    pub op: &'a Conv2d,
}

impl<T: Real> Reached<'_, T> {
    fn pack(&self, lines: &Lines, panel: &mut [T]) {
        let op = self.op;
        let begin = Walk::from(lines.first, op.width, op.height);
        let mut done = 0;
        while done < lines.length {
            let (place, offset) = (
                (lines.start + done) / op.filters,
                (lines.start + done) % op.filters,
            );
            let count = (op.filters - offset).min(lines.length - done);
            let (down, over) = (place / op.window.size, place % op.window.size);
            let mut at = begin;
            for target in panel.chunks_mut(lines.apart).take(lines.count) {
                let target = &mut target[done..done + count];
                let row = output_of(at.y, down, op, op.output_height());
                let column = output_of(at.x, over, op, op.output_width());
                match (row, column) {
                    (Some(row), Some(column)) => {
                        let output = (at.image * op.output_height() + row) * op.output_width() + column;
                        copy(target, &self.gradients[output * op.filters + offset..][..count]);
                    }
                    _ => target.fill(T::ZERO),
                }
                at.step();
            }
            done += count;
        }
    }
}

/// Which output saw position `at` at place `place` of its window.
#[inline(always)]
fn output_of(at: usize, place: usize, op: &Conv2d, count: usize) -> Option<usize> {
    let moved = (at + op.window.padding).checked_sub(place)?;
    if op.window.stride == 1 {
        return (moved < count).then_some(moved);
    }
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

    fn pack_rows(
        &self,
        first: usize,
        rows: usize,
        start: usize,
        depth: usize,
        _width: usize,
        panel: &mut [T],
    ) {
        self.pack(&Lines::of_rows(first, rows, start, depth), panel);
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
        self.pack(&Lines::of_columns(first, columns, start, depth, width), panel);
        pad(panel, depth, columns, width);
    }
}

/// Zeros behind the columns that exist.
fn pad<T: Real>(panel: &mut [T], depth: usize, columns: usize, width: usize) {
    if columns < width {
        for line in panel.chunks_exact_mut(width).take(depth) {
            line[columns..].fill(T::ZERO);
        }
    }
}
