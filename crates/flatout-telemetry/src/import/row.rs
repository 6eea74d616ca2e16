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
    pub clamped: u64,
    /// By column, scaled; not a number where there is none. A sample is many times larger than what a log says of it, so values
    /// are set there once, when it is known where they belong.
    numbers: Vec<f64>,
    throttle: Option<Vec<String>>,
    /// The names that `throttle` was read from: they change seldom.
    throttle_text: Vec<u8>,
}

/// What a row needs beside its fields; kept from row to row.
#[derive(Default)]
pub struct RowState {
    date_ms: f64,
    date: Vec<u8>,
}

impl Row {
    /// Makes it ready for the next row.
    pub fn clear(&mut self, columns: usize) {
        self.index = None;
        self.time_ms = None;
        self.started_unix_ms = None;
        self.clamped = 0;
        if self.throttle_text.is_empty() {
            self.throttle = None;
        }
        self.numbers.clear();
        self.numbers.resize(columns, f64::NAN);
    }

    /// What was read of the GPU, in place of what `gpu` held.
    pub fn tell_gpu(&self, columns: &[Column], gpu: &mut GpuSample) {
        let throttle = gpu
            .throttle
            .take()
            .filter(|old| Some(old) == self.throttle.as_ref());
        *gpu = GpuSample::default();
        gpu.throttle = throttle.or_else(|| self.throttle.clone());
        for (column, value) in columns.iter().zip(&self.numbers) {
            if let Column::Gpu { set, .. } = column
                && !value.is_nan()
            {
                set(gpu, *value);
            }
        }
    }

    /// What was read of the host, in place of what `host` held.
    pub fn tell_host(&self, columns: &[Column], host: &mut HostSample) {
        *host = HostSample::default();
        for (column, value) in columns.iter().zip(&self.numbers) {
            if let Column::Host { set } = column
                && !value.is_nan()
            {
                set(host, *value);
            }
        }
    }

    /// Takes the number of a column that holds one.
    pub fn take_number(&mut self, at: usize, column: &Column, value: f64) {
        match column {
            Column::Gpu { scale, .. } => self.numbers[at] = self.clamp(value * scale, *scale),
            Column::Host { .. } => self.numbers[at] = value,
            Column::Seconds => self.time_ms = Some(value * 1000.0),
            Column::UnixMs => self.started_unix_ms = Some(value),
            _ => {}
        }
    }

    /// Takes one field. What it cannot read stays unknown.
    pub fn take(&mut self, at: usize, column: &Column, field: &[u8], state: &mut RowState) {
        match column {
            Column::Gpu { .. } | Column::Host { .. } | Column::Seconds | Column::UnixMs => {
                if let Some(value) = number::parse(field) {
                    self.take_number(at, column, value);
                }
            }
            Column::Index => self.index = number::whole(field),
            Column::Time => self.time_ms = state.time(field),
            Column::Date => state.set_date(field),
            Column::Clock => {
                self.time_ms = time::clock(field.trim_ascii()).map(|clock| state.date_ms + clock)
            }
            Column::ThrottleBits => self.throttle = number::hexadecimal(field).map(throttle_names),
            Column::ThrottleNames if self.throttle.is_some() && field == self.throttle_text => {}
            Column::ThrottleNames => {
                self.throttle_text.clear();
                self.throttle_text.extend_from_slice(field);
                let text = String::from_utf8_lossy(field);
                let names = text.trim().split('+').filter(|name| !name.is_empty());
                self.throttle = Some(names.map(str::to_owned).collect());
            }
            Column::ThrottleFlag(reason) => match field.trim_ascii() {
                b"Active" => self.throttle.get_or_insert_default().push((*reason).to_owned()),
                b"Not Active" => {
                    self.throttle.get_or_insert_default();
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
        match (time::clock(rest), time::day_ms(date)) {
            (Some(_), Some(date_ms)) => {
                self.date = date.to_vec();
                self.date_ms = date_ms;
            }
            _ => self.date.clear(),
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
