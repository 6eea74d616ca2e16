//! What removing a line gains.
//!
//! The account says how long a line takes. Its removal gains more than that: caches, the allocator and waiting threads are the rest's
//! again, and what the line's function costs elsewhere may go with it. With `s` the factor that follows from the seconds that surely go
//! and `m` the one from all that may go, the expected factor is `e = s^1.15 · m^0.3`, and the interval is `e^0.55` to `e^1.45`, at most
//! 1.4 times to either side.
//!
//! The exponents were fitted to 45 programs whose repaired version was measured (`faults/lines/speeds-cpu.json`, two CPUs each, one run of
//! both versions); `cargo xtask faults` compares promises with measurements, those of held-out programs apart.

use flatout_core::Gain;

const SURE: f64 = 1.15;
const MORE: f64 = 0.3;
/// Half of the interval's width, of the logarithm of the expected factor.
const SPREAD: f64 = 0.45;
/// The widest it gets to either side.
const WIDEST: f64 = 1.4;
/// More is not promised: what is left then was hardly measured.
const MOST: f64 = 50.0;

/// The gain of removing a line, from the share of the time that surely goes and the share that may go.
pub fn of_line(certain_share: f64, possible_share: f64) -> Gain {
    let bounds = Gain::from_removed_shares(certain_share, possible_share);
    let expected = (bounds.low.ln() * SURE + bounds.high.ln() * MORE).max(0.0);
    let half = (expected * SPREAD).min(WIDEST.ln());
    let factor = |log: f64| log.exp().min(MOST);
    Gain::estimate(factor(expected - half), factor(expected + half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_costs_nothing_gains_nothing() {
        let gain = of_line(0.0, 0.0);
        assert_eq!((gain.low, gain.high), (1.0, 1.0));
    }

    #[test]
    fn half_of_the_time_gains_about_twice() {
        let gain = of_line(0.4, 0.55);
        assert!(gain.low < 2.0 && gain.high > 2.0, "{gain:?}");
        assert!(gain.high / gain.low <= 2.0, "{gain:?}");
    }

    #[test]
    fn the_interval_stays_finite_and_in_order() {
        for (certain, possible) in [(0.9, 0.99), (0.0, 0.99), (0.99, 0.99), (0.05, 0.06)] {
            let gain = of_line(certain, possible);
            assert!(
                1.0 <= gain.low && gain.low <= gain.high && gain.high <= MOST,
                "{gain:?}"
            );
        }
    }
}
