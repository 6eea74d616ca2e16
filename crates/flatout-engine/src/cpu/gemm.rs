//! Matrix products: the general one that all workers share, and one over a prepacked right side that each worker calls by
//! itself (the recurrences). Nothing here allocates after [`GemmSpace::new`].

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub mod kernel;
mod pack;

use super::aligned::Aligned;
use super::guarded::Guarded;
use super::pool::{Parts, Pool, share};
use super::real::Real;
use crate::EngineError;
pub use kernel::PANEL_STRIDE;
use kernel::{DEPTH, MicroKernel, Tile};
pub use pack::{Matrix, Operand};

/// Rows of the left side packed at once: with `DEPTH` about 200 KB, a part of the second-level cache.
const ROWS: usize = 192;
/// Columns of the right side packed at once by all workers together.
const COLUMNS: usize = 4096;

/// The f32 kernel for this machine.
pub fn best_for_f32() -> MicroKernel<f32> {
    #[cfg(target_arch = "x86_64")]
    {
        if std::is_x86_feature_detected!("avx512f") {
            return avx512::KERNEL;
        }
        if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
            return avx2::KERNEL;
        }
    }
    MicroKernel::portable()
}

/// Called with each finished stretch of a row of C: row, first column, values.
pub type Epilogue<'a, T> = &'a (dyn Fn(usize, usize, &mut [T]) + Sync);

/// C = A·B, or C += A·B.
pub struct Product<'a, T> {
    pub a: &'a dyn Operand<T>,
    pub b: &'a dyn Operand<T>,
    pub c: Parts<'a, T>,
    /// Distance between rows of C.
    pub stride: usize,
    pub accumulate: bool,
    pub epilogue: Option<Epilogue<'a, T>>,
}

/// The packing buffers and the kernel.
pub struct GemmSpace<T: Real> {
    kernel: MicroKernel<T>,
    right: Guarded<Aligned<T>>,
    left: Guarded<Aligned<T>>,
}

impl<T: Real> GemmSpace<T> {
    pub fn new(workers: usize) -> Result<Self, EngineError> {
        Ok(Self {
            kernel: T::micro_kernel(),
            right: Guarded::new(Aligned::zeroed(DEPTH * COLUMNS)?),
            left: Guarded::new(Aligned::zeroed(workers * left_size())?),
        })
    }

    pub fn kernel(&self) -> MicroKernel<T> {
        self.kernel
    }

    /// The general product, all workers together.
    pub fn multiply(&self, pool: &Pool, product: &Product<T>) {
        let (rows, columns, depth) = (product.a.rows(), product.b.columns(), product.a.columns());
        assert_eq!(depth, product.b.rows());
        if rows == 0 || columns == 0 {
            return;
        }
        assert!((rows - 1) * product.stride + columns <= product.c.len());
        let (mut right, mut left) = (self.right.borrow_mut(), self.left.borrow_mut());
        let (right, left) = (Parts::new(&mut right), Parts::new(&mut left));
        pool.run(&|worker| {
            // SAFETY: each worker has its own part of the left buffer.
            let left = unsafe { left.part(worker * left_size()..(worker + 1) * left_size()) };
            self.multiply_as(pool, worker, product, left, right);
        });
    }

