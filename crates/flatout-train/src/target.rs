//! What is predicted: a number, one of two classes, one of several; and in which units the plan sees it.

use crate::TrainError;
use flatout_core::message;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// For `--task`.
pub const TASKS: &[&str] = &["auto", "regression", "binary", "classes"];
/// More classes than this from a column of numbers are a mistake.
const MOST_CLASSES: f32 = 100_000.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Numbers: mean squared error.
    Regression,
    /// Yes or no: binary cross-entropy of a logit.
    Binary,
    /// Several questions of yes or no at once: binary cross-entropy of a logit each.
    Labels,
    /// One of several classes: cross-entropy.
    Classes,
}

/// All that turns a label into what the plan learns, and its output into what a person asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    pub task: Task,
    /// The columns of a regression, or the classes.
    pub names: Vec<String>,
    /// A regression learns `(label − mean) / scale`: one scale for all columns, so that errors in equal units count equally.
    pub mean: Vec<f32>,
    pub scale: f32,
}

impl Target {
    /// Values the model puts out for a sample.
    pub fn outputs(&self) -> usize {
        match self.task {
            Task::Binary => 1,
            _ => self.names.len(),
        }
    }

    /// From the plan's loss to the label's own units.
    pub fn loss_scale(&self) -> f64 {
        f64::from(self.scale) * f64::from(self.scale)
    }

    /// From the plan's output to the label's own units.
    pub fn restore(&self, column: usize, value: f32) -> f32 {
        value * self.scale + self.mean.get(column).copied().unwrap_or(0.0)
    }

    fn classes(task: Task, names: Vec<String>) -> Self {
        Self {
            task,
            names,
            mean: Vec::new(),
            scale: 1.0,
        }
    }
}

/// Labels in their own units, for scores.
#[derive(Clone)]
pub enum Labels {
    /// `[rows, columns]`; 0 and 1 for two classes.
    Real { values: Arc<Vec<f32>>, columns: usize },
    /// `[rows]`
    Class(Arc<Vec<i32>>),
}

/// Numbers as they were read, `[rows, names.len()]`, and which rows are trained on.
pub struct RealLabels<'a> {
    pub values: Vec<f32>,
    pub names: Vec<String>,
    pub training: &'a mut dyn Iterator<Item = u32>,
}

impl RealLabels<'_> {
    /// Decides what numbers are, unless `wanted` says it: only 0 and 1, both there, are two classes; anything else a regression.
    pub fn decide(self, wanted: &str) -> Result<(Target, Labels), TrainError> {
        let finite = || self.values.iter().copied().filter(|value| value.is_finite());
        let two = self.names.len() == 1 && finite().all(|value| value == 0.0 || value == 1.0);
        let both = two && finite().any(|value| value == 0.0) && finite().any(|value| value == 1.0);
        let several = self.names.len() > 1 && self.has_both();
        match wanted {
            "binary" | "auto" if several => Ok(self.labels()),
            "binary" if !two => Err(refuse(
                wanted,
                message!(en: "a task that fits the label: binary needs one column of 0 and 1, or two classes", zh: "与标签相符的任务：binary 需要一列 0 和 1，或恰好两个类别"),
            )),
            "classes" => self.classes(wanted),
            "binary" => Ok(self.binary()),
            "auto" if both => Ok(self.binary()),
            _ => Ok(self.regression()),
        }
    }

    /// Whether every column has 0 and 1, and nothing else.
    fn has_both(&self) -> bool {
        let columns = self.names.len();
        (0..columns).all(|column| {
            let values = || self.values.iter().skip(column).step_by(columns);
            values().all(|value| *value == 0.0 || *value == 1.0)
                && values().any(|value| *value == 0.0)
                && values().any(|value| *value == 1.0)
        })
    }

    fn labels(self) -> (Target, Labels) {
        let columns = self.names.len();
        let labels = Labels::Real {
            values: Arc::new(self.values),
            columns,
        };
        (Target::classes(Task::Labels, self.names), labels)
    }

    fn binary(self) -> (Target, Labels) {
        let names = vec!["0".to_owned(), "1".to_owned()];
        let labels = Labels::Real {
            values: Arc::new(self.values),
            columns: 1,
        };
        (Target::classes(Task::Binary, names), labels)
    }

    fn classes(self, wanted: &str) -> Result<(Target, Labels), TrainError> {
        let whole =
            |value: &f32| value.is_nan() || (value.fract() == 0.0 && (0.0..MOST_CLASSES).contains(value));
        if self.names.len() != 1 || !self.values.iter().all(whole) {
            return Err(refuse(
                wanted,
                message!(en: "a task that fits the label: classes need one column of whole numbers from 0, or of text", zh: "与标签相符的任务：classes 需要一列从 0 开始的整数或文本"),
            ));
        }
        let classes: Vec<i32> = self.values.iter().map(|value| *value as i32).collect();
        let count = classes.iter().max().map_or(0, |largest| largest + 1);
        let names = (0..count).map(|class| class.to_string()).collect();
        Ok((
            Target::classes(Task::Classes, names),
            Labels::Class(Arc::new(classes)),
        ))
    }

    fn regression(self) -> (Target, Labels) {
        let columns = self.names.len();
        let (mut count, mut sums, mut squares) = (0.0f64, vec![0.0f64; columns], vec![0.0f64; columns]);
        // Around the first label: exact enough for large numbers with a small spread.
        let mut origin: Option<Vec<f64>> = None;
        for row in self.training {
            let Some(values) = self
                .values
                .get(row as usize * columns..(row as usize + 1) * columns)
            else {
                continue;
            };
            if values.iter().any(|value| !value.is_finite()) {
                continue;
            }
            let origin = origin.get_or_insert_with(|| values.iter().map(|&value| f64::from(value)).collect());
            count += 1.0;
            for (column, &value) in values.iter().enumerate() {
                let moved = f64::from(value) - origin[column];
                sums[column] += moved;
                squares[column] += moved * moved;
            }
        }
        let count = count.max(1.0);
        let origin = origin.unwrap_or_else(|| vec![0.0; columns]);
        let mean = (0..columns).map(|column| (origin[column] + sums[column] / count) as f32);
        let variance = |column: usize| squares[column] / count - (sums[column] / count).powi(2);
        let spread = ((0..columns).map(variance).sum::<f64>() / columns.max(1) as f64).sqrt() as f32;
        let target = Target {
            task: Task::Regression,
            mean: mean.collect(),
            scale: if spread > 1e-12 { spread } else { 1.0 },
            names: self.names,
        };
        let labels = Labels::Real {
            values: Arc::new(self.values),
            columns,
        };
        (target, labels)
    }
}

