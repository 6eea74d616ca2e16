//! Findings as people and programs read them.

mod diff;
mod github;
mod json;
mod sarif;
mod text;

pub use diff::unified;
pub use github::github;
pub use json::{json, schema as json_schema};
pub use sarif::sarif;
pub use text::{Paint, text};