    fn multiply_as(&self, pool: &Pool, worker: usize, product: &Product<T>, left: &mut [T], right: Parts<T>) {
        let (rows, columns, depth) = (product.a.rows(), product.b.columns(), product.a.columns());
        let width = self.kernel.columns;
        for first in (0..columns).step_by(COLUMNS) {
            let count = COLUMNS.min(columns - first);
            let panels = count.div_ceil(width);
            let (down, over) = grid(pool.workers(), rows.div_ceil(self.kernel.rows), panels);
            let my_rows = share(worker / over, down, rows, self.kernel.rows);
            let my_panels = share(worker % over, over, panels, 1);
            // As many blocks of depth as fit are packed together: while a few rows of C pass through them all, they stay in
            // the cache, and workers wait for each other less often.
            let group = (COLUMNS / (panels * width)).max(1) * DEPTH;
            for base in (0..depth.max(1)).step_by(group) {
                let end = depth.min(base + group);
                let blocks = (end - base).div_ceil(DEPTH);
                for unit in pool.share(worker, blocks * panels, 1) {
                    let (panel, start) = (unit % panels, base + unit / panels * DEPTH);
                    let (column, size) = (first + panel * width, DEPTH.min(end - start));
                    let count = width.min(columns - column);
                    let place = (start - base) * panels * width + panel * width * size;
                    // SAFETY: each panel of each block is packed by one worker.
                    let target = unsafe { right.part(place..place + width * size) };
                    product.b.pack_columns(column, count, start, size, width, target);
                }
                pool.barrier();
                for row in my_rows.clone().step_by(ROWS) {
                    let rows = row..my_rows.end.min(row + ROWS);
                    for start in (base..end.max(base + 1)).step_by(DEPTH) {
                        let block = Block {
                            // SAFETY: where the block was packed above.
                            right: unsafe { right.pointer().add((start - base) * panels * width) },
                            start,
                            size: DEPTH.min(end - start),
                            first,
                            accumulate: product.accumulate || start > 0,
                            last: start + DEPTH >= depth,
                        };
                        self.block(product, &block, rows.clone(), my_panels.clone(), left);
                    }
                }
                pool.barrier();
            }
        }
    }

    /// One packed block of the right side against this worker's rows.
    fn block(
        &self,
        product: &Product<T>,
        block: &Block<T>,
        rows: std::ops::Range<usize>,
        panels: std::ops::Range<usize>,
        left: &mut [T],
    ) {
        let (height, width) = (self.kernel.rows, self.kernel.columns);
        let end = product.b.columns();
        let (base, count) = (rows.start, rows.len());
        self.pack_left(product.a, base, count, block.start, block.size, left);
        for panel in panels.clone() {
            let column = block.first + panel * width;
            for offset in (0..count).step_by(height) {
                let tile = Tile {
                    depth: block.size,
                    a: left[offset * PANEL_STRIDE..].as_ptr(),
                    row_major: product.a.row_major(),
                    // SAFETY: panel `panel` was packed at this place.
                    b: unsafe { block.right.add(panel * width * block.size) },
                    // SAFETY: rows and columns are inside C, as `multiply` asserted.
                    c: unsafe { product.c.pointer().add((base + offset) * product.stride + column) },
                    stride: product.stride,
                    rows: height.min(count - offset),
                    columns: width.min(end - column),
                    accumulate: block.accumulate,
                };
                // SAFETY: the kernel was chosen for this machine; workers own disjoint tiles of C.
                unsafe { (self.kernel.tile)(&tile) };
            }
        }
        if let (true, Some(epilogue)) = (block.last && !panels.is_empty(), product.epilogue) {
            let columns = block.first + panels.start * width..end.min(block.first + panels.end * width);
            for row in base..base + count {
                let place = row * product.stride;
                // SAFETY: this worker's own tiles, finished above.
                let values = unsafe { product.c.part(place + columns.start..place + columns.end) };
                epilogue(row, columns.start, values);
            }
        }
    }

    fn pack_left(
        &self,
        a: &dyn Operand<T>,
        base: usize,
        count: usize,
        start: usize,
        size: usize,
        left: &mut [T],
    ) {
        let height = self.kernel.rows;
        for offset in (0..count).step_by(height) {
            let rows = height.min(count - offset);
            a.pack_rows(
                base + offset,
                rows,
                start,
                size,
                height,
                &mut left[offset * PANEL_STRIDE..],
            );
        }
    }

