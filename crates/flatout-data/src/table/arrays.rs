//! Row-major arrays that several threads fill at disjoint rows while they grow.

use super::{ColumnType, Layout};
use crate::text_list::TextList;

#[derive(Debug)]
pub enum Array {
    Real(Vec<f32>),
    /// Integers and times.
    Integer(Vec<i64>),
    /// Codes; the dictionaries lie in [`Arrays::dictionaries`].
    Code(Vec<i32>),
}

/// What a reader returns.
#[derive(Debug, Default)]
pub struct Arrays {
    pub rows: usize,
    pub arrays: Vec<Array>,
    /// One a column of the file, empty for columns that are not categories.
    pub dictionaries: Vec<TextList>,
}

impl Array {
    fn new(kind: ColumnType) -> Self {
        match kind {
            ColumnType::Real => Self::Real(Vec::new()),
            ColumnType::Integer | ColumnType::Time => Self::Integer(Vec::new()),
            ColumnType::Category => Self::Code(Vec::new()),
        }
    }

    pub fn into_real(self) -> Vec<f32> {
        match self {
            Self::Real(values) => values,
            _ => Vec::new(),
        }
    }

    pub fn into_integer(self) -> Vec<i64> {
        match self {
            Self::Integer(values) => values,
            _ => Vec::new(),
        }
    }

    pub fn into_code(self) -> Vec<i32> {
        match self {
            Self::Code(values) => values,
            _ => Vec::new(),
        }
    }

    pub fn size_bytes(&self) -> usize {
        match self {
            Self::Real(values) => 4 * values.len(),
            Self::Integer(values) => 8 * values.len(),
            Self::Code(values) => 4 * values.len(),
        }
    }
}

/// An array's memory as the threads see it.
#[derive(Debug, Clone, Copy)]
pub struct RawArray {
    pub pointer: *mut u8,
    pub width: usize,
}

// SAFETY: the threads that share it write disjoint rows, which `Growing` hands out.
unsafe impl Send for RawArray {}
// SAFETY: see above.
unsafe impl Sync for RawArray {}

impl RawArray {
    /// Writes "missing" for one column of `rows`.
    ///
    /// # Safety
    /// The rows are reserved, belong to the caller alone, and the slot is of this array.
    pub unsafe fn fill_missing(self, slot: &super::Slot, rows: std::ops::Range<usize>) {
        for row in rows {
            let place = row * self.width + slot.offset;
            // SAFETY: the caller's promise.
            unsafe {
                match slot.kind {
                    ColumnType::Real => self.pointer.cast::<f32>().add(place).write(f32::NAN),
                    ColumnType::Category => self.pointer.cast::<i32>().add(place).write(0),
                    ColumnType::Integer | ColumnType::Time => {
                        self.pointer.cast::<i64>().add(place).write(super::MISSING);
                    }
                }
            }
        }
    }
}

/// Arrays with room for `capacity` rows, none of which counts before [`Growing::finish`].
#[derive(Debug)]
pub struct Growing {
    arrays: Vec<(Array, usize)>,
    capacity: usize,
}

impl Growing {
    pub fn new(layout: &Layout) -> Self {
        Self {
            arrays: layout
                .arrays
                .iter()
                .map(|&(kind, width)| (Array::new(kind), width))
                .collect(),
            capacity: 0,
        }
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Makes room for at least `rows` rows. Memory is only reserved: pages that are never written never become resident,
    /// and growing moves large arrays by remapping, not by copying.
    pub fn reserve(&mut self, rows: usize) {
        if rows <= self.capacity {
            return;
        }
        // All of what is there must move along, whether counted or not, hence the lengths.
        for (array, width) in &mut self.arrays {
            // SAFETY: the first `capacity` rows were reserved; plain numbers may hold any bits, and a row is read only after a
            // reader has written it.
            unsafe {
                match array {
                    Array::Real(values) => grow(values, self.capacity * *width, rows * *width),
                    Array::Integer(values) => grow(values, self.capacity * *width, rows * *width),
                    Array::Code(values) => grow(values, self.capacity * *width, rows * *width),
                }
            }
        }
        self.capacity = rows;
    }

    pub fn raw(&mut self) -> Vec<RawArray> {
        self.arrays
            .iter_mut()
            .map(|(array, width)| RawArray {
                pointer: match array {
                    Array::Real(values) => values.as_mut_ptr().cast(),
                    Array::Integer(values) => values.as_mut_ptr().cast(),
                    Array::Code(values) => values.as_mut_ptr().cast(),
                },
                width: *width,
            })
            .collect()
    }

    /// Takes the arrays at `rows` rows, closing the gaps: `gaps` are rows that were handed out and not written, ascending.
    ///
    /// # Safety
    /// Every row below `rows` that is not in `gaps` has been written in every array.
    pub unsafe fn finish(self, rows: usize, gaps: &[std::ops::Range<usize>]) -> (usize, Vec<Array>) {
        let kept = rows - gaps.iter().map(ExactSizeIterator::len).sum::<usize>();
        let arrays = self
            .arrays
            .into_iter()
            .map(|(mut array, width)| {
                // SAFETY: `rows <= capacity`, and the caller wrote them.
                unsafe {
                    match &mut array {
                        Array::Real(values) => close_gaps(values, width, rows, gaps),
                        Array::Integer(values) => close_gaps(values, width, rows, gaps),
                        Array::Code(values) => close_gaps(values, width, rows, gaps),
                    }
                }
                array
            })
            .collect();
        (kept, arrays)
    }
}

/// # Safety
/// `used` values were reserved before; `T` is a plain number.
unsafe fn grow<T: Copy>(values: &mut Vec<T>, used: usize, wanted: usize) {
    // SAFETY: the caller's promise; the length goes back to 0 at once.
    unsafe {
        values.set_len(used);
        values.reserve_exact(wanted - used);
        values.set_len(0);
    }
}

/// # Safety
/// `rows * width` values are reserved, and those outside the gaps are written.
unsafe fn close_gaps<T: Copy>(
    values: &mut Vec<T>,
    width: usize,
    rows: usize,
    gaps: &[std::ops::Range<usize>],
) {
    // SAFETY: the caller's promise.
    unsafe { values.set_len(rows * width) };
    let mut kept = 0;
    let mut from = 0;
    for gap in gaps.iter().chain([&(rows..rows)]) {
        if kept != from {
            values.copy_within(from * width..gap.start * width, kept * width);
        }
        kept += gap.start - from;
        from = gap.end;
    }
    values.truncate(kept * width);
    values.shrink_to_fit();
}
