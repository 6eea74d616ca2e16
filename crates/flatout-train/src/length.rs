//! How many passes a training has, where nobody said. What a model needs is updates, not passes: ten passes over a few hundred rows are over
//! before it has learned anything (`benches/quality.py`: Friedman #1, 4,800 rows: squared error 1.44 after 3,000 updates, 1.32 after 6,000,
//! 1.38 by gradient boosting; a learning rate that falls within the same ten passes does not help). The best checkpoint is kept, so passes that no longer help cost time alone.

use crate::Settings;

/// However much data there is.
pub const LEAST_EPOCHS: u64 = 10;
/// However little.
const MOST_EPOCHS: u64 = 100;
const UPDATES: u64 = 6000;
/// Evaluations of a training, at least: passes over small data are short.
const EVALUATIONS: u64 = 20;

/// Passes over data of so many steps each.
pub fn epochs(steps_an_epoch: u64) -> u64 {
    UPDATES
        .div_ceil(steps_an_epoch.max(1))
        .clamp(LEAST_EPOCHS, MOST_EPOCHS)
}

/// Decides what was left open. `interval_given`: somebody said how often to evaluate.
pub fn decide(settings: &mut Settings, steps_an_epoch: u64, interval_given: bool) {
    if !settings.epochs_open {
        return;
    }
    settings.epochs = epochs(steps_an_epoch);
    if settings.epochs > LEAST_EPOCHS && !interval_given {
        settings.eval_interval = settings.eval_interval.min(settings.epochs / EVALUATIONS).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_data_are_passed_over_more_often() {
        assert_eq!(
            [epochs(0), epochs(33), epochs(135), epochs(300), epochs(5000)],
            [100, 100, 45, 20, 10]
        );
    }
}
