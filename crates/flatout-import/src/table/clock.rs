//! The time of a log's rows, whatever its clock did.

/// Seconds since the first row, never going back.
#[derive(Default)]
pub struct Clock {
    first_ms: Option<f64>,
    last_s: f64,
    last_step_s: f64,
    /// Added because the log's clock was set back.
    offset_s: f64,
}

impl Clock {
    /// Seconds since the first row, and whether the log's clock went back.
    pub fn tell(&mut self, time_ms: Option<f64>, first: bool, interval_s: f64) -> (f64, bool) {
        let Some(time_ms) = time_ms else {
            self.last_s += if first { 0.0 } else { interval_s };
            return (self.last_s, false);
        };
        let first_ms = *self.first_ms.get_or_insert(time_ms);
        let mut seconds = (time_ms - first_ms) / 1000.0 + self.offset_s;
        let back = seconds < self.last_s;
        if back {
            let step = if self.last_step_s > 0.0 {
                self.last_step_s
            } else {
                interval_s
            };
            self.offset_s += self.last_s + step - seconds;
            seconds = self.last_s + step;
        }
        self.last_step_s = seconds - self.last_s;
        self.last_s = seconds;
        ((seconds * 1e6).round() / 1e6, back)
    }
}
