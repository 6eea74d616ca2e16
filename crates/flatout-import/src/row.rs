//! One row of a table: which GPU, when, and its values.

use super::columns::Column;
use super::table::parse::Block;
use super::{number, time};
use crate::log_csv::NOT_THROTTLED;
use flatout_record::{GpuSample, HostSample, throttle_names};

/// A sample is many times larger than what a log says of it: values wait in the block until it is known where they belong.
#[derive(Default)]
pub struct Row {
    pub index: Option<u32>,
    /// Milliseconds since 1970, or seconds since the start in thousandths.
    pub time_ms: Option<f64>,
    pub started_unix_ms: Option<f64>,
    /// Its line in the block's text.
    pub start: usize,
    pub end: usize,
    /// Which of the block's headers it stands under.
    pub header: usize,
    /// Where its numbers begin among the block's.
    pub numbers: usize,
    /// Which of the block's lists of throttle reasons.
    pub throttle: Option<usize>,
}

/// Lists of throttle reasons that are looked through for one that is there already.
const RECENT_THROTTLES: usize = 16;

/// What reading a row needs beside its fields; kept from row to row.
#[derive(Default)]
pub struct Scratch {
    date_ms: f64,
    date: Vec<u8>,
    /// Shares of this row that were clamped.
    pub clamped: u64,
    throttle: Throttle,
    /// The field that tells the reasons, or the names of those that are active, with `+` between them.
    throttle_text: Vec<u8>,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Throttle {
    #[default]
    Unknown,
    Flags,
    Bits,
    Names,
}

impl Row {
    /// What was read of the GPU, in place of what `gpu` held.
    pub fn tell_gpu(&self, block: &Block, gpu: &mut GpuSample) {
        let columns = &block.header(self).columns;
        let numbers = block.numbers(self);
        let throttle = self.throttle.map(|at| &block.throttles[at].1);
        if gpu.throttle.as_ref() != throttle {
            gpu.throttle = throttle.cloned();
        }
        // First what is unknown: two columns may tell the same value, and one of them not have it.
        for (column, value) in columns.iter().zip(numbers) {
            if let Column::Gpu { set, .. } | Column::Share { set } = column
                && value.is_nan()
            {
                set(gpu, None);
            }
        }
        for (column, value) in columns.iter().zip(numbers) {
            if let Column::Gpu { set, .. } | Column::Share { set } = column
                && !value.is_nan()
            {
                set(gpu, Some(*value));
            }
        }
    }

    /// What was read of the host, in place of what `host` held.
    pub fn tell_host(&self, block: &Block, host: &mut HostSample) {
        for (column, value) in block.header(self).columns.iter().zip(block.numbers(self)) {
            if let Column::Host { set } = column {
                set(host, (!value.is_nan()).then_some(*value));
            }
        }
    }

    /// Takes the number of a column that holds one.
    pub fn take_number(&mut self, column: &Column, value: f64, number: &mut f64, scratch: &mut Scratch) {
        match column {
            Column::Share { .. } => *number = scratch.share(value),
            Column::Gpu { scale, .. } => *number = (value * scale).max(0.0),
            Column::Host { .. } => *number = value,
            Column::Seconds => self.time_ms = Some(value * 1000.0),
            Column::UnixMs => self.started_unix_ms = Some(value),
            _ => {}
        }
    }

    /// Takes one field. What it cannot read stays unknown.
    pub fn take(&mut self, column: &Column, field: &[u8], number: &mut f64, scratch: &mut Scratch) {
        match column {
            Column::Gpu { .. }
            | Column::Share { .. }
            | Column::Host { .. }
            | Column::Seconds
            | Column::UnixMs => {
                if let Some(value) = number::parse(field) {
                    self.take_number(column, value, number, scratch);
                }
            }
            Column::Index => self.index = number::whole(field),
            Column::Time => self.time_ms = scratch.time(field),
            Column::Date => scratch.set_date(field),
            Column::Clock => {
                self.time_ms = time::clock(field.trim_ascii()).map(|clock| scratch.date_ms + clock);
            }
            Column::ThrottleBits if number::hexadecimal(field).is_none() => {}
            Column::ThrottleBits => scratch.throttle_field(Throttle::Bits, field),
            Column::ThrottleNames if field.trim_ascii().is_empty() => {}
            Column::ThrottleNames => scratch.throttle_field(Throttle::Names, field),
            Column::ThrottleFlag(reason) => scratch.throttle_flag(reason, field),
            Column::Ignored | Column::Identity | Column::About(_) | Column::Driver => {}
        }
    }
}

impl Scratch {
    /// Makes it ready for the next row.
    pub fn begin(&mut self) {
        self.clamped = 0;
        self.throttle = Throttle::Unknown;
        self.throttle_text.clear();
    }

    fn share(&mut self, percent: f64) -> f64 {
        if !(0.0..=100.0).contains(&percent) {
            self.clamped += 1;
        }
        // Divided: 45 × 0.01 is not 0.45 to the last bit, and a record would show it.
        percent.clamp(0.0, 100.0) / 100.0
    }

    fn throttle_field(&mut self, throttle: Throttle, field: &[u8]) {
        self.throttle = throttle;
        self.throttle_text.clear();
        self.throttle_text.extend_from_slice(field.trim_ascii());
    }

    /// One column a reason; where another column tells them all, that one counts.
    fn throttle_flag(&mut self, reason: &str, field: &[u8]) {
        if matches!(self.throttle, Throttle::Bits | Throttle::Names) {
            return;
        }
        match field.trim_ascii() {
            b"Active" => {
                if !self.throttle_text.is_empty() {
                    self.throttle_text.push(b'+');
                }
                self.throttle_text.extend_from_slice(reason.as_bytes());
            }
            b"Not Active" => {}
            _ => return,
        }
        self.throttle = Throttle::Flags;
    }

    /// The row's throttle reasons among those of the block: rows repeat them.
    pub fn throttle(&self, known: &mut Vec<(Vec<u8>, Vec<String>)>) -> Option<usize> {
        if self.throttle == Throttle::Unknown {
            return None;
        }
        let from = known.len().saturating_sub(RECENT_THROTTLES);
        let before = known[from..]
            .iter()
            .rposition(|(text, _)| *text == self.throttle_text);
        if let Some(at) = before {
            return Some(from + at);
        }
        let names = match self.throttle {
            Throttle::Bits => throttle_names(number::hexadecimal(&self.throttle_text)?),
            _ => {
                let text = String::from_utf8_lossy(&self.throttle_text);
                text.split('+')
                    .filter(|name| !name.is_empty() && *name != NOT_THROTTLED)
                    .map(str::to_owned)
                    .collect()
            }
        };
        known.push((self.throttle_text.clone(), names));
        Some(known.len() - 1)
    }

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