/// Classes with names; two of them are a yes-or-no question.
pub fn decide_classes(
    classes: Vec<i32>,
    names: Vec<String>,
    wanted: &str,
) -> Result<(Target, Labels), TrainError> {
    if names.len() < 2 {
        return Err(TrainError::OneClass {
            class: names.into_iter().next().unwrap_or_default(),
        });
    }
    match wanted {
        "regression" => Err(refuse(
            wanted,
            message!(en: "a task that fits the label: its values are names, not numbers", zh: "与标签相符的任务：标签是名称而不是数值"),
        )),
        "binary" if names.len() != 2 => Err(refuse(
            wanted,
            message!(en: "a task that fits the label: binary needs one column of 0 and 1, or two classes", zh: "与标签相符的任务：binary 需要一列 0 和 1，或恰好两个类别"),
        )),
        "auto" | "binary" if names.len() == 2 => {
            let values = classes.iter().map(|&class| class as f32).collect();
            let labels = Labels::Real {
                values: Arc::new(values),
                columns: 1,
            };
            Ok((Target::classes(Task::Binary, names), labels))
        }
        _ => Ok((
            Target::classes(Task::Classes, names),
            Labels::Class(Arc::new(classes)),
        )),
    }
}

fn refuse(wanted: &str, expected: flatout_core::Message) -> TrainError {
    TrainError::Value {
        setting: "task".to_owned(),
        value: wanted.to_owned(),
        expected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(values: &[f32], wanted: &str) -> Result<Target, TrainError> {
        let labels = RealLabels {
            values: values.to_vec(),
            names: vec!["y".to_owned()],
            training: &mut (0..values.len() as u32),
        };
        Ok(labels.decide(wanted)?.0)
    }

    #[test]
    fn the_label_tells_its_task() {
        assert_eq!(decide(&[0.0, 1.0, 1.0], "auto").unwrap().task, Task::Binary);
        assert_eq!(decide(&[1.0, 1.0], "auto").unwrap().task, Task::Regression);
        assert_eq!(decide(&[0.0, 1.0, 2.0], "auto").unwrap().task, Task::Regression);
        assert_eq!(decide(&[0.0, 1.0], "regression").unwrap().task, Task::Regression);
        let classes = decide(&[0.0, 2.0, 1.0], "classes").unwrap();
        assert_eq!((classes.task, classes.outputs()), (Task::Classes, 3));
        let names = |count: usize| (0..count).map(|name| name.to_string()).collect::<Vec<_>>();
        let task =
            |count, wanted| decide_classes(vec![0], names(count), wanted).map(|(target, _)| target.task);
        assert_eq!(task(2, "auto").unwrap(), Task::Binary);
        assert_eq!(task(2, "classes").unwrap(), Task::Classes);
        assert_eq!(task(5, "auto").unwrap(), Task::Classes);
    }

    #[test]
    fn a_task_that_does_not_fit_is_refused() {
        assert!(decide(&[0.0, 0.5], "binary").is_err());
        assert!(decide(&[0.0, 0.5], "classes").is_err());
        assert!(decide(&[-1.0, 0.0], "classes").is_err());
        assert!(decide_classes(vec![0], vec!["a".into(), "b".into()], "regression").is_err());
        let one = decide_classes(vec![0], vec!["a".into()], "auto").err().unwrap();
        assert!(one.to_string().contains("one class only, `a`"), "{one}");
    }

    #[test]
    fn a_regression_is_scaled_on_what_is_trained_on() {
        let labels = RealLabels {
            values: vec![100.0, 1.0, 104.0, 1.0, f32::NAN, 1.0, 9e9, 1.0],
            names: vec!["x".to_owned(), "y".to_owned()],
            training: &mut (0..3u32),
        };
        let (target, _) = labels.decide("auto").unwrap();
        assert_eq!(target.mean, [102.0, 1.0]);
        // Variances 4 and 0, mean 2.
        assert!((target.scale - 2f32.sqrt()).abs() < 1e-6);
        assert!((target.restore(0, 1.0) - (102.0 + 2f32.sqrt())).abs() < 1e-4);
        assert!((target.loss_scale() - 2.0).abs() < 1e-6);
    }
}
