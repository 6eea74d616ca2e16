//! What is predicted: a number, one of two classes, one of several, or several of these at once; what is minimized; and in which units the
//! plan sees it.

mod objective;

pub use objective::{LOSSES, Objective};

use crate::{Settings, TrainError};
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
    /// Numbers.
    Regression,
    /// Yes or no, by a logit.
    Binary,
    /// Several questions of yes or no at once, by a logit each.
    Labels,
    /// One of several classes.
    Classes,
    /// Several labels of different kinds, each with a target of its own.
    Several,
}

/// All that turns a label into what the plan learns, and its output into what a person asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    pub task: Task,
    /// The columns of a regression, the classes, or the labels.
    pub names: Vec<String>,
    /// A regression learns `(label − mean) / scale`: one scale for all columns, so that errors in equal units count equally.
    pub mean: Vec<f32>,
    pub scale: f32,
    #[serde(default)]
    pub objective: Objective,
    /// Of a regression that predicts quantiles: each column has an output for every one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quantiles: Vec<f64>,
    /// Whether rows have weights.
    #[serde(default)]
    pub weighted: bool,
    /// Of one of several labels: how much its loss counts.
    #[serde(default = "one")]
    pub weight: f64,
    /// Of several labels: the target of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heads: Vec<Self>,
}

fn one() -> f64 {
    1.0
}

impl Target {
    /// Values the model puts out for a sample.
    pub fn outputs(&self) -> usize {
        match self.task {
            Task::Binary => 1,
            Task::Regression => self.names.len() * self.quantiles.len().max(1),
            Task::Several => self.heads.iter().map(Self::outputs).sum(),
            Task::Labels | Task::Classes => self.names.len(),
        }
    }

    /// Columns of the label.
    pub fn columns(&self) -> usize {
        match self.task {
            Task::Binary | Task::Classes => 1,
            Task::Regression | Task::Labels | Task::Several => self.names.len(),
        }
    }

    /// Itself, or the targets of several labels.
    pub fn heads(&self) -> &[Self] {
        match self.task {
            Task::Several => &self.heads,
            _ => std::slice::from_ref(self),
        }
    }

    /// Whether the loss is made of terms with a weight per row; else it is one of the plain ones.
    pub fn has_terms(&self) -> bool {
        let plain = matches!(
            (self.task, self.objective),
            (_, Objective::Plain) | (Task::Regression, Objective::Huber { .. })
        );
        self.weighted || self.task == Task::Several || !plain
    }

    /// Whether numbers are among what is predicted.
    pub fn has_numbers(&self) -> bool {
        self.heads().iter().any(|head| head.task == Task::Regression)
    }

    /// From the plan's loss to the label's own units.
    pub fn loss_scale(&self) -> f64 {
        let scale = f64::from(self.scale);
        match (self.task, self.objective) {
            (Task::Regression, Objective::Absolute | Objective::Quantile) => scale,
            _ => scale * scale,
        }
    }

    /// From the plan's output to the label's own units.
    pub fn restore(&self, output: usize, value: f32) -> f32 {
        let column = output / self.quantiles.len().max(1);
        value * self.scale + self.mean.get(column).copied().unwrap_or(0.0)
    }

    /// Of the outputs of a column, the one that stands for the prediction: the quantile next to the median.
    pub fn middle(&self) -> usize {
        let far = |place: &usize| (self.quantiles[*place] - 0.5).abs();
        let places = 0..self.quantiles.len();
        places
            .min_by(|one, other| far(one).total_cmp(&far(other)))
            .unwrap_or(0)
    }

    fn classes(task: Task, names: Vec<String>) -> Self {
        Self {
            task,
            names,
            mean: Vec::new(),
            scale: 1.0,
            objective: Objective::Plain,
            quantiles: Vec::new(),
            weighted: false,
            weight: 1.0,
            heads: Vec::new(),
        }
    }
}

/// Labels in their own units, for scores.
#[derive(Clone)]
pub enum Labels {
    /// `[rows, columns]`; 0 and 1 for two classes, the number of the class for more.
    Real { values: Arc<Vec<f32>>, columns: usize },
    /// `[rows]`
    Class(Arc<Vec<i32>>),
}

impl Labels {
    fn real(values: Vec<f32>, columns: usize) -> Self {
        Self::Real {
            values: Arc::new(values),
            columns,
        }
    }

    /// The value of a row, a class by its number.
    pub fn value(&self, row: usize, column: usize) -> f32 {
        match self {
            Self::Real { values, columns } => values.get(row * columns + column).copied(),
            Self::Class(classes) => classes.get(row).map(|class| *class as f32),
        }
        .unwrap_or(f32::NAN)
    }

