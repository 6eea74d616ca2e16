//! Errors of numbers: sums in f64 alone.

use super::Scores;
use super::days::Days;

#[derive(Default)]
pub struct RegressionMeter {
    sequence: bool,
    samples: u64,
    /// Values: samples times columns.
    count: f64,
    squared: f64,
    absolute: f64,
    directions: f64,
    sums: [f64; 5],
    days: Days,
    /// Of each column: values, squared and absolute errors.
    columns: Vec<[f64; 3]>,
}

impl RegressionMeter {
    pub fn new(sequence: bool) -> Self {
        Self {
            sequence,
            ..Self::default()
        }
    }

    pub fn add(&mut self, prediction: f32, target: f32) {
        let (p, t) = (f64::from(prediction), f64::from(target));
        self.count += 1.0;
        self.squared += (p - t) * (p - t);
        self.absolute += (p - t).abs();
        self.directions += f64::from(u8::from((p > 0.0) == (t > 0.0)));
        for (sum, value) in self.sums.iter_mut().zip([p, t, p * p, t * t, p * t]) {
            *sum += value;
        }
    }

    /// A prediction of one day among those of other entities.
    pub fn add_day(&mut self, time_us: i64, prediction: f32, target: f32) {
        self.days.add(time_us, prediction, target);
    }

    pub fn add_to_column(&mut self, column: usize, prediction: f32, target: f32) {
        if self.columns.len() <= column {
            self.columns.resize(column + 1, [0.0; 3]);
        }
        let error = f64::from(prediction) - f64::from(target);
        let [count, squared, absolute] = &mut self.columns[column];
        *count += 1.0;
        *squared += error * error;
        *absolute += error.abs();
    }

    /// The scores of each column by itself.
    pub fn columns(&self) -> impl Iterator<Item = Scores> {
        self.columns.iter().map(|[count, squared, absolute]| Scores {
            loss: squared / count.max(1.0),
            mae: Some(absolute / count.max(1.0)),
            samples: self.samples,
            ..Scores::default()
        })
    }

    pub fn end_sample(&mut self) {
        self.samples += 1;
    }

    pub fn scores(&self) -> Option<Scores> {
        let count = self.count;
        if count == 0.0 {
            return None;
        }
        let [p, t, pp, tt, pt] = self.sums.map(|sum| sum / count);
        let spread = ((pp - p * p) * (tt - t * t)).sqrt();
        let (daily_ic, rank_ic) = self.days.correlations();
        let sequence = |value: f64| Some(value).filter(|value| self.sequence && value.is_finite());
        Some(Scores {
            loss: self.squared / count,
            mae: Some(self.absolute / count),
            directional_accuracy: sequence(self.directions / count),
            // Without any spread there is no correlation.
            ic: sequence(if spread > 0.0 {
                (pt - p * t) / spread
            } else {
                f64::NAN
            }),
            daily_ic,
            rank_ic,
            samples: self.samples,
            ..Scores::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_scores() {
        let mut meter = RegressionMeter::new(true);
        assert!(meter.scores().is_none());
        for (prediction, target) in [(1.0, 2.0), (2.0, 4.0), (-1.0, -2.0), (1.0, -1.0)] {
            meter.add(prediction, target);
            meter.end_sample();
        }
        let scores = meter.scores().unwrap();
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
        meter.add(1.0, 2.0);
        assert_eq!(meter.scores().unwrap().directional_accuracy, None);
        let mut meter = RegressionMeter::new(true);
        meter.add(1.0, 2.0);
        meter.add(1.0, 3.0);
        assert_eq!(meter.scores().unwrap().ic, None);
    }
}
