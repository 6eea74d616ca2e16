//! Combinations that differ in their seed alone are one combination that was measured several times.

use super::PointResult;
use crate::metrics::Select;
use serde::Serialize;

/// Settings of a combination with their values.
type Values = Vec<(String, String)>;

/// One combination over all its seeds.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// Without the seed.
    pub values: Vec<(String, String)>,
    pub seeds: usize,
    /// Of each score of the best evaluations: its name, mean and standard deviation.
    pub figures: Vec<(String, f64, f64)>,
    /// Mean and deviation of the score that decides.
    pub best: Option<(f64, f64)>,
}

/// Groups of results with several seeds, best mean first; none where the seed is no axis.
pub fn over_seeds(results: &[PointResult], select: &Select) -> Vec<Group> {
    let is_axis = |result: &PointResult| result.values.iter().any(|(name, _)| name == "seed");
    let mut groups: Vec<(Values, Vec<&PointResult>)> = Vec::new();
    for result in results
        .iter()
        .filter(|result| is_axis(result) && result.error.is_none())
    {
        let mut values = result.values.clone();
        values.retain(|(name, _)| name != "seed");
        match groups.iter_mut().find(|(known, _)| *known == values) {
            Some((_, of)) => of.push(result),
            None => groups.push((values, vec![result])),
        }
    }
    let mut groups: Vec<Group> = groups
        .into_iter()
        .map(|(values, of)| group(values, &of))
        .collect();
    groups.sort_by(|one, other| select.order(one.best.map(|best| best.0), other.best.map(|best| best.0)));
    groups
}

fn group(values: Values, of: &[&PointResult]) -> Group {
    let names = of.iter().find_map(|result| result.best_scores);
    let names: Vec<&str> = names
        .iter()
        .flat_map(|scores| scores.figures())
        .map(|(name, _)| name)
        .collect();
    let figures = names.into_iter().filter_map(|name| {
        let found = of
            .iter()
            .filter_map(|result| result.best_scores)
            .filter_map(|scores| scores.figure(name));
        let (mean, deviation) = spread(&found.collect::<Vec<f64>>())?;
        Some((name.to_owned(), mean, deviation))
    });
    Group {
        values,
        seeds: of.len(),
        figures: figures.collect(),
        best: spread(&of.iter().filter_map(|result| result.best).collect::<Vec<f64>>()),
    }
}

/// Mean and sample standard deviation; of a single value the deviation is 0.
fn spread(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len() as f64;
    if values.is_empty() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((mean, (squares / (count - 1.0).max(1.0)).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_deviations_are_those_of_numpy() {
        // numpy.mean, numpy.std(ddof=1) of [0.5, 0.25, 0.75]
        assert_eq!(spread(&[0.5, 0.25, 0.75]), Some((0.5, 0.25)));
        assert_eq!((spread(&[2.0]), spread(&[])), (Some((2.0, 0.0)), None));
    }
}
