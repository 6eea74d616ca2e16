//! Which score decides: what is best, when to stop, how a grid is ordered.

use super::Scores;

/// For `--select`.
pub const NAMES: &[&str] = &[
    "loss",
    "mse",
    "mae",
    "directional_accuracy",
    "ic",
    "daily_ic",
    "rank_ic",
    "accuracy",
    "top5_accuracy",
    "auc",
    "precision",
    "recall",
    "f1",
];
/// Errors: less is better. Of all others more is.
const ERRORS: &[&str] = &["loss", "mse", "mae"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Select(&'static str);

impl Select {
    /// The loss, for a name that is none.
    pub fn named(name: &str) -> Self {
        let found = NAMES.iter().find(|known| **known == name);
        Self(found.copied().unwrap_or("loss"))
    }

    pub fn name(self) -> &'static str {
        self.0
    }

    /// The score of an evaluation, where the task has it.
    pub fn of(self, scores: &Scores) -> Option<f64> {
        let figures = scores.figures();
        figures
            .iter()
            .find(|(name, _)| *name == self.0)
            .map(|(_, value)| *value)
    }

    pub fn is_better(self, new: f64, old: f64) -> bool {
        if ERRORS.contains(&self.0) {
            new < old
        } else {
            new > old
        }
    }

    /// Best first.
    pub fn order(self, one: Option<f64>, other: Option<f64>) -> std::cmp::Ordering {
        let worst = if ERRORS.contains(&self.0) {
            f64::INFINITY
        } else {
            f64::NEG_INFINITY
        };
        let (one, other) = (one.unwrap_or(worst), other.unwrap_or(worst));
        if ERRORS.contains(&self.0) {
            one.total_cmp(&other)
        } else {
            other.total_cmp(&one)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_shall_fall_and_all_else_shall_rise() {
        assert!(Select::named("mae").is_better(1.0, 2.0) && Select::named("auc").is_better(0.8, 0.7));
        assert_eq!(Select::named("nonsense").name(), "loss");
        let mut found = vec![Some(0.1), None, Some(0.9)];
        found.sort_by(|a, b| Select::named("rank_ic").order(*a, *b));
        assert_eq!(found, [Some(0.9), Some(0.1), None]);
    }
}
