//! Text for terminals and pipes: readable without colour, aligned also where characters are two cells wide.

mod account;
mod columns;
mod diagnosis;
mod doctor;
mod dots;
mod finding;
mod headline;
pub mod paint;
mod profile;
mod ranks;
mod runs;
mod seen;
mod summary;
mod table;
mod throttle;
mod verdict;
pub mod width;
mod workers;

pub use account::account;
pub use columns::{terminal_columns, terminal_rows};
pub use diagnosis::{diagnosis, monitored, time_table};
pub use doctor::{doctor, doctor_json};
pub use dots::dots;
pub use finding::{count, findings};
pub use headline::headline;
pub use paint::{Paint, Tone};
pub use profile::profile;
pub use ranks::ranks;
pub use runs::{runs, runs_json};
pub use seen::seen;
pub use summary::{next_command, next_command_of_monitor, summary, summary_above};
pub use table::{Align, Table};
pub use throttle::throttle_name;
pub use verdict::verdict;
pub(crate) use verdict::{aspect_name, mark_limit, mark_value, sign, status_word};
pub use workers::workers;

/// The width to write at: the terminal's, within what can be read; 80 in a pipe.
pub fn readable_width(terminal_columns: Option<u16>) -> usize {
    terminal_columns.map_or(80, |columns| usize::from(columns).clamp(40, 110))
}
