//! What is minimized, by the label's kind and the settings.

use super::{Target, Task};
use crate::{Settings, TrainError};
use flatout_core::{Message, message};
use serde::{Deserialize, Serialize};

/// For `--loss`.
pub const LOSSES: &[&str] = &[
    "auto",
    "mse",
    "mae",
    "huber",
    "quantile",
    "bce",
    "cross_entropy",
    "focal",
];

/// A loss other than the usual one of the task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// Squared error, or cross-entropy.
    #[default]
    Plain,
    Absolute,
    /// `delta` in standard deviations of the label.
    Huber {
        delta: f64,
    },
    Quantile,
    /// Cross-entropy times (1 − p_t)^gamma.
    Focal {
        gamma: f64,
    },
    /// Cross-entropy with a label that is not quite certain.
    Smoothed {
        smoothing: f64,
    },
}

/// Puts the losses that the settings name into a target. A loss for all labels has to fit one of them at least, that of a single label
/// has to fit it.
pub(super) fn choose(target: &mut Target, settings: &Settings) -> Result<(), TrainError> {
    if settings.label_smoothing > 0.0 && settings.loss_words().any(|word| word == "focal") {
        return Err(TrainError::Value {
            setting: "label_smoothing".to_owned(),
            value: settings.label_smoothing.to_string(),
            expected: message!(en: "0 with the focal loss", zh: "使用 focal 损失时应为 0"),
        });
    }
    if target.task != Task::Several {
        let word = settings
            .loss_of("")
            .or_else(|| settings.losses.columns.first().map(|(_, word)| word.as_str()));
        return put(target, word.unwrap_or("auto"), settings);
    }
    let all = settings.loss_of("").unwrap_or("auto");
    let mut fits = false;
    for (head, name) in target.heads.iter_mut().zip(&target.names) {
        let own = settings
            .losses
            .columns
            .iter()
            .rev()
            .find(|(known, _)| known == name);
        match own {
            Some((_, word)) => put(head, word, settings)?,
            None if put(head, all, settings).is_ok() => fits = true,
            None => put(head, "auto", settings)?,
        }
    }
    let named = target
        .names
        .iter()
        .all(|name| settings.losses.columns.iter().any(|(known, _)| known == name));
    if !fits && !named {
        return Err(refuse(
            all,
            message!(en: "a loss that fits one of the labels", zh: "与某个标签相符的损失"),
        ));
    }
    Ok(())
}

fn put(target: &mut Target, word: &str, settings: &Settings) -> Result<(), TrainError> {
    let smoothing = settings.label_smoothing;
    let entropy = match smoothing > 0.0 {
        true => Objective::Smoothed { smoothing },
        false => Objective::Plain,
    };
    let gamma = settings.focal_gamma;
    target.objective = match (target.task, word) {
        (Task::Regression, "auto" | "mse") => Objective::Plain,
        (Task::Regression, "mae") => Objective::Absolute,
        (Task::Regression, "huber") => Objective::Huber {
            delta: settings.huber_delta,
        },
        (Task::Regression, "quantile") => {
            target.quantiles.clone_from(&settings.quantiles);
            Objective::Quantile
        }
        (Task::Regression, _) => {
            return Err(refuse(
                word,
                message!(en: "a loss for numeric labels: mse, mae, huber or quantile", zh: "数值标签的损失：mse、mae、huber 或 quantile"),
            ));
        }
        (Task::Classes, "auto" | "cross_entropy")
        | (Task::Binary | Task::Labels, "auto" | "bce" | "cross_entropy") => entropy,
        (Task::Classes | Task::Binary | Task::Labels, "focal") => Objective::Focal { gamma },
        (Task::Classes, _) => {
            return Err(refuse(
                word,
                message!(en: "a loss for classes: cross_entropy or focal", zh: "多类标签的损失：cross_entropy 或 focal"),
            ));
        }
        _ => {
            return Err(refuse(
                word,
                message!(en: "a loss for yes/no labels: bce or focal", zh: "是/否标签的损失：bce 或 focal"),
            ));
        }
    };
    Ok(())
}

fn refuse(word: &str, expected: Message) -> TrainError {
    TrainError::Value {
        setting: "loss".to_owned(),
        value: word.to_owned(),
        expected,
    }
}
