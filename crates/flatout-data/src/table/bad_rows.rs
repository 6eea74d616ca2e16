//! Rows that cannot be taken: an error at the first one, or left out and counted.

use super::arrays::{Array, Growing};
use super::{Arrays, BadRow, BadRows, EXAMPLES_KEPT, Skipped, TableRead};
use crate::text_list::TextList;
use crate::{DataError, Result};

/// What readers find bad while they fill arrays whose rows they know beforehand.
pub struct Rejected {
    policy: BadRows,
    /// Rows of the table; one with two bad values stands here twice.
    rows: Vec<usize>,
    examples: Vec<BadRow>,
}

impl Rejected {
    pub fn new(policy: BadRows) -> Self {
        Self {
            policy,
            rows: Vec::new(),
            examples: Vec::new(),
        }
    }

    pub fn add(&mut self, row: usize, bad: BadRow) -> Result<()> {
        if self.policy == BadRows::Error {
            return Err(DataError::BadRow(bad));
        }
        self.rows.push(row);
        if self.examples.len() < EXAMPLES_KEPT {
            self.examples.push(bad);
        }
        Ok(())
    }

    /// The table without these rows.
    ///
    /// # Safety
    /// Every row below `rows` has been written in every array, bad values as missing.
    pub unsafe fn leave_out(
        mut self,
        growing: Growing,
        rows: usize,
        dictionaries: Vec<TextList>,
        mut rows_per_file: Vec<usize>,
    ) -> TableRead {
        self.rows.sort_unstable();
        self.rows.dedup();
        let mut file_start = 0;
        for count in &mut rows_per_file {
            let file_rows = file_start..file_start + *count;
            file_start = file_rows.end;
            let place = |row: usize| self.rows.partition_point(|&bad| bad < row);
            *count -= place(file_rows.end) - place(file_rows.start);
        }
        let count = self.rows.len() as u64;
        let gaps: Vec<_> = self.rows.into_iter().map(|row| row..row + 1).collect();
        // SAFETY: the caller's promise.
        let (rows, arrays): (usize, Vec<Array>) = unsafe { growing.finish(rows, &gaps) };
        TableRead {
            arrays: Arrays {
                rows,
                arrays,
                dictionaries,
            },
            skipped: Skipped {
                count,
                examples: self.examples,
            },
            rows_per_file,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Problem;

    #[test]
    fn a_row_with_two_bad_values_is_left_out_once() {
        let bad = || BadRow {
            path: "a.parquet".into(),
            line: 2,
            problem: Problem::Fields {
                found: 1,
                expected: 2,
            },
        };
        assert!(Rejected::new(BadRows::Error).add(1, bad()).is_err());
        let mut rejected = Rejected::new(BadRows::Skip);
        rejected.add(1, bad()).unwrap();
        rejected.add(1, bad()).unwrap();
        // SAFETY: a layout without arrays has nothing to write.
        let read = unsafe {
            rejected.leave_out(
                Growing::new(&crate::table::Layout::default()),
                3,
                Vec::new(),
                vec![1, 2],
            )
        };
        assert_eq!((read.arrays.rows, read.skipped.count), (2, 1));
        assert_eq!(read.rows_per_file, [1, 1]);
    }
}
