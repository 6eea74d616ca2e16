//! When the next tick is due. Ticks lie on a fixed grid from the start, so that lateness never adds up; a grid point that
//! passed unused is counted.

use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    started: Instant,
    interval: Duration,
    /// The grid point of the next tick.
    next: u64,
    missed: u64,
}

impl Schedule {
    /// The first tick is due at once.
    pub fn new(started: Instant, interval: Duration) -> Self {
        Self {
            started,
            interval,
            next: 0,
            missed: 0,
        }
    }

    pub fn started(&self) -> Instant {
        self.started
    }

    pub fn interval(&self) -> Duration {
        self.interval
    }

    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// How long until the next tick is due; zero when it is.
    pub fn remaining(&self, now: Instant) -> Duration {
        let due = u64::try_from(self.interval.as_nanos())
            .ok()
            .and_then(|nanoseconds| nanoseconds.checked_mul(self.next))
            .map_or(Duration::MAX, Duration::from_nanos);
        due.saturating_sub(now.saturating_duration_since(self.started))
    }

    /// Takes the tick that is due now, and counts those that passed unused before it. `None` when none is due.
    pub fn take(&mut self, now: Instant) -> Option<Duration> {
        if !self.remaining(now).is_zero() {
            return None;
        }
        let elapsed = now.saturating_duration_since(self.started);
        let grid =
            u64::try_from(elapsed.as_nanos() / self.interval.as_nanos().max(1)).unwrap_or(u64::MAX - 1);
        self.missed += grid.saturating_sub(self.next);
        self.next = grid + 1;
        Some(elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(100);

    #[test]
    fn lateness_does_not_add_up() {
        let start = Instant::now();
        let mut schedule = Schedule::new(start, INTERVAL);
        let mut taken = 0;
        for tick in 0..50u32 {
            // Every tick is taken 30 ms late.
            let now = start + INTERVAL * tick + Duration::from_millis(30);
            taken += u32::from(schedule.take(now).is_some());
            assert_eq!(schedule.remaining(now), Duration::from_millis(70));
        }
        assert_eq!((taken, schedule.missed()), (50, 0));
    }

    #[test]
    fn what_passed_unused_is_counted_once() {
        let start = Instant::now();
        let mut schedule = Schedule::new(start, INTERVAL);
        assert!(schedule.take(start).is_some());
        assert!(schedule.take(start + Duration::from_millis(50)).is_none());
        assert!(schedule.take(start + Duration::from_millis(430)).is_some());
        assert_eq!(schedule.missed(), 3);
        assert_eq!(
            schedule.remaining(start + Duration::from_millis(430)),
            Duration::from_millis(70)
        );
    }
}
