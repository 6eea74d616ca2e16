//! Which score decides: what is best, when to stop, how a grid is ordered.

use super::Scores;
use std::collections::BTreeMap;

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

/// A score, of all labels together or of one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select {
    /// As it is written: `auc`, or `is_click.auc`.
    name: String,
    score: &'static str,
    label: Option<String>,
}

impl Select {
    /// The loss, for a name that is none.
    pub fn named(name: &str) -> Self {
        Self::parse(name).unwrap_or_else(|| Self {
            name: "loss".to_owned(),
            score: "loss",
            label: None,
        })
    }

    /// `auc` or `is_click.auc`; a label may have dots of its own.
    pub fn parse(name: &str) -> Option<Self> {
        let (label, score) = match name.rsplit_once('.') {
            Some((label, score)) => (Some(label), score),
            None => (None, name),
        };
        let score = score.to_ascii_lowercase();
        let score = NAMES.iter().copied().find(|known| *known == score)?;
        Some(Self {
            name: label.map_or_else(|| score.to_owned(), |label| format!("{label}.{score}")),
            score,
            label: label.map(str::to_owned),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn score(&self) -> &'static str {
        self.score
    }

    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// The score of an evaluation, where the task has it; `targets`: those of each label.
    pub fn of(&self, scores: &Scores, targets: &BTreeMap<String, Scores>) -> Option<f64> {
        match &self.label {
            Some(label) => targets.get(label)?.figure(self.score),
            None => scores.figure(self.score),
        }
    }

    pub fn is_better(&self, new: f64, old: f64) -> bool {
        if ERRORS.contains(&self.score) {
            new < old
        } else {
            new > old
        }
    }

    /// Best first.
    pub fn order(&self, one: Option<f64>, other: Option<f64>) -> std::cmp::Ordering {
        let worst = if ERRORS.contains(&self.score) {
            f64::INFINITY
        } else {
            f64::NEG_INFINITY
        };
        let (one, other) = (one.unwrap_or(worst), other.unwrap_or(worst));
        if ERRORS.contains(&self.score) {
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
        let of_label = Select::named("a.b.AUC");
        assert_eq!(
            (of_label.label(), of_label.score(), of_label.name()),
            (Some("a.b"), "auc", "a.b.auc")
        );
        let scores = |auc: f64| Scores {
            auc: Some(auc),
            ..Scores::default()
        };
        let targets = BTreeMap::from([("a.b".to_owned(), scores(0.75))]);
        assert_eq!(of_label.of(&scores(0.5), &targets), Some(0.75));
        assert_eq!(Select::named("auc").of(&scores(0.5), &targets), Some(0.5));
        assert_eq!(Select::parse("a.nonsense"), None);
        let mut found = vec![Some(0.1), None, Some(0.9)];
        found.sort_by(|a, b| Select::named("rank_ic").order(*a, *b));
        assert_eq!(found, [Some(0.9), Some(0.1), None]);
    }
}