    pub fn rows(&self) -> usize {
        match self {
            Self::Real { values, columns } => values.len() / columns.max(&1),
            Self::Class(classes) => classes.len(),
        }
    }
}

/// Labels as they were read, `[rows, names.len()]`, and which rows are trained on.
pub struct RealLabels<'a> {
    pub values: Vec<f32>,
    pub names: Vec<String>,
    /// Of each, its classes where it is text; the values are then their numbers. Empty where all are numbers.
    pub classes: Vec<Vec<String>>,
    pub training: &'a [u32],
}

impl RealLabels<'_> {
    /// Decides what the labels are, unless the settings say it: only 0 and 1, both there, are two classes; text is classes; anything else
    /// is a regression.
    pub fn decide(self, settings: &Settings) -> Result<(Target, Labels), TrainError> {
        let words = settings.tasks.columns.iter().map(|(name, _)| name);
        let words = words.chain(settings.losses.columns.iter().map(|(name, _)| name));
        let words = words.chain(settings.label_weight.columns.iter().map(|(name, _)| name));
        if let Some(unknown) = words.into_iter().find(|name| !self.names.contains(name)) {
            return Err(no_label(unknown, &self.names));
        }
        let (mut target, labels) = match self.names.len() {
            0 | 1 => self.single(settings)?,
            _ => self.several(settings)?,
        };
        objective::choose(&mut target, settings)?;
        Ok((target, labels))
    }

    fn single(self, settings: &Settings) -> Result<(Target, Labels), TrainError> {
        let name = self.names.first().map_or("", String::as_str);
        let wanted = settings.task_of(name);
        if let Some(names) = self.classes.first().filter(|names| !names.is_empty()) {
            let classes = self.values.iter().map(|value| *value as i32).collect();
            return decide_classes(classes, names.clone(), wanted);
        }
        let (two, both) = self.is_yes_or_no(0);
        match wanted {
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

    fn several(self, settings: &Settings) -> Result<(Target, Labels), TrainError> {
        let columns = self.names.len();
        let mut heads = Vec::with_capacity(columns);
        for column in 0..columns {
            heads.push(self.column(column).single(settings)?.0);
        }
        let all = |task: Task| heads.iter().all(|head| head.task == task);
        let text = self.classes.iter().any(|classes| !classes.is_empty());
        let alike = settings.losses.columns.is_empty() && settings.label_weight.columns.is_empty();
        if all(Task::Regression) && alike {
            return Ok(self.regression());
        }
        if all(Task::Binary) && alike && !text {
            let target = Target::classes(Task::Labels, self.names);
            return Ok((target, Labels::real(self.values, columns)));
        }
        for (head, name) in heads.iter_mut().zip(&self.names) {
            head.weight = settings.label_weight.of(name).unwrap_or(1.0);
        }
        let target = Target {
            heads,
            ..Target::classes(Task::Several, self.names)
        };
        Ok((target, Labels::real(self.values, columns)))
    }

    /// One of the columns by itself.
    fn column(&self, column: usize) -> Self {
        let columns = self.names.len();
        Self {
            values: self
                .values
                .iter()
                .skip(column)
                .step_by(columns)
                .copied()
                .collect(),
            names: vec![self.names[column].clone()],
            classes: self.classes.get(column).cloned().into_iter().collect(),
            training: self.training,
        }
    }

    /// Whether a column has 0 and 1 only, and whether it has both.
    fn is_yes_or_no(&self, column: usize) -> (bool, bool) {
        let columns = self.names.len().max(1);
        let values = || {
            let own = self.values.iter().skip(column).step_by(columns).copied();
            own.filter(|value| value.is_finite())
        };
        let two = values().all(|value| value == 0.0 || value == 1.0);
        let both = two && values().any(|value| value == 0.0) && values().any(|value| value == 1.0);
        (two, both)
    }

    fn binary(self) -> (Target, Labels) {
        let names = vec!["0".to_owned(), "1".to_owned()];
        let target = Target::classes(Task::Binary, names);
        (target, Labels::real(self.values, 1))
    }

    fn classes(self, wanted: &str) -> Result<(Target, Labels), TrainError> {
        let whole =
            |value: &f32| value.is_nan() || (value.fract() == 0.0 && (0.0..MOST_CLASSES).contains(value));
        if self.names.len() != 1 || !self.values.iter().all(whole) {
            return Err(refuse(
                wanted,
                message!(en: "a task that fits the label: classes needs one column of whole numbers from 0, \
                or of text", zh: "与标签相符的任务：classes 需要一列从 0 开始的整数或文本"),
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
        for &row in self.training {
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
            mean: mean.collect(),
            scale: if spread > 1e-12 { spread } else { 1.0 },
            ..Target::classes(Task::Regression, self.names)
        };
        (target, Labels::real(self.values, columns))
    }
}

/// Labels that are classes with names.
pub fn of_classes(
    classes: Vec<i32>,
    names: Vec<String>,
    label: &str,
    settings: &Settings,
) -> Result<(Target, Labels), TrainError> {
    let (mut target, labels) = decide_classes(classes, names, settings.task_of(label))?;
    objective::choose(&mut target, settings)?;
    Ok((target, labels))
}

/// Two classes are a yes-or-no question.
fn decide_classes(
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
            Ok((Target::classes(Task::Binary, names), Labels::real(values, 1)))
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

fn no_label(name: &str, labels: &[String]) -> TrainError {
    let list = labels.join(", ");
    TrainError::Value {
        setting: "label".to_owned(),
        value: name.to_owned(),
        expected: message!(en: "one of the trained labels: {list}", zh: "所学习的标签之一：{list}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(values: &[(&'static str, &str)]) -> Settings {
        Settings::of(
            &values
                .iter()
                .map(|(name, text)| (*name, (*text).to_owned()))
                .collect(),
        )
        .unwrap()
    }

    fn decide(values: &[f32], wanted: &str) -> Result<Target, TrainError> {
        let training: Vec<u32> = (0..values.len() as u32).collect();
        let labels = RealLabels {
            values: values.to_vec(),
            names: vec!["y".to_owned()],
            classes: Vec::new(),
            training: &training,
        };
        Ok(labels.decide(&settings(&[("task", wanted)]))?.0)
    }

    #[test]
    fn infers_the_task_from_the_label() {
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
        assert!(one.to_string().contains("only one class, `a`"), "{one}");
    }

    #[test]
    fn a_regression_is_scaled_on_what_is_trained_on() {
        let labels = RealLabels {
            values: vec![100.0, 1.0, 104.0, 1.0, f32::NAN, 1.0, 9e9, 1.0],
            names: vec!["x".to_owned(), "y".to_owned()],
            classes: Vec::new(),
            training: &[0, 1, 2],
        };
        let (target, _) = labels.decide(&settings(&[])).unwrap();
        assert_eq!(target.mean, [102.0, 1.0]);
        // Variances 4 and 0, mean 2.
        assert!((target.scale - 2f32.sqrt()).abs() < 1e-6);
        assert!((target.restore(0, 1.0) - (102.0 + 2f32.sqrt())).abs() < 1e-4);
        assert!((target.loss_scale() - 2.0).abs() < 1e-6);
    }

    /// Watch time, a click, and a text with three values.
    fn mixed(given: &[(&'static str, &str)]) -> Result<Target, TrainError> {
        let labels = RealLabels {
            values: vec![3.0, 0.0, 2.0, 5.0, 1.0, 0.0, 7.0, 1.0, 1.0],
            names: ["watch", "click", "tab"].map(str::to_owned).to_vec(),
            classes: vec![vec![], vec![], ["a", "b", "c"].map(str::to_owned).to_vec()],
            training: &[0, 1, 2],
        };
        Ok(labels.decide(&settings(given))?.0)
    }

    #[test]
    fn labels_of_several_kinds_have_a_head_each() {
        let target = mixed(&[("loss", "watch=quantile"), ("quantiles", "0.1,0.5,0.9")]).unwrap();
        let tasks: Vec<Task> = target.heads().iter().map(|head| head.task).collect();
        assert_eq!(tasks, [Task::Regression, Task::Binary, Task::Classes]);
        assert_eq!((target.outputs(), target.columns()), (3 + 1 + 3, 3));
        assert_eq!((target.heads[0].mean[0], target.heads[0].middle()), (5.0, 1));
        let binary = mixed(&[("task", "click=regression"), ("label_weight", "click=2")]).unwrap();
        assert_eq!(
            (binary.heads[1].task, binary.heads[1].weight),
            (Task::Regression, 2.0)
        );
    }

    #[test]
    fn a_loss_must_fit_a_label() {
        assert!(mixed(&[("loss", "huber")]).is_ok(), "the number has it");
        for wrong in [
            ("loss", "click=huber"),
            ("loss", "nothing=mae"),
            ("loss", "tab=bce"),
        ] {
            assert!(mixed(&[wrong]).is_err(), "{wrong:?}");
        }
        assert!(mixed(&[("loss", "focal"), ("label_smoothing", "0.1")]).is_err());
        let smooth = mixed(&[("label_smoothing", "0.1")]).unwrap();
        assert_eq!(smooth.heads[0].objective, Objective::Plain);
        assert_eq!(smooth.heads[2].objective, Objective::Smoothed { smoothing: 0.1 });
    }
}
