//! Our CSV, as `--log` writes it.

use super::Format;
use crate::watch::Moment;
use flatout_import::log_csv;

#[derive(Default)]
pub struct Csv {
    begun: bool,
}

impl Format for Csv {
    fn tick(&mut self, moment: &Moment) -> String {
        let rows = log_csv::rows(moment.info.started_unix_ms, &moment.tick.sample);
        if std::mem::replace(&mut self.begun, true) {
            rows
        } else {
            log_csv::header() + &rows
        }
    }
}