    /// How many values [`GemmSpace::pack_right`] writes for a right side of this size.
    pub fn packed_size(&self, rows: usize, columns: usize) -> usize {
        rows * columns.div_ceil(self.kernel.columns) * self.kernel.columns
    }

    /// Packs a whole right side once, for many products by [`GemmSpace::multiply_packed`].
    pub fn pack_right(&self, pool: &Pool, b: &Matrix<T>, packed: &mut [T]) {
        let width = self.kernel.columns;
        let panels = b.columns.div_ceil(width);
        assert!(self.packed_size(b.rows, b.columns) <= packed.len());
        let packed = Parts::new(packed);
        pool.run(&|worker| {
            for panel in pool.share(worker, panels, 1) {
                let columns = width.min(b.columns - panel * width);
                // SAFETY: each panel belongs to one worker.
                let target = unsafe { packed.part(panel * width * b.rows..(panel + 1) * width * b.rows) };
                b.pack_columns(panel * width, columns, 0, b.rows, width, target);
            }
        });
    }

    /// The scratch one worker needs for [`GemmSpace::multiply_packed`] with so many rows.
    pub fn left_scratch(&self, rows: usize) -> usize {
        rows.div_ceil(self.kernel.rows) * self.kernel.rows * PANEL_STRIDE
    }

    /// C = A·B or C += A·B on the calling thread, B packed by [`GemmSpace::pack_right`] (`a.columns` × `columns`).
    pub fn multiply_packed(
        &self,
        a: Matrix<T>,
        packed: &[T],
        c: &mut [T],
        (columns, stride): (usize, usize),
        accumulate: bool,
        scratch: &mut [T],
    ) {
        let (width, depth) = (self.kernel.columns, a.columns);
        if a.rows == 0 || columns == 0 {
            return;
        }
        assert!((a.rows - 1) * stride + columns <= c.len());
        assert!(self.packed_size(depth, columns) <= packed.len());
        // Tiles of even height: 32 rows are 11, 11 and 10, not 12, 12 and 8.
        let height = a.rows.div_ceil(a.rows.div_ceil(self.kernel.rows));
        let height = if a.row_major() { height } else { self.kernel.rows };
        for begin in (0..depth).step_by(DEPTH) {
            let size = DEPTH.min(depth - begin);
            self.pack_left(&a, 0, a.rows, begin, size, scratch);
            for start in (0..columns).step_by(width) {
                let b = packed[start * depth + begin * width..].as_ptr();
                for offset in (0..a.rows).step_by(height) {
                    let tile = Tile {
                        depth: size,
                        a: scratch[offset * PANEL_STRIDE..].as_ptr(),
                        row_major: a.row_major(),
                        b,
                        c: c[offset * stride + start..].as_mut_ptr(),
                        stride,
                        rows: height.min(a.rows - offset),
                        columns: width.min(columns - start),
                        accumulate: accumulate || begin > 0,
                    };
                    // SAFETY: the kernel was chosen for this machine; sizes are asserted above.
                    unsafe { (self.kernel.tile)(&tile) };
                }
            }
        }
    }
}

/// The packed block of the right side at hand.
struct Block<T> {
    right: *const T,
    /// Its place in the depth, and its depth.
    start: usize,
    size: usize,
    /// Its first column.
    first: usize,
    accumulate: bool,
    last: bool,
}

fn left_size() -> usize {
    // Room for the last panel's padding, whatever the kernel's height.
    (ROWS + 32) * PANEL_STRIDE
}

