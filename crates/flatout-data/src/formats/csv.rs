//! CSV: read in blocks that end at record boundaries, indexed with vector instructions, parsed column by column by several
//! threads, straight into the arrays of a [`Layout`](crate::table::Layout).
//!
//! Quoted fields may contain delimiters, quotes (doubled) and line breaks. Lines end in `\n` or `\r\n`. Blank lines are skipped.

pub mod blocks;
pub mod infer;
pub mod number;
pub mod parse;
pub mod read;
pub mod scan;

pub use infer::{CsvSchema, infer};
pub use read::{CsvOptions, read};
