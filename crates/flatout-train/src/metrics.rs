//! Scores of an evaluation. Predictions stream through; what is kept does not grow with the validation set.

mod binary;
mod classes;
mod days;
mod regression;
mod report;
mod select;

use crate::target::{Objective, Target, Task};
pub use classes::best as best_class;
pub use report::{ClassReport, ClassScores};
pub use select::{NAMES, Select};

use binary::BinaryMeter;
use classes::ClassMeter;
use flatout_core::{Message, message};
use regression::RegressionMeter;
use serde::{Deserialize, Serialize};

/// What an evaluation found; what has no meaning for the task is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// What is minimized, without weights, in the label's own units: the mean squared error unless another loss was chosen, or the
    /// cross-entropy in nats.
    pub loss: f64,
    /// Mean squared error, where the loss is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mse: Option<f64>,
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
    /// Of the second of two classes at a probability of one half; of more classes, the mean F1 over the classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recall: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub f1: Option<f64>,
    /// Share of the samples whose class is among the five most probable; more than five classes only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top5_accuracy: Option<f64>,
    /// Share of the labels between the outermost quantiles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f64>,
    pub samples: u64,
}

impl Scores {
    /// Key and value of every score there is, the loss first.
    pub fn figures(&self) -> Vec<(&'static str, f64)> {
        let optional = [
            ("mse", self.mse),
            ("mae", self.mae),
            ("directional_accuracy", self.directional_accuracy),
            ("ic", self.ic),
            ("daily_ic", self.daily_ic),
            ("rank_ic", self.rank_ic),
            ("accuracy", self.accuracy),
            ("top5_accuracy", self.top5_accuracy),
            ("auc", self.auc),
            ("precision", self.precision),
            ("recall", self.recall),
            ("f1", self.f1),
            ("coverage", self.coverage),
        ];
        let present = optional
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        std::iter::once(("loss", self.loss)).chain(present).collect()
    }

