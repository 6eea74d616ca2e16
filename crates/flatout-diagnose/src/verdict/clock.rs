//! How long each sample stands for: the time since the one before it, but never much more than the interval asked for.

/// A sample stands for at most this many intervals; the rest of a longer gap is time nothing is known of.
const LONGEST_INTERVALS: f64 = 5.0;

#[derive(Clone, Debug, Default)]
pub struct Clock {
    interval_s: Option<f64>,
    last_t: Option<f64>,
    pub ticks: u64,
    pub covered_s: f64,
    pub missed_s: f64,
}

impl Clock {
    pub fn new(interval_s: Option<f64>) -> Self {
        let interval_s = interval_s.filter(|interval| interval.is_finite() && *interval > 0.0);
        Self {
            interval_s,
            ..Self::default()
        }
    }

    /// The interval asked for, or the first one seen.
    pub fn interval_s(&self) -> Option<f64> {
        self.interval_s
    }

    /// The seconds a sample at `t` stands for; `None` for one that is not after the one before it.
    pub fn advance(&mut self, t: f64) -> Option<f64> {
        if !t.is_finite() || self.last_t.is_some_and(|last| t <= last) {
            return None;
        }
        let since_s = match self.last_t {
            Some(last) => t - last,
            None => self.interval_s?,
        };
        let interval_s = *self.interval_s.get_or_insert(since_s);
        self.last_t = Some(t);
        self.ticks += 1;
        let stands_for_s = since_s.min(interval_s * LONGEST_INTERVALS);
        self.covered_s += stands_for_s;
        self.missed_s += since_s - stands_for_s;
        Some(stands_for_s)
    }

    /// Whether the first sample must wait for the second, which tells the interval.
    pub fn is_waiting(&self) -> bool {
        self.interval_s.is_none()
    }

    pub fn start_with(&mut self, interval_s: f64) {
        self.interval_s = Some(interval_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_missed_time() {
        let mut clock = Clock::new(Some(1.0));
        assert_eq!(clock.advance(1.0), Some(1.0));
        assert_eq!(clock.advance(2.5), Some(1.5));
        assert_eq!(clock.advance(2.5), None);
        assert_eq!(clock.advance(f64::NAN), None);
        assert_eq!(clock.advance(102.5), Some(5.0));
        assert_eq!((clock.ticks, clock.covered_s, clock.missed_s), (3, 7.5, 95.0));
    }
}
