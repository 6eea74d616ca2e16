//! The shapes data takes in memory. Each is a few contiguous blocks; a sample is one `u32`.

pub mod images;
pub mod panel;
pub mod tabular;

pub use images::{ImageTargets, Images};
pub use panel::{Entity, Panel, PanelSplit, Windows};
pub use tabular::{Category, Labels, Recoded, Tabular};
