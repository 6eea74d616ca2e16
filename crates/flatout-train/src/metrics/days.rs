//! How well predictions rank the entities of a day: the correlation over the entities of each day, averaged over the days. A model that
//! only knows whether the whole market rises has none.

/// Day by day: when, the prediction, the target.
#[derive(Default)]
pub struct Days {
    all: Vec<(i64, f32, f32)>,
}

impl Days {
    pub fn add(&mut self, time_us: i64, prediction: f32, target: f32) {
        self.all.push((time_us, prediction, target));
    }

    /// The mean over the days of Pearson's and of Spearman's correlation; days on which all are equal have none.
    pub fn correlations(&self) -> (Option<f64>, Option<f64>) {
        let mut sorted = self.all.clone();
        sorted.sort_by_key(|(time, ..)| *time);
        let (mut plain, mut ranked) = (Vec::new(), Vec::new());
        for day in sorted.chunk_by(|one, other| one.0 == other.0) {
            let predictions: Vec<f64> = day
                .iter()
                .map(|(_, prediction, _)| f64::from(*prediction))
                .collect();
            let targets: Vec<f64> = day.iter().map(|(.., target)| f64::from(*target)).collect();
            plain.extend(pearson(&predictions, &targets));
            ranked.extend(pearson(&ranks(&predictions), &ranks(&targets)));
        }
        (mean(&plain), mean(&ranked))
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn pearson(one: &[f64], other: &[f64]) -> Option<f64> {
    let (of_one, of_other) = (mean(one)?, mean(other)?);
    let (mut squares, mut product) = ([0.0; 2], 0.0);
    for (a, b) in one.iter().zip(other) {
        let (a, b) = (a - of_one, b - of_other);
        squares[0] += a * a;
        squares[1] += b * b;
        product += a * b;
    }
    let spread = (squares[0] * squares[1]).sqrt();
    (spread > 0.0 && spread.is_finite()).then(|| product / spread)
}

/// From 1; equal values share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let (mut ranks, mut first) = (vec![0.0; values.len()], 0);
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = first as f64 + (equal.len() as f64 + 1.0) / 2.0;
        equal.iter().for_each(|&place| ranks[place] = rank);
        first += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_days_of_pandas() {
        // df.groupby("day").apply(lambda d: d.p.corr(d.y)).mean(), and with method="spearman": pandas 3.1.1
        let rows = [
            (2, 0.1, 0.3),
            (2, 0.2, 0.1),
            (2, 0.4, 0.5),
            (2, 0.4, 0.2),
            (1, 1.0, 2.0),
            (1, 2.0, 1.0),
            (1, 3.0, 4.0),
            (3, 5.0, 1.0),
            (3, 5.0, 2.0),
            (4, 1.0, 1.0),
        ];
        let mut days = Days::default();
        rows.iter()
            .for_each(|&(day, prediction, target)| days.add(day, prediction, target));
        let (plain, ranked) = days.correlations();
        assert!((plain.unwrap() - DAILY).abs() < 1e-6, "{plain:?}");
        assert!((ranked.unwrap() - RANKED).abs() < 1e-6, "{ranked:?}");
        assert_eq!(Days::default().correlations(), (None, None));
    }

    const DAILY: f64 = 0.5062418487;
    const RANKED: f64 = 0.3554092553;
}
