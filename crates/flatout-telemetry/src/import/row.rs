//! One row of a table: which GPU, when, and its values.

use super::columns::Column;
use super::{number, time};
use crate::sample::{GpuSample, HostSample};
use crate::sources::nvml::throttle_names;

#[derive(Default)]
pub struct Row {
    pub index: Option<u32>,
    /// Milliseconds since 1970, or seconds since the start in thousandths.
    pub time_ms: Option<f64>,
    pub started_unix_ms: Option<f64>,
    pub gpu: GpuSample,
    pub host: HostSample,
    pub clamped: u64,
}

/// What a row needs beside its fields; kept from row to row.
#[derive(Default)]
pub struct RowState {
    date_ms: f64,
    date: Vec<u8>,
}

impl Row {
    /// Makes it ready for the next row. `with_host` where rows have the host's values at all: it is large.
    pub fn clear(&mut self, with_host: bool) {
        self.index = None;
        self.time_ms = None;
        self.started_unix_ms = None;
        self.clamped = 0;
        self.gpu = GpuSample::default();
        if with_host {
            self.host = HostSample::default();
        }
    }

    /// Takes one field. What it cannot read stays unknown.
    pub fn take(&mut self, column: &Column, field: &[u8], state: &mut RowState) {
        match column {
            Column::Gpu { scale, set } => {
                if let Some(value) = number::parse(field) {
                    let value = self.clamp(value * scale, *scale);
                    set(&mut self.gpu, value);
                }
            }
            Column::Host { set } => {
                if let Some(value) = number::parse(field) {
                    set(&mut self.host, value);
                }
            }
            Column::Index => self.index = number::whole(field),
            Column::Time => self.time_ms = state.time(field),
            Column::Seconds => self.time_ms = number::parse(field).map(|seconds| seconds * 1000.0),
            Column::UnixMs => self.started_unix_ms = number::parse(field),
            Column::Date => state.set_date(field),
            Column::Clock => {
                self.time_ms = time::clock(field.trim_ascii()).map(|clock| state.date_ms + clock)
            }
            Column::ThrottleBits => self.gpu.throttle = number::hexadecimal(field).map(throttle_names),
            Column::ThrottleNames => {
                let text = String::from_utf8_lossy(field);
                let names = text.trim().split('+').filter(|name| !name.is_empty());
                self.gpu.throttle = Some(names.map(str::to_owned).collect());
            }
            Column::ThrottleFlag(reason) => match field.trim_ascii() {
                b"Active" => self
                    .gpu
                    .throttle
                    .get_or_insert_default()
                    .push((*reason).to_owned()),
                b"Not Active" => {
                    self.gpu.throttle.get_or_insert_default();
                }
                _ => {}
            },
            Column::Ignored | Column::Identity | Column::About(_) | Column::Driver => {}
        }
    }

    fn clamp(&mut self, value: f64, scale: f64) -> f64 {
        let is_share = scale == 0.01;
        if is_share && !(0.0..=1.0).contains(&value) {
            self.clamped += 1;
            return value.clamp(0.0, 1.0);
        }
        // 45 × 0.01 is not 0.45 to the last bit, and a record would show it.
        if is_share {
            (value * 1e4).round() / 1e4
        } else {
            value.max(0.0)
        }
    }
}

impl RowState {
    /// Date and time; most rows have the date of the row before.
    fn time(&mut self, field: &[u8]) -> Option<f64> {
        let field = field.trim_ascii();
        if let Some((date, rest)) = field.split_at_checked(11)
            && date == self.date
        {
            return time::clock(rest).map(|clock| self.date_ms + clock);
        }
        let time_ms = time::parse(field)?;
        let (date, rest) = field.split_at_checked(11)?;
        match time::clock(rest) {
            Some(clock) => {
                self.date = date.to_vec();
                self.date_ms = time_ms - clock;
            }
            None => self.date.clear(),
        }
        Some(time_ms)
    }

    fn set_date(&mut self, field: &[u8]) {
        let field = field.trim_ascii();
        if self.date != field {
            self.date = field.to_vec();
            self.date_ms = time::parse(&[field, b" 00:00:00"].concat()).unwrap_or(0.0);
        }
    }
}
