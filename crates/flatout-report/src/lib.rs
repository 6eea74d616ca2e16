//! Showing. Nothing here measures or decides: it gets samples, verdicts and findings and makes them readable.
//!
//! - [`text`]: findings, verdicts and tables as text, for terminals and pipes, with Chinese aligned.

pub mod text;
