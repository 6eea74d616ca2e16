//! Between files and data sets: which column goes where, and the arrays they are written to.
//!
//! A reader (CSV, Parquet) gets a [`Layout`]: for every column of the file the array, the place in the array's row, and how to
//! read the text. A table of columns is a layout of arrays of width 1; the features of a data set are one array of width
//! `features`. So files are parsed straight into what the trainer uses.

pub mod arrays;
pub mod bad_rows;

pub use arrays::{Array, Arrays};
use serde::{Deserialize, Serialize};

/// How a column's values are read and kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnType {
    /// `f32`; missing is NaN.
    Real,
    /// `i64`; missing is [`MISSING`].
    Integer,
    /// `i32` code of a dictionary; missing is 0.
    Category,
    /// `i64` microseconds since 1970; missing is [`MISSING`].
    Time,
}

/// The missing value of integers and times.
pub const MISSING: i64 = i64::MIN;

impl ColumnType {
    pub fn name(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Integer => "integer",
            Self::Category => "category",
            Self::Time => "time",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "real" | "float" | "numeric" | "number" => Self::Real,
            "integer" | "int" => Self::Integer,
            "category" | "categorical" | "text" | "string" => Self::Category,
            "time" | "timestamp" | "date" => Self::Time,
            _ => return None,
        })
    }

    pub fn value_bytes(self) -> usize {
        match self {
            Self::Real | Self::Category => 4,
            Self::Integer | Self::Time => 8,
        }
    }
}

/// Where a column goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub array: usize,
    /// Place in the array's row.
    pub offset: usize,
    pub kind: ColumnType,
    /// A missing value makes the row a bad one.
    pub required: bool,
}

/// One slot a column of the file, `None` for columns that are not read; and the arrays' types and widths.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    pub slots: Vec<Option<Slot>>,
    pub arrays: Vec<(ColumnType, usize)>,
}

impl Layout {
    /// Places that no column of the file fills: (array, offset). Readers write "missing" there.
    pub fn unassigned(&self) -> Vec<Slot> {
        let all = self
            .arrays
            .iter()
            .enumerate()
            .flat_map(|(array, &(kind, width))| {
                (0..width).map(move |offset| Slot {
                    array,
                    offset,
                    kind,
                    required: false,
                })
            });
        let used = |slot: &Slot| {
            self.slots
                .iter()
                .flatten()
                .any(|known| (known.array, known.offset) == (slot.array, slot.offset))
        };
        all.filter(|slot| !used(slot)).collect()
    }

    /// Every column in an array of its own.
    pub fn columns(kinds: &[Option<ColumnType>]) -> Self {
        let mut layout = Self::default();
        for kind in kinds {
            let slot = kind.map(|kind| {
                layout.arrays.push((kind, 1));
                Slot {
                    array: layout.arrays.len() - 1,
                    offset: 0,
                    kind,
                    required: false,
                }
            });
            layout.slots.push(slot);
        }
        layout
    }
}

/// What to do with a row that cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BadRows {
    #[default]
    Error,
    /// Left out, counted, and the first few kept as examples.
    Skip,
}

impl BadRows {
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Skip => "skip",
        }
    }
}

/// One unreadable row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    pub path: std::path::PathBuf,
    /// From 1, the header being line 1.
    pub line: u64,
    pub problem: Problem,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    Fields {
        found: usize,
        expected: usize,
    },
    Value {
        column: String,
        value: String,
        wanted: &'static str,
    },
}

/// Rows left out under [`BadRows::Skip`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skipped {
    pub count: u64,
    pub examples: Vec<BadRow>,
}

impl Skipped {
    /// Counts the rows of another table as well.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        let room = EXAMPLES_KEPT.saturating_sub(self.examples.len());
        self.examples.extend(other.examples.iter().take(room).cloned());
    }
}

/// What a reader of tables returns.
#[derive(Debug, Default)]
pub struct TableRead {
    pub arrays: Arrays,
    pub skipped: Skipped,
    pub rows_per_file: Vec<usize>,
}

/// How many examples of skipped rows are kept.
pub const EXAMPLES_KEPT: usize = 10;

/// Whether a column is the index of a pandas frame, written along with it: the number of the row, and nothing to learn from.
pub fn is_index(name: &str) -> bool {
    let number = name
        .strip_prefix("__index_level_")
        .and_then(|rest| rest.strip_suffix("__"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}
