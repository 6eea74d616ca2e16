//! When to look closely: right after the first steps, then a few more times while the run lasts.

/// Seconds after the first step at which the first window opens and closes: the start of an epoch is over by then, and the
/// first headline, at most 15 s after the first step, rests on it.
const FIRST_OPENS: f64 = 1.0;
const FIRST_CLOSES: f64 = 9.0;
/// Later windows are this long, and the pause before each is this many times longer than the one before.
const LENGTH: f64 = 4.0;
const FIRST_PAUSE: f64 = 12.0;
const PAUSE_GROWS: f64 = 1.6;
const LONGEST_PAUSE: f64 = 600.0;
/// A program without steps is looked at from here on.
const WITHOUT_STEPS: f64 = 8.0;

/// When the GPU is traced inside a window, until when the program may begin with it (between two steps, and a steady loop looks only four times
/// a second; the probe ends it by itself), and whether synchronizations and launches are recorded. Kernels and copies cost 2.5 µs
/// per kernel of an eager, launch-bound step; synchronizations as well 12 µs (H200, 199 kernels per step, 2026-11-18). So the
/// latter have one short trace, in the first window only.
const GPU_TRACES: [(f64, f64, bool); 2] = [(1.2, 1.2, false), (5.0, 2.9, true)];
/// Added to the number of a GPU window that records synchronizations.
const WITH_SYNCS: u64 = 1 << 32;

/// The schedule of windows of one run.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    number: u64,
    opens_s: f64,
    closes_s: f64,
    pause_s: f64,
    /// The schedule rests on the first step, not on the program's start.
    stepped: bool,
}

impl Default for Windows {
    fn default() -> Self {
        Self {
            number: 1,
            opens_s: WITHOUT_STEPS,
            closes_s: WITHOUT_STEPS + FIRST_CLOSES - FIRST_OPENS,
            pause_s: FIRST_PAUSE,
            stepped: false,
        }
    }
}

impl Windows {
    /// Whether a window is open now.
    pub fn open(&mut self, now_s: f64, first_step_s: Option<f64>) -> bool {
        if let Some(first) = first_step_s.filter(|_| !self.stepped) {
            *self = Self {
                number: self.number + 1,
                opens_s: first + FIRST_OPENS,
                closes_s: first + FIRST_CLOSES,
                pause_s: FIRST_PAUSE,
                stepped: true,
            };
        }
        while now_s >= self.closes_s {
            self.number += 1;
            self.opens_s = self.closes_s + self.pause_s;
            self.closes_s = self.opens_s + LENGTH;
            self.pause_s = (self.pause_s * PAUSE_GROWS).min(LONGEST_PAUSE);
        }
        now_s >= self.opens_s
    }

    /// Whether the GPU window of this number records synchronizations, which makes its steps slower.
    pub fn records_syncs(number: u64) -> bool {
        number > WITH_SYNCS
    }

    /// The number of the GPU window that should be open now.
    pub fn gpu_window(&self, now_s: f64) -> Option<u64> {
        let turn = GPU_TRACES.iter().position(|(after, length, _)| {
            let opens_s = self.opens_s + after;
            (opens_s..opens_s + length).contains(&now_s) && opens_s + length <= self.closes_s
        })?;
        let (.., syncs) = GPU_TRACES[turn];
        let number = self.number * GPU_TRACES.len() as u64 + turn as u64;
        Some(number + if syncs { WITH_SYNCS } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_seconds(until: u32, first_step: Option<f64>) -> Vec<u32> {
        let mut windows = Windows::default();
        (0..until)
            .filter(|second| {
                let now = f64::from(*second);
                windows.open(now, first_step.filter(|first| now >= *first))
            })
            .collect()
    }

    #[test]
    fn opens_right_after_the_first_step() {
        assert_eq!(open_seconds(20, Some(5.0)), (6..14).collect::<Vec<_>>());
    }

    #[test]
    fn traces_the_gpu_for_a_part_of_each_window() {
        let mut windows = Windows::default();
        let mut numbers = Vec::new();
        for tenth in 0..600 {
            let now = f64::from(tenth) / 10.0;
            windows.open(now, (now >= 5.0).then_some(5.0));
            numbers.extend(windows.gpu_window(now));
        }
        let count = numbers.len();
        numbers.dedup();
        assert_eq!(numbers.len(), 4, "two in the first window, one in each later one");
        assert!((55..=80).contains(&count), "{count} tenths of a second");
        assert_eq!(numbers.iter().filter(|number| **number > WITH_SYNCS).count(), 1);
    }

    #[test]
    fn opens_without_steps() {
        assert_eq!(open_seconds(20, None), (8..16).collect::<Vec<_>>());
    }

    #[test]
    fn stays_closed_most_of_a_long_run() {
        let open = open_seconds(24 * 3600, Some(5.0)).len();
        assert!((40..1000).contains(&open), "{open}");
    }
}
