//! How good predictions are, on the host: the trainer collects them over an evaluation and asks once at the end. Pairs with
//! a value that is not finite make a metric that cannot be trusted, so it is `None`, as it is where it has no meaning.

/// Mean absolute error.
pub fn mean_absolute_error(predictions: &[f32], targets: &[f32]) -> Option<f64> {
    let pairs = paired(predictions, targets)?;
    Some(pairs.map(|(p, t)| (p - t).abs()).sum::<f64>() / predictions.len() as f64)
}

/// Share of predictions whose sign is the target's: the direction of a return. Targets of exactly zero have no direction.
pub fn directional_accuracy(predictions: &[f32], targets: &[f32]) -> Option<f64> {
    let moved: Vec<(f64, f64)> = paired(predictions, targets)?.filter(|(_, t)| *t != 0.0).collect();
    let right = moved.iter().filter(|(p, t)| p * t > 0.0).count();
    (!moved.is_empty()).then(|| right as f64 / moved.len() as f64)
}

/// Pearson's correlation of predictions and targets: the information coefficient.
pub fn correlation(predictions: &[f32], targets: &[f32]) -> Option<f64> {
    let count = predictions.len() as f64;
    let sums = |value: &dyn Fn(f64, f64) -> f64| -> Option<f64> {
        Some(
            paired(predictions, targets)?
                .map(|(p, t)| value(p, t))
                .sum::<f64>()
                / count,
        )
    };
    let (mean_p, mean_t) = (sums(&|p, _| p)?, sums(&|_, t| t)?);
    let covariance = sums(&|p, t| (p - mean_p) * (t - mean_t))?;
    let (spread_p, spread_t) = (
        sums(&|p, _| (p - mean_p).powi(2))?,
        sums(&|_, t| (t - mean_t).powi(2))?,
    );
    (spread_p > 0.0 && spread_t > 0.0).then(|| covariance / (spread_p * spread_t).sqrt())
}

/// Spearman's correlation: that of the ranks.
pub fn rank_correlation(predictions: &[f32], targets: &[f32]) -> Option<f64> {
    let _ = paired(predictions, targets)?;
    let as_f32 = |ranks: Vec<f64>| ranks.into_iter().map(|rank| rank as f32).collect::<Vec<f32>>();
    correlation(&as_f32(ranks(predictions)), &as_f32(ranks(targets)))
}

/// Area under the ROC curve of scores (or logits) against targets that are positive above one half; ties count half.
pub fn area_under_curve(scores: &[f32], targets: &[f32]) -> Option<f64> {
    let _ = paired(scores, targets)?;
    let positives = targets.iter().filter(|&&target| target > 0.5).count() as f64;
    let negatives = targets.len() as f64 - positives;
    if positives == 0.0 || negatives == 0.0 {
        return None;
    }
    let ranked = ranks(scores).into_iter().zip(targets);
    let sum: f64 = ranked
        .filter(|(_, target)| **target > 0.5)
        .map(|(rank, _)| rank + 1.0)
        .sum();
    Some((sum - positives * (positives + 1.0) / 2.0) / (positives * negatives))
}

/// Share of rows whose largest logit is the target's class.
pub fn accuracy(logits: &[f32], classes: usize, targets: &[i32]) -> Option<f64> {
    let fits = classes > 0 && !targets.is_empty() && logits.len() == classes * targets.len();
    let best = |row: &[f32]| {
        let largest = row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        largest.map_or(0, |(index, _)| index as i32)
    };
    let right = || {
        logits
            .chunks_exact(classes)
            .zip(targets)
            .filter(|(row, class)| best(row) == **class)
            .count()
    };
    fits.then(|| right() as f64 / targets.len() as f64)
}

fn paired<'a>(predictions: &'a [f32], targets: &'a [f32]) -> Option<impl Iterator<Item = (f64, f64)> + 'a> {
    let finite = |values: &[f32]| values.iter().all(|value| value.is_finite());
    let usable = !predictions.is_empty()
        && predictions.len() == targets.len()
        && finite(predictions)
        && finite(targets);
    usable.then(|| {
        predictions
            .iter()
            .zip(targets)
            .map(|(&p, &t)| (f64::from(p), f64::from(t)))
    })
}

/// Ranks from 0, ties sharing the mean of theirs.
fn ranks(values: &[f32]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let equal = order[start..]
            .iter()
            .take_while(|&&index| values[index] == values[order[start]]);
        let end = start + equal.count().max(1);
        for &index in &order[start..end] {
            ranks[index] = (start + end - 1) as f64 / 2.0;
        }
        start = end;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let (p, t) = ([1.0, -2.0, 3.0, 0.5], [2.0, -1.0, -1.0, 0.0]);
        assert_eq!(mean_absolute_error(&p, &t), Some(6.5 / 4.0));
        assert_eq!(directional_accuracy(&p, &t), Some(2.0 / 3.0));
        assert!((correlation(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]).unwrap() - 1.0).abs() < 1e-12);
        assert!((rank_correlation(&[1.0, 10.0, 100.0], &[3.0, 2.0, 1.0]).unwrap() + 1.0).abs() < 1e-12);
        // Of the four pairs of a positive and a negative three are in order, one is a tie.
        assert_eq!(
            area_under_curve(&[0.9, 0.4, 0.4, 0.1], &[1.0, 1.0, 0.0, 0.0]),
            Some(3.5 / 4.0)
        );
        assert_eq!(accuracy(&[0.1, 0.9, 0.8, 0.2], 2, &[1, 1]), Some(0.5));
    }

    #[test]
    fn without_meaning_there_is_no_number() {
        assert_eq!(mean_absolute_error(&[], &[]), None);
        assert_eq!(mean_absolute_error(&[f32::NAN], &[1.0]), None);
        assert_eq!(area_under_curve(&[1.0, 2.0], &[1.0, 1.0]), None);
        assert_eq!(correlation(&[1.0, 1.0], &[1.0, 2.0]), None);
        assert_eq!(accuracy(&[1.0], 0, &[]), None);
    }
}
