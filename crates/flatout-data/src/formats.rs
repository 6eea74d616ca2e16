//! File formats: each a module that turns files into values at given rows. None of them knows what the values are for.

pub mod arrow_ipc;
pub mod csv;
pub mod encoding;
pub mod image;
pub mod json_lines;
pub mod npy;
pub mod npy_table;
pub mod npz;
pub mod other;
pub mod parquet;
pub mod parquet_table;
pub mod parquet_write;
