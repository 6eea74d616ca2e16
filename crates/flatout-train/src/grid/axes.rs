//! A configuration with lists to one configuration a combination.

use super::Point;
use crate::settings::Values;
use crate::{Configuration, TrainError};
use flatout_core::error::FileError;
use flatout_core::message;
use std::path::{Path, PathBuf};

/// More than this is a mistake, or a search that a grid is the wrong tool for.
const MOST_POINTS: usize = 10_000;

pub struct Grid {
    /// Settings with several values.
    pub axes: Vec<(&'static str, Vec<String>)>,
    /// Every combination, the last axis changing fastest.
    pub points: Vec<Point>,
    pub output_dir: PathBuf,
}

impl Grid {
    /// `file` under the flags; a flag may be a list too: `128,256`.
    pub fn read(file: &Path, flags: &Values) -> Result<Self, TrainError> {
        let text = std::fs::read_to_string(file).map_err(|source| FileError::reading(file, source))?;
        Self::of(file, &text, flags)
    }

    pub fn of(file: &Path, text: &str, flags: &Values) -> Result<Self, TrainError> {
        let axes = Configuration::lists(file, text, flags)?;
        let count = axes
            .iter()
            .try_fold(1usize, |count, (_, values)| count.checked_mul(values.len()));
        let count = count.filter(|count| *count <= MOST_POINTS);
        if axes.is_empty() || count.is_none() {
            let place = file.display().to_string();
            return Err(match count {
                None => TrainError::Value {
                    setting: "grid".to_owned(),
                    value: place,
                    expected: message!(en: "at most {MOST_POINTS} combinations", zh: "最多 {MOST_POINTS} 个组合"),
                },
                Some(_) => TrainError::NoLists { place },
            });
        }
        let flags = match Configuration::written(file, text, flags)?.contains_key("min_history") {
            // What somebody typed counts.
            true => flags.clone(),
            false => same_samples(&axes, flags),
        };
        let mut points = Vec::new();
        let mut output_dir = PathBuf::new();
        for number in 0..count.unwrap_or(0) {
            let values = combination(&axes, number);
            let point = Point::new(file, text, &flags, values)?;
            output_dir.clone_from(&point.grid_dir);
            points.push(point);
        }
        Ok(Self {
            axes,
            points,
            output_dir,
        })
    }
}

/// Windows of different lengths are ranked on the same validation samples: those that the longest can be cut for.
fn same_samples(axes: &[(&'static str, Vec<String>)], flags: &Values) -> Values {
    let mut flags = flags.clone();
    let lengths = axes.iter().find(|(name, _)| *name == "sequence_length");
    let longest =
        lengths.and_then(|(_, values)| values.iter().filter_map(|text| text.parse::<usize>().ok()).max());
    if let Some(longest) = longest {
        flags.insert("min_history", longest.to_string());
    }
    flags
}

fn combination(axes: &[(&'static str, Vec<String>)], mut number: usize) -> Vec<(&'static str, String)> {
    let mut values = Vec::new();
    for (name, choices) in axes.iter().rev() {
        values.push((*name, choices[number % choices.len()].clone()));
        number /= choices.len();
    }
    values.reverse();
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_once() {
        let text = "model:\n  hidden_size: [16, 32]\nsequence_length: [30, 60, 90]\nepochs: 3\ninput_size: [5, 7]\nlabel: [a, b]\noutput_dir: out/grid\ngenerate:\n  kind: stocks\n";
        let flags: Values = [("learning_rate", "0.1, 0.2".to_owned())].into();
        let grid = Grid::of(Path::new("grid.yaml"), text, &flags).unwrap();
        assert_eq!(grid.axes.len(), 3);
        assert_eq!(grid.points.len(), 12);
        let names: std::collections::BTreeSet<_> = grid.points.iter().map(|point| &point.name).collect();
        assert_eq!(names.len(), 12);
        let last = &grid.points[11].configuration(&Values::new()).unwrap().settings;
        assert_eq!((last.hidden_size, last.sequence_length, last.epochs), (32, 90, 3));
        assert!((last.learning_rate - 0.2).abs() < 1e-12);
        assert!(last.output_dir.starts_with("out/grid"));
    }

    #[test]
    fn values_made_of_several_are_tried_whole() {
        let text = "quantiles: [0.1, 0.5, 0.9]\nloss: [mse, quantile]\nclass_weight: [[a=1, b=2], balanced, [a=3]]\n";
        let grid = Grid::of(Path::new("grid.yaml"), text, &Values::new()).unwrap();
        let axes: Vec<(&str, Vec<&str>)> = grid
            .axes
            .iter()
            .map(|(name, values)| (*name, values.iter().map(String::as_str).collect()))
            .collect();
        assert_eq!(
            axes,
            [
                ("class_weight", vec!["a=1,b=2", "balanced", "a=3"]),
                ("loss", vec!["mse", "quantile"])
            ]
        );
        let last = grid.points[5].configuration(&Values::new()).unwrap().settings;
        assert_eq!(last.quantiles, [0.1, 0.5, 0.9]);
        assert_eq!(last.class_weight.classes, [("a".to_owned(), 3.0)]);
    }

    #[test]
    fn a_given_min_history_counts() {
        let history = |text: &str, flags: &[(&'static str, &str)]| {
            let flags: Values = flags
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect();
            let grid = Grid::of(Path::new("grid.yaml"), text, &flags).unwrap();
            grid.points[0]
                .configuration(&Values::new())
                .unwrap()
                .settings
                .min_history
        };
        assert_eq!(history("sequence_length: [30, 60]\n", &[]), 60);
        assert_eq!(history("sequence_length: [30, 60]\nmin_history: 90\n", &[]), 90);
        assert_eq!(
            history("sequence_length: [30, 60]\n", &[("min_history", "40")]),
            40
        );
    }

    #[test]
    fn a_grid_needs_lists_and_whole_values() {
        let of = |text: &str| {
            Grid::of(Path::new("g.yaml"), text, &Values::new())
                .map(|_| ())
                .unwrap_err()
        };
        assert!(matches!(of("epochs: 3\n"), TrainError::NoLists { .. }));
        assert!(matches!(
            of("hidden_size: [16, many]\n"),
            TrainError::Value { .. }
        ));
        let axis = "[1,2,3,4,5,6,7,8,9,10]";
        let text: String = ["hidden_size", "num_layers", "sequence_length", "horizon", "seed"]
            .map(|name| format!("{name}: {axis}\n"))
            .concat();
        assert!(of(&text).to_string().contains("grid"));
    }
}
