//! Errors of numbers: sums in f64 alone.

use super::Scores;
use super::days::Days;
use crate::target::Objective;

#[derive(Default)]
pub struct RegressionMeter {
    sequence: bool,
    samples: u64,
    directions: f64,
    sums: [f64; 5],
    days: Days,
    columns: Vec<Column>,
}

/// Sums over the labels of one column, or of all.
#[derive(Clone, Copy, Default)]
struct Column {
    count: f64,
    squared: f64,
    absolute: f64,
    loss: f64,
    inside: f64,
}

impl Column {
    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.squared += other.squared;
        self.absolute += other.absolute;
        self.loss += other.loss;
        self.inside += other.inside;
    }

    fn scores(&self, objective: Objective, quantiles: usize, samples: u64) -> Scores {
        let mean = |sum: f64| sum / self.count.max(1.0);
        Scores {
            loss: mean(self.loss),
            mse: (objective != Objective::Plain).then(|| mean(self.squared)),
            mae: Some(mean(self.absolute)),
            coverage: (quantiles > 1).then(|| mean(self.inside)),
            samples,
            ..Scores::default()
        }
    }
}

impl RegressionMeter {
    pub fn new(sequence: bool) -> Self {
        Self {
            sequence,
            ..Self::default()
        }
    }

    /// A prediction of one column, what is minimized of it, and whether the label is between its outermost quantiles.
    pub fn add(&mut self, column: usize, prediction: f32, target: f32, loss: f64, inside: bool) {
        let (p, t) = (f64::from(prediction), f64::from(target));
        if self.columns.len() <= column {
            self.columns.resize(column + 1, Column::default());
        }
        self.columns[column].add(&Column {
            count: 1.0,
            squared: (p - t) * (p - t),
            absolute: (p - t).abs(),
            loss,
            inside: f64::from(u8::from(inside)),
        });
        self.directions += f64::from(u8::from((p > 0.0) == (t > 0.0)));
        for (sum, value) in self.sums.iter_mut().zip([p, t, p * p, t * t, p * t]) {
            *sum += value;
        }
    }

    /// A prediction of one day among those of other entities.
    pub fn add_day(&mut self, time_us: i64, prediction: f32, target: f32) {
        self.days.add(time_us, prediction, target);
    }

    /// The scores of each column by itself.
    pub fn columns(&self, objective: Objective, quantiles: usize) -> impl Iterator<Item = Scores> {
        let each = self.columns.iter();
        each.map(move |column| column.scores(objective, quantiles, self.samples))
    }

    pub fn end_sample(&mut self) {
        self.samples += 1;
    }

    pub fn scores(&self, objective: Objective, quantiles: usize) -> Option<Scores> {
        let mut all = Column::default();
        self.columns.iter().for_each(|column| all.add(column));
        let count = all.count;
        if count == 0.0 {
            return None;
        }
        let [p, t, pp, tt, pt] = self.sums.map(|sum| sum / count);
        let spread = ((pp - p * p) * (tt - t * t)).sqrt();
        let (daily_ic, rank_ic) = self.days.correlations();
        let sequence = |value: f64| Some(value).filter(|value| self.sequence && value.is_finite());
        Some(Scores {
            directional_accuracy: sequence(self.directions / count),
            // Without any spread there is no correlation.
            ic: sequence(if spread > 0.0 {
                (pt - p * t) / spread
            } else {
                f64::NAN
            }),
            daily_ic,
            rank_ic,
            ..all.scores(objective, quantiles, self.samples)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_scores() {
        let mut meter = RegressionMeter::new(true);
        assert!(meter.scores(Objective::Plain, 0).is_none());
        for (prediction, target) in [(1.0, 2.0), (2.0, 4.0), (-1.0, -2.0), (1.0, -1.0)] {
            let error = f64::from(prediction - target);
            meter.add(0, prediction, target, error * error, false);
            meter.end_sample();
        }
        let scores = meter.scores(Objective::Plain, 0).unwrap();
        assert!((scores.loss - (1.0 + 4.0 + 1.0 + 4.0) / 4.0).abs() < 1e-12);
        assert!((scores.mae.unwrap() - 1.5).abs() < 1e-12);
        assert!((scores.directional_accuracy.unwrap() - 0.75).abs() < 1e-12);
        // numpy.corrcoef([1, 2, -1, 1], [2, 4, -2, -1])
        assert!((scores.ic.unwrap() - 0.841_725_623).abs() < 1e-6, "{scores:?}");
        assert_eq!(scores.samples, 4);
    }

    #[test]
    fn rows_have_no_direction_and_a_constant_no_correlation() {
        let mut meter = RegressionMeter::new(false);
        meter.add(0, 1.0, 2.0, 1.0, false);
        assert_eq!(
            meter.scores(Objective::Plain, 0).unwrap().directional_accuracy,
            None
        );
        let mut meter = RegressionMeter::new(true);
        meter.add(0, 1.0, 2.0, 1.0, false);
        meter.add(0, 1.0, 3.0, 4.0, false);
        assert_eq!(meter.scores(Objective::Plain, 0).unwrap().ic, None);
    }
}
