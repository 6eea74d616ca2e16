//! One written value to one of its kind, or an error that says what was expected.

use super::{Amp, ClassWeight, Kind, PerColumn, Values, find};
use crate::TrainError;
use crate::metrics::Select;
use flatout_core::{Message, message};
use flatout_data::load::policies;
use std::path::PathBuf;

/// The values of a configuration; absent ones are the defaults.
pub(super) struct Read<'a> {
    pub values: &'a Values,
}

impl Read<'_> {
    pub fn raw(&self, name: &str) -> String {
        let default = || {
            find(name)
                .map(|setting| setting.default.to_owned())
                .unwrap_or_default()
        };
        self.values.get(name).cloned().unwrap_or_else(default)
    }

    pub fn text(&self, name: &str) -> Option<String> {
        Some(self.raw(name)).filter(|text| !text.is_empty())
    }

    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.text(name).map(PathBuf::from)
    }

    pub fn refuse(&self, name: &str, expected: Message) -> TrainError {
        TrainError::Value {
            setting: name.to_owned(),
            value: self.raw(name),
            expected,
        }
    }

    pub fn count(&self, name: &str) -> Result<usize, TrainError> {
        self.count_from(0, name)
    }

    pub fn positive(&self, name: &str) -> Result<usize, TrainError> {
        self.count_from(1, name)
    }

    fn count_from(&self, least: usize, name: &str) -> Result<usize, TrainError> {
        let count = self.raw(name).replace('_', "").parse().ok();
        count.filter(|count| *count >= least).ok_or_else(|| {
            self.refuse(
                name,
                message!(en: "a whole number, {least} or more", zh: "不小于 {least} 的整数"),
            )
        })
    }

    pub fn within(&self, name: &str, low: f64, high: f64) -> Result<f64, TrainError> {
        let value: Option<f64> = self.raw(name).parse().ok();
        let refuse = || {
            self.refuse(
                name,
                message!(en: "a number from {low} to {high}", zh: "{low} 到 {high} 之间的数"),
            )
        };
        value
            .filter(|value| (low..=high).contains(value))
            .ok_or_else(refuse)
    }

    /// `5`, `user_id=3,video_id=10`: a number for all columns, numbers for single ones.
    pub fn per_column(&self, name: &str) -> Result<PerColumn, TrainError> {
        let raw = self.raw(name);
        let mut found = PerColumn::default();
        for word in policies::words(&raw) {
            let refused = || {
                self.refuse(
                    name,
                    message!(en: "a whole number, or COLUMN=N", zh: "整数，或 列名=N"),
                )
            };
            let (column, number) = policies::column_and_word(word).ok_or_else(refused)?;
            let number = number.replace('_', "").parse().map_err(|_| refused())?;
            match column {
                Some(column) => found.columns.push((column, number)),
                None => found.all = Some(number),
            }
        }
        Ok(found)
    }

    /// `binary`, `watch=regression`: a word for all columns, words for single ones.
    pub fn words_per_column(&self, name: &str, allowed: &[&str]) -> Result<PerColumn<String>, TrainError> {
        let list = allowed.join(", ");
        let refused = || {
            self.refuse(
                name,
                message!(en: "one of {list}, or COLUMN=ONE of them", zh: "以下之一：{list}，或 列名=其一"),
            )
        };
        let mut found = PerColumn::default();
        for word in policies::words(&self.raw(name)) {
            let (column, word) = policies::column_and_word(word).ok_or_else(refused)?;
            let word = word.to_ascii_lowercase().replace('-', "_");
            if !allowed.contains(&word.as_str()) {
                return Err(refused());
            }
            match column {
                Some(column) => found.columns.push((column, word)),
                // Two for all contradict each other.
                None if found.all.is_some() => return Err(refused()),
                None => found.all = Some(word),
            }
        }
        Ok(found)
    }

    /// `like=3,share=10`.
    pub fn weights(&self, name: &str) -> Result<PerColumn<f64>, TrainError> {
        let refused = || {
            self.refuse(
                name,
                message!(en: "COLUMN=WEIGHT with a weight above 0", zh: "列名=权重，权重大于 0"),
            )
        };
        let mut found = PerColumn::default();
        for word in policies::words(&self.raw(name)) {
            let pair = policies::column_and_word(word).ok_or_else(refused)?;
            let (Some(column), Some(weight)) = (pair.0, weight(pair.1).filter(|weight| *weight > 0.0)) else {
                return Err(refused());
            };
            found.columns.push((column, weight));
        }
        Ok(found)
    }

    /// `balanced`, `1=5`, `like.1=5`.
    pub fn class_weight(&self, name: &str) -> Result<ClassWeight, TrainError> {
        let refused = || {
            self.refuse(name, message!(en: "balanced, or CLASS=WEIGHT with a weight of 0 or more", zh: "balanced，或 类别=权重，权重不小于 0"))
        };
        let mut found = ClassWeight::default();
        for word in policies::words(&self.raw(name)) {
            let (class, word) = policies::column_and_word(word).ok_or_else(refused)?;
            match class {
                Some(class) => found.classes.push((class, weight(word).ok_or_else(refused)?)),
                None if ["balanced", "none"].contains(&word) => found.balanced = word == "balanced",
                None => return Err(refused()),
            }
        }
        Ok(found)
    }

    /// `0.1,0.5,0.9`, rising.
    pub fn quantiles(&self, name: &str) -> Result<Vec<f64>, TrainError> {
        let text = self.raw(name);
        let numbers = text.trim_matches(['[', ']', '(', ')']).split(',');
        let numbers: Option<Vec<f64>> = numbers.map(|number| number.trim().parse().ok()).collect();
        let inside = |numbers: &Vec<f64>| numbers.iter().all(|number| *number > 0.0 && *number < 1.0);
        let rising = |numbers: &Vec<f64>| numbers.is_sorted_by(|one, next| one < next);
        let fits = numbers.filter(|numbers| !numbers.is_empty() && inside(numbers) && rising(numbers));
        fits.ok_or_else(|| {
            self.refuse(
                name,
                message!(en: "increasing numbers between 0 and 1, such as \
        0.1,0.5,0.9", zh: "0 与 1 之间递增的数，例如 0.1,0.5,0.9"),
            )
        })
    }

    /// `0.9,0.999` or `[0.9, 0.999]`.
    pub fn betas(&self, name: &str) -> Result<(f64, f64), TrainError> {
        let text = self.raw(name);
        let numbers = text.trim_matches(['[', ']', '(', ')']).split(',');
        let numbers: Vec<Option<f64>> = numbers.map(|number| number.trim().parse().ok()).collect();
        match numbers[..] {
            [Some(first), Some(second)] if [first, second].iter().all(|beta| (0.0..1.0).contains(beta)) => {
                Ok((first, second))
            }
            _ => Err(self.refuse(
                name,
                message!(en: "two numbers from 0 to 1, such as 0.9,0.999", zh: "两个 0 到 1 之间的数，例如 0.9,0.999"),
            )),
        }
    }

    pub fn flag(&self, name: &str) -> Result<bool, TrainError> {
        match self.raw(name).to_ascii_lowercase().as_str() {
            "true" | "on" | "yes" | "1" => Ok(true),
            "false" | "off" | "no" | "0" => Ok(false),
            _ => Err(self.refuse(name, message!(en: "true or false", zh: "true 或 false"))),
        }
    }

    /// `8GiB`, `512 MB`, `1e9`.
    pub fn bytes(&self, name: &str) -> Result<Option<u64>, TrainError> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let end = text
            .find(|c: char| c.is_ascii_alphabetic() && c != 'e')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let scale = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1.0,
            "k" | "kib" => 1024.0,
            "m" | "mib" => 1_048_576.0,
            "g" | "gib" => 1_073_741_824.0,
            "kb" => 1e3,
            "mb" => 1e6,
            "gb" => 1e9,
            _ => f64::NAN,
        };
        let bytes = number.trim().parse::<f64>().unwrap_or(f64::NAN) * scale;
        if bytes.is_finite() && bytes >= 1.0 {
            return Ok(Some(bytes as u64));
        }
        Err(self.refuse(
            name,
            message!(en: "a size such as 8GiB or 512MiB", zh: "大小，例如 8GiB 或 512MiB"),
        ))
    }

    /// `2024-05-01`, `2024-05-01 09:30:00`, or seconds, milliseconds … since 1970.
    pub fn instant(&self, name: &str) -> Result<Option<i64>, TrainError> {
        let instant = |text: String| {
            flatout_data::time::parse_any_us(text.trim().as_bytes()).ok_or_else(|| {
                self.refuse(
                    name,
                    message!(en: "a date or time such as 2024-05-01", zh: "日期或时间，例如 2024-05-01"),
                )
            })
        };
        self.text(name).map(instant).transpose()
    }

    /// A date after `validation_from`.
    pub fn test_from(&self, name: &str) -> Result<Option<i64>, TrainError> {
        let Some(from) = self.instant(name)? else {
            return Ok(None);
        };
        match self.instant("validation_from")? {
            Some(validation) if validation < from => Ok(Some(from)),
            _ => Err(self.refuse(
                name,
                message!(en: "a date after validation_from", zh: "晚于 validation_from 的日期"),
            )),
        }
    }

    pub fn choice(&self, name: &str) -> Result<String, TrainError> {
        let (text, setting) = (self.raw(name).to_ascii_lowercase(), find(name));
        let Some(Kind::Choice(allowed)) = setting.map(|setting| setting.kind) else {
            return Ok(text);
        };
        if allowed.contains(&text.as_str()) {
            return Ok(text);
        }
        let list = allowed.join(", ");
        Err(self.refuse(name, message!(en: "one of {list}", zh: "以下之一：{list}")))
    }

    /// `auc`, or `is_click.auc`.
    pub fn select(&self, name: &str) -> Result<Select, TrainError> {
        let list = crate::metrics::NAMES.join(", ");
        Select::parse(&self.raw(name)).ok_or_else(|| {
            self.refuse(
                name,
                message!(en: "one of {list}, or LABEL.SCORE with one of them", zh: "以下之一：{list}，或 标签.其一"),
            )
        })
    }

    pub fn channels(&self, name: &str) -> Result<usize, TrainError> {
        let allowed = |count: &usize| [1, 3].contains(count);
        Some(self.count(name)?)
            .filter(allowed)
            .ok_or_else(|| self.refuse(name, message!(en: "1 or 3", zh: "1 或 3")))
    }

    /// `512,256`, `512x256` or `128` for a square.
    pub fn size(&self, name: &str) -> Result<Option<(usize, usize)>, TrainError> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let refuse = || {
            let expected = message!(en: "one or two whole numbers, 1 or more: WIDTH,HEIGHT", zh: "一个或两个正整数：宽,高");
            self.refuse(name, expected)
        };
        let sides = text.split([',', 'x', '×']).map(|side| side.trim().parse());
        let sides: Vec<usize> = sides.collect::<Result<_, _>>().map_err(|_| refuse())?;
        match sides.as_slice() {
            [side] if *side > 0 => Ok(Some((*side, *side))),
            [width, height] if *width > 0 && *height > 0 => Ok(Some((*width, *height))),
            _ => Err(refuse()),
        }
    }

    pub fn amp(&self, name: &str) -> Result<Amp, TrainError> {
        match self.raw(name).to_ascii_lowercase().as_str() {
            "true" | "on" | "yes" | "1" | "bf16" | "bfloat16" => Ok(Amp::Bf16),
            "fp16" | "f16" | "float16" | "half" => Ok(Amp::Fp16),
            "tf32" => Ok(Amp::Tf32),
            "false" | "off" | "no" | "0" | "none" | "fp32" | "f32" => Ok(Amp::Off),
            _ => Err(self.refuse(name, message!(en: "bf16, fp16, tf32, off, true or false", zh: "bf16、fp16、tf32、off、true 或 false"))),
        }
    }
}

/// A finite number, 0 or more.
fn weight(text: &str) -> Option<f64> {
    let weight: f64 = text.parse().ok()?;
    (weight.is_finite() && weight >= 0.0).then_some(weight)
}