/// Workers as a grid over the tiles of C, (down, over), such that the busiest has least to do.
fn grid(workers: usize, tiles_down: usize, tiles_over: usize) -> (usize, usize) {
    let pairs = (1..=workers).filter(|over| workers.is_multiple_of(*over));
    let busiest = |&over: &usize| tiles_down.div_ceil(workers / over) * tiles_over.div_ceil(over);
    let over = pairs.min_by_key(busiest).unwrap_or(1);
    (workers / over, over)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values(count: usize, salt: usize) -> Vec<f32> {
        (0..count)
            .map(|index| ((index * 37 + salt * 11) % 101) as f32 / 101.0 - 0.5)
            .collect()
    }

    /// In the order and with the rounding of the kernels.
    fn exact(a: &[f32], b: &[f32], (m, n, k): (usize, usize, usize), start: f32) -> Vec<f64> {
        let dot = |i: usize, j: usize| {
            (0..k)
                .map(|p| f64::from(a[i * k + p]) * f64::from(b[p * n + j]))
                .sum::<f64>()
        };
        (0..m * n)
            .map(|index| dot(index / n, index % n) + f64::from(start))
            .collect()
    }

    fn kernels() -> Vec<MicroKernel<f32>> {
        let mut kernels = vec![MicroKernel::portable()];
        #[cfg(target_arch = "x86_64")]
        {
            if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
                kernels.push(avx2::KERNEL);
            }
            if std::is_x86_feature_detected!("avx512f") {
                kernels.push(avx512::KERNEL);
            }
        }
        kernels
    }

    fn product(
        kernel: MicroKernel<f32>,
        workers: usize,
        (m, n, k): (usize, usize, usize),
        flip: bool,
    ) -> Vec<f32> {
        let (a, b) = (values(m * k, 1), values(k * n, 2));
        let transpose = |data: &[f32], rows: usize, columns: usize| -> Vec<f32> {
            (0..rows * columns)
                .map(|i| data[i % rows * columns + i / rows])
                .collect()
        };
        let (flipped_a, flipped_b) = (transpose(&a, m, k), transpose(&b, k, n));
        let mut c = vec![1.0f32; m * n];
        let pool = Pool::new(workers);
        let space = GemmSpace {
            kernel,
            ..GemmSpace::new(workers).unwrap()
        };
        let finish = |_: usize, _: usize, row: &mut [f32]| row.iter_mut().for_each(|value| *value += 1.0);
        let sides = (
            Matrix::new(&a, m, k),
            Matrix::new(&b, k, n),
            Matrix::new(&flipped_a, k, m).transposed(),
            Matrix::new(&flipped_b, n, k).transposed(),
        );
        let product = Product {
            a: if flip { &sides.2 } else { &sides.0 },
            b: if flip { &sides.3 } else { &sides.1 },
            c: Parts::new(&mut c),
            stride: n,
            accumulate: true,
            epilogue: Some(&finish),
        };
        space.multiply(&pool, &product);
        let mut packed = vec![0.0; space.packed_size(k, n)];
        let mut scratch = vec![0.0; space.left_scratch(m)];
        let mut second = vec![0.0; m * n];
        space.pack_right(&pool, &Matrix::new(&b, k, n), &mut packed);
        space.multiply_packed(
            Matrix::new(&a, m, k),
            &packed,
            &mut second,
            (n, n),
            false,
            &mut scratch,
        );
        for (one, two) in c.iter().zip(&second) {
            assert!((one - two - 2.0).abs() < 1e-4);
        }
        c
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn any_size_any_kernel_any_number_of_workers(m in 1usize..80, n in 1usize..90, k in 1usize..600, flip: bool) {
            let (a, b) = (values(m * k, 1), values(k * n, 2));
            let exact = exact(&a, &b, (m, n, k), 2.0);
            let mut fused: Option<Vec<f32>> = None;
            for (number, kernel) in kernels().into_iter().enumerate() {
                let one = product(kernel, 1, (m, n, k), flip);
                for (found, exact) in one.iter().zip(&exact) {
                    prop_assert!((f64::from(*found) - exact).abs() < 1e-4);
                }
                prop_assert_eq!(&one, &product(kernel, 3, (m, n, k), !flip));
                if number > 0 {
                    prop_assert_eq!(fused.get_or_insert_with(|| one.clone()), &one);
                }
            }
        }
    }
}
