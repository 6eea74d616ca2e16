//! Scores of an evaluation. Predictions stream through; what is kept does not grow with the validation set.

mod binary;
mod classes;
mod days;
mod regression;
mod select;

use crate::target::{Target, Task};
pub use classes::best as best_class;
pub use select::{NAMES, Select};

use binary::BinaryMeter;
use classes::ClassMeter;
use flatout_core::Message;
use regression::RegressionMeter;
use serde::{Deserialize, Serialize};

/// What an evaluation found; what has no meaning for the task is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// In the label's own units: mean squared error, or cross-entropy in nats.
    pub loss: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mae: Option<f64>,
    /// Share of predictions with the target's sign; sequences only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directional_accuracy: Option<f64>,
    /// Pearson's correlation of prediction and target; sequences only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ic: Option<f64>,
    /// Pearson's correlation over the entities of one day, its mean over the days; sequences with times only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daily_ic: Option<f64>,
    /// The same of the ranks (Spearman).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank_ic: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// Area under the ROC curve; two classes only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auc: Option<f64>,
    pub samples: u64,
}

impl Scores {
    /// Key and value of every score there is, the loss first.
    pub fn figures(&self) -> Vec<(&'static str, f64)> {
        let optional = [
            ("mae", self.mae),
            ("directional_accuracy", self.directional_accuracy),
            ("ic", self.ic),
            ("daily_ic", self.daily_ic),
            ("rank_ic", self.rank_ic),
            ("accuracy", self.accuracy),
            ("auc", self.auc),
        ];
        let present = optional
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        std::iter::once(("loss", self.loss)).chain(present).collect()
    }

    /// `validation loss 0.123, AUC 0.81, …`
    pub fn text(&self) -> Message {
        let mut text = Message {
            en: format!("validation loss {:.5}", self.loss),
            zh: format!("验证损失 {:.5}", self.loss),
        };
        for (key, value) in self.figures().into_iter().skip(1) {
            let (en, zh, shown) = match key {
                "mae" => ("MAE", "MAE", format!("{value:.4}")),
                "directional_accuracy" => ("direction", "方向正确", format!("{:.1}%", value * 100.0)),
                "ic" => ("IC", "IC", format!("{value:.4}")),
                "daily_ic" => ("daily IC", "日度 IC", format!("{value:.4}")),
                "rank_ic" => ("rank IC", "日度 rank IC", format!("{value:.4}")),
                "accuracy" => ("accuracy", "准确率", format!("{:.2}%", value * 100.0)),
                _ => ("AUC", "AUC", format!("{value:.4}")),
            };
            text.en += &format!(", {en} {shown}");
            text.zh += &format!("，{zh} {shown}");
        }
        text
    }
}

/// The mean of every score over several labels.
fn mean(each: &[Scores]) -> Option<Scores> {
    let count = each.len() as f64;
    let of = |score: fn(&Scores) -> Option<f64>| {
        let values: Option<Vec<f64>> = each.iter().map(score).collect();
        values.map(|values| values.iter().sum::<f64>() / count)
    };
    let first = each.first()?;
    Some(Scores {
        loss: of(|scores| Some(scores.loss))?,
        accuracy: of(|scores| scores.accuracy),
        auc: of(|scores| scores.auc),
        samples: first.samples,
        ..Scores::default()
    })
}

/// A sample's label.
#[derive(Clone, Copy)]
pub enum Label<'a> {
    Real(&'a [f32]),
    Class(i32),
}

/// Takes predictions as the plan makes them and labels in their own units.
pub enum Meter<'a> {
    Regression(RegressionMeter, &'a Target),
    Binary(Box<BinaryMeter>),
    /// One for each label.
    Labels(Vec<BinaryMeter>, &'a Target),
    Classes(ClassMeter),
}

impl<'a> Meter<'a> {
    /// `sequence`: predictions have a direction.
    pub fn new(target: &'a Target, sequence: bool) -> Self {
        match target.task {
            Task::Regression => Self::Regression(RegressionMeter::new(sequence), target),
            Task::Binary => Self::Binary(Box::default()),
            Task::Labels => {
                let meters = target.names.iter().map(|_| BinaryMeter::default());
                Self::Labels(meters.collect(), target)
            }
            Task::Classes => Self::Classes(ClassMeter::default()),
        }
    }

    /// `time_us`: when the prediction was made, where that is known.
    pub fn add(&mut self, outputs: &[f32], label: Label<'_>, time_us: Option<i64>) {
        match (self, label) {
            (Self::Regression(meter, target), Label::Real(labels)) => {
                if let (&[output], &[label], Some(time)) = (outputs, labels, time_us) {
                    meter.add_day(time, target.restore(0, output), label);
                }
                for (column, (&output, &label)) in outputs.iter().zip(labels).enumerate() {
                    meter.add(target.restore(column, output), label);
                    meter.add_to_column(column, target.restore(column, output), label);
                }
                meter.end_sample();
            }
            (Self::Binary(meter), Label::Real(labels)) => {
                for (&output, &label) in outputs.iter().zip(labels) {
                    meter.add(output, label > 0.5);
                }
            }
            (Self::Labels(meters, _), Label::Real(labels)) => {
                for ((meter, &output), &label) in meters.iter_mut().zip(outputs).zip(labels) {
                    meter.add(output, label > 0.5);
                }
            }
            (Self::Classes(meter), Label::Class(class)) => meter.add(outputs, class),
            _ => {}
        }
    }

    /// The scores of each target by itself, where there are several.
    pub fn targets(&self) -> Vec<(String, Scores)> {
        match self {
            Self::Regression(meter, target) if target.names.len() > 1 => {
                let each = target.names.iter().cloned().zip(meter.columns());
                each.collect()
            }
            Self::Labels(meters, target) => {
                let each = target.names.iter().zip(meters);
                each.filter_map(|(name, meter)| Some((name.clone(), meter.scores()?)))
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// `None` without a single sample.
    pub fn scores(&self) -> Option<Scores> {
        match self {
            Self::Regression(meter, _) => meter.scores(),
            Self::Binary(meter) => meter.scores(),
            Self::Labels(meters, _) => {
                let each: Vec<Scores> = meters.iter().filter_map(BinaryMeter::scores).collect();
                mean(&each)
            }
            Self::Classes(meter) => meter.scores(),
        }
    }
}
