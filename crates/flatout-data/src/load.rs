//! From paths to data sets.

pub mod images;
pub mod join;
pub mod kuairand;
mod labels;
pub mod missing;
pub mod panel;
mod panel_table;
pub mod policies;
pub mod roles;
pub mod tabular;
