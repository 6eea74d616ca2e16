//! Scores of an evaluation. Predictions stream through; what is kept does not grow with the validation set.

mod binary;
mod classes;
mod regression;

use crate::target::{Target, Task};
pub use classes::best as best_class;

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
                "accuracy" => ("accuracy", "准确率", format!("{:.2}%", value * 100.0)),
                _ => ("AUC", "AUC", format!("{value:.4}")),
            };
            text.en += &format!(", {en} {shown}");
            text.zh += &format!("，{zh} {shown}");
        }
        text
    }
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
    Classes(ClassMeter),
}

impl<'a> Meter<'a> {
    /// `sequence`: predictions have a direction.
    pub fn new(target: &'a Target, sequence: bool) -> Self {
        match target.task {
            Task::Regression => Self::Regression(RegressionMeter::new(sequence), target),
            Task::Binary => Self::Binary(Box::default()),
            Task::Classes => Self::Classes(ClassMeter::default()),
        }
    }

    pub fn add(&mut self, outputs: &[f32], label: Label<'_>) {
        match (self, label) {
            (Self::Regression(meter, target), Label::Real(labels)) => {
                for (column, (&output, &label)) in outputs.iter().zip(labels).enumerate() {
                    meter.add(target.restore(column, output), label);
                }
                meter.end_sample();
            }
            (Self::Binary(meter), Label::Real(labels)) => {
                for (&output, &label) in outputs.iter().zip(labels) {
                    meter.add(output, label > 0.5);
                }
            }
            (Self::Classes(meter), Label::Class(class)) => meter.add(outputs, class),
            _ => {}
        }
    }

    /// `None` without a single sample.
    pub fn scores(&self) -> Option<Scores> {
        match self {
            Self::Regression(meter, _) => meter.scores(),
            Self::Binary(meter) => meter.scores(),
            Self::Classes(meter) => meter.scores(),
        }
    }
}