    /// One of them, by its name.
    pub fn figure(&self, name: &str) -> Option<f64> {
        let found = self.figures().into_iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value)
    }

    /// The one score that says most of a target among several.
    pub fn headline(&self) -> (Message, String) {
        match (self.mae, self.auc, self.accuracy) {
            (Some(error), ..) => (message!(en: "MAE", zh: "MAE"), format!("{error:.4}")),
            (None, Some(area), _) => (message!(en: "AUC", zh: "AUC"), format!("{area:.4}")),
            (None, None, Some(share)) => (
                message!(en: "accuracy", zh: "准确率"),
                format!("{:.2}%", share * 100.0),
            ),
            (None, None, None) => (message!(en: "loss", zh: "损失"), format!("{:.4}", self.loss)),
        }
    }

    /// `validation loss 0.123, AUC 0.81, …`
    pub fn text(&self) -> Message {
        let text = self.loss_first();
        Message {
            en: format!("validation {}", text.en),
            zh: format!("验证{}", text.zh),
        }
    }

    /// `loss 0.123, AUC 0.81, …`
    pub fn loss_first(&self) -> Message {
        let mut text = Message {
            en: format!("loss {:.5}", self.loss),
            zh: format!("损失 {:.5}", self.loss),
        };
        for (key, value) in self.figures().into_iter().skip(1) {
            let (en, zh, shown) = match key {
                // In the files; a line has room for the F1 that is made of them.
                "precision" | "recall" => continue,
                "mse" => ("MSE", "MSE", format!("{value:.5}")),
                "f1" => ("F1", "F1", format!("{value:.4}")),
                "top5_accuracy" => ("top-5", "top-5", format!("{:.2}%", value * 100.0)),
                "coverage" => ("coverage", "覆盖率", format!("{:.1}%", value * 100.0)),
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

/// The mean of every score over the labels that have it; errors in units of their own are left to the labels.
fn mean(each: &[Scores]) -> Option<Scores> {
    let of = |score: fn(&Scores) -> Option<f64>| {
        let values: Vec<f64> = each.iter().filter_map(score).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let first = each.first()?;
    Some(Scores {
        loss: of(|scores| Some(scores.loss))?,
        accuracy: of(|scores| scores.accuracy),
        auc: of(|scores| scores.auc),
        f1: of(|scores| scores.f1),
        ic: of(|scores| scores.ic),
        daily_ic: of(|scores| scores.daily_ic),
        rank_ic: of(|scores| scores.rank_ic),
        samples: first.samples,
        ..Scores::default()
    })
}

fn huber(error: f64, delta: f64) -> f64 {
    if error.abs() > delta {
        delta * (error.abs() - 0.5 * delta)
    } else {
        0.5 * error * error
    }
}

/// Adds reports of classes to scores as JSON: those of a label among several to its own scores.
pub fn add_reports(scores: &mut serde_json::Value, reports: &[(Option<String>, ClassReport)]) {
    for (label, report) in reports {
        let place = match label {
            Some(label) => &mut scores["targets"][label],
            None => &mut *scores,
        };
        place["classes"] = serde_json::to_value(&report.classes).unwrap_or_default();
        place["confusion"] = serde_json::to_value(&report.confusion).unwrap_or_default();
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
    Binary(Box<BinaryMeter>, &'a Target),
    /// One for each label.
    Labels(Vec<BinaryMeter>, &'a Target),
    Classes(ClassMeter, &'a Target),
    /// One for each head.
    Several(Vec<Meter<'a>>, &'a Target),
}

impl<'a> Meter<'a> {
    /// `sequence`: predictions have a direction.
    pub fn new(target: &'a Target, sequence: bool) -> Self {
        match target.task {
            Task::Regression => Self::Regression(RegressionMeter::new(sequence), target),
            Task::Several => {
                let meters = target.heads.iter().map(|head| Meter::new(head, sequence));
                Self::Several(meters.collect(), target)
            }
            Task::Binary => Self::Binary(Box::default(), target),
            Task::Labels => {
                let meters = target.names.iter().map(|_| BinaryMeter::default());
                Self::Labels(meters.collect(), target)
            }
            Task::Classes => Self::Classes(ClassMeter::default(), target),
        }
    }

    /// `time_us`: when the prediction was made, where that is known.
    pub fn add(&mut self, outputs: &[f32], label: Label<'_>, time_us: Option<i64>) {
        match (self, label) {
            (Self::Regression(meter, target), Label::Real(labels)) => {
                let (width, middle) = (target.quantiles.len().max(1), target.middle());
                for (column, (outputs, &label)) in outputs.chunks_exact(width).zip(labels).enumerate() {
                    let restored = |place: usize| target.restore(column * width + place, outputs[place]);
                    let prediction = restored(middle);
                    if let (&[label], Some(time)) = (labels, time_us) {
                        meter.add_day(time, prediction, label);
                    }
                    let error = f64::from(prediction) - f64::from(label);
                    let loss = match target.objective {
                        Objective::Absolute => error.abs(),
                        Objective::Huber { delta } => huber(error, delta * f64::from(target.scale)),
                        Objective::Quantile => {
                            let each = target.quantiles.iter().enumerate();
                            let pinball = each.map(|(place, quantile)| {
                                let error = f64::from(restored(place)) - f64::from(label);
                                (-quantile * error).max((1.0 - quantile) * error)
                            });
                            pinball.sum::<f64>() / width as f64
                        }
                        _ => error * error,
                    };
                    let inside = restored(0) <= label && label <= restored(width - 1);
                    meter.add(column, prediction, label, loss, inside);
                }
                meter.end_sample();
            }
            (Self::Binary(meter, _), Label::Real(labels)) => {
                for (&output, &label) in outputs.iter().zip(labels) {
                    meter.add(output, label > 0.5);
                }
            }
            (Self::Labels(meters, _), Label::Real(labels)) => {
                for ((meter, &output), &label) in meters.iter_mut().zip(outputs).zip(labels) {
                    meter.add(output, label > 0.5);
                }
            }
            (Self::Classes(meter, _), Label::Class(class)) => meter.add(outputs, class),
            (Self::Several(meters, target), Label::Real(mut labels)) => {
                let mut outputs = outputs;
                for (meter, head) in meters.iter_mut().zip(&target.heads) {
                    let (Some((own, rest)), Some((label, more))) = (
                        outputs.split_at_checked(head.outputs()),
                        labels.split_at_checked(head.columns()),
                    ) else {
                        return;
                    };
                    (outputs, labels) = (rest, more);
                    match (head.task, label) {
                        _ if label.iter().any(|value| !value.is_finite()) => {}
                        (Task::Classes, [class]) => meter.add(own, Label::Class(*class as i32), time_us),
                        _ => meter.add(own, Label::Real(label), time_us),
                    }
                }
            }
            _ => {}
        }
    }

    /// The scores of each target by itself, where there are several.
    pub fn targets(&self) -> Vec<(String, Scores)> {
        match self {
            Self::Regression(meter, target) if target.names.len() > 1 => {
                let columns = meter.columns(target.objective, target.quantiles.len());
                target.names.iter().cloned().zip(columns).collect()
            }
            Self::Several(meters, target) => {
                let each = target.names.iter().zip(meters);
                each.filter_map(|(name, meter)| Some((name.clone(), meter.scores()?)))
                    .collect()
            }
            Self::Labels(meters, target) => {
                let each = target.names.iter().zip(meters);
                each.filter_map(|(name, meter)| Some((name.clone(), meter.scores()?)))
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// The classes of each label that has some; a label has a name where there are several.
    pub fn reports(&self) -> Vec<(Option<String>, ClassReport)> {
        let two = || ["0", "1"].map(str::to_owned).to_vec();
        let of_two = |meter: &BinaryMeter, target: &Target| match target.names.len() {
            2 => ClassReport::of(&target.names, meter.confusion()),
            _ => ClassReport::of(&two(), meter.confusion()),
        };
        let own = match self {
            Self::Regression(..) => None,
            Self::Binary(meter, target) => of_two(meter, target),
            Self::Classes(meter, target) => ClassReport::of(&target.names, meter.confusion()),
            Self::Labels(meters, target) => {
                let each = target.names.iter().zip(meters);
                return each
                    .filter_map(|(name, meter)| {
                        Some((Some(name.clone()), ClassReport::of(&two(), meter.confusion())?))
                    })
                    .collect();
            }
            Self::Several(meters, target) => {
                let each = target.names.iter().zip(meters);
                return each
                    .flat_map(|(name, meter)| {
                        let reports = meter.reports().into_iter();
                        reports.map(|(_, report)| (Some(name.clone()), report))
                    })
                    .collect();
            }
        };
        own.into_iter().map(|report| (None, report)).collect()
    }

    /// `None` without a single sample.
    pub fn scores(&self) -> Option<Scores> {
        match self {
            Self::Regression(meter, target) => meter.scores(target.objective, target.quantiles.len()),
            Self::Several(meters, target) => {
                let each: Vec<Option<Scores>> = meters.iter().map(Meter::scores).collect();
                let heads = target.heads.iter().zip(&each);
                // As the plan adds them up: in standard deviations, by their weights.
                let losses = heads.filter_map(|(head, scores)| {
                    Some(head.weight * scores.as_ref()?.loss / head.loss_scale())
                });
                let loss = losses.sum::<f64>() / target.heads.len() as f64;
                let each: Vec<Scores> = each.into_iter().flatten().collect();
                mean(&each).map(|scores| Scores { loss, ..scores })
            }
            Self::Binary(meter, _) => meter.scores(),
            Self::Labels(meters, _) => {
                let each: Vec<Scores> = meters.iter().filter_map(BinaryMeter::scores).collect();
                mean(&each)
            }
            Self::Classes(meter, _) => meter.scores(),
        }
    }
}
