//! What "better" means.

use crate::TuneError;
use crate::knobs::PRODUCTS;
use crate::trial::{Measurement, Rate, Settings};
use flatout_core::{Message, message};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Objective {
    SamplesPerSecond,
    /// Samples a joule, by the GPU's energy counter.
    Energy,
    /// Samples for a unit of money, at a price an hour.
    Cost {
        price_an_hour: f64,
    },
}

impl Objective {
    pub fn parse(word: &str, price_an_hour: Option<f64>) -> Result<Self, TuneError> {
        let unknown = || TuneError::Objective {
            word: word.to_owned(),
        };
        match word.trim().to_ascii_lowercase().as_str() {
            "samples/s" | "samples" | "throughput" => Ok(Self::SamplesPerSecond),
            "energy" => Ok(Self::Energy),
            "cost" => match price_an_hour.filter(|price| price.is_finite() && *price > 0.0) {
                Some(price_an_hour) => Ok(Self::Cost { price_an_hour }),
                None => Err(TuneError::NoPrice),
            },
            _ => Err(unknown()),
        }
    }

    /// The measurement in the objective's unit, more is better; `None` where it was not measured.
    pub fn score(self, measured: &Measurement) -> Option<Rate> {
        match self {
            Self::SamplesPerSecond => Some(measured.rate),
            Self::Energy => Some(
                measured
                    .rate
                    .scaled(1.0 / measured.power_w.filter(|power| *power > 0.0)?),
            ),
            Self::Cost { price_an_hour } => Some(measured.rate.scaled(3600.0 / price_an_hour)),
        }
    }

    /// The factor on the objective that a factor on the speed makes, by what was measured before the change. A sample costs a card the same
    /// energy however fast they come, on top of what it takes idle, unless the products become others. `None` where that is not known.
    pub fn predicted(self, speed: f64, changes: &Settings, before: &Measurement) -> Option<f64> {
        if self != Self::Energy {
            return Some(speed);
        }
        let (power_w, idle_w) = before.power_w.zip(before.idle_w)?;
        let same_products = PRODUCTS.iter().all(|key| changes.get(key).is_none());
        let busy_w = (power_w - idle_w).max(0.0);
        // At its power limit a card is as fast as that allows.
        let limit = before.limit_w.filter(|limit| busy_w > 0.0 && *limit > power_w);
        let speed = limit.map_or(speed, |limit| speed.min((limit - idle_w) / busy_w));
        let then_w = idle_w + busy_w * speed;
        (same_products && then_w > 0.0).then(|| speed * power_w / then_w)
    }

    pub fn unit(self, samples: bool) -> Message {
        match (self, samples) {
            (Self::SamplesPerSecond, true) => message!(en: "samples/s", zh: "样本/秒"),
            (Self::SamplesPerSecond, false) => message!(en: "steps/s", zh: "步/秒"),
            (Self::Energy, true) => message!(en: "samples/J", zh: "样本/焦耳"),
            (Self::Energy, false) => message!(en: "steps/J", zh: "步/焦耳"),
            (Self::Cost { .. }, true) => message!(en: "samples per unit of money", zh: "样本/货币单位"),
            (Self::Cost { .. }, false) => message!(en: "steps per unit of money", zh: "步/货币单位"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_objective_scores_in_its_unit() {
        let rate = Rate {
            mean: 100.0,
            low: 90.0,
            high: 110.0,
        };
        let measured = Measurement {
            rate,
            power_w: Some(50.0),
            ..Measurement::default()
        };
        let score = |objective: Objective| objective.score(&measured).map(|score| score.mean);
        assert_eq!(score(Objective::SamplesPerSecond), Some(100.0));
        assert_eq!(score(Objective::Energy), Some(2.0));
        assert_eq!(
            score(Objective::parse("cost", Some(2.0)).unwrap()),
            Some(180_000.0)
        );
        assert_eq!(Objective::Energy.score(&Measurement::default()), None);
    }

    fn settings(key: &str, value: &str) -> Settings {
        [(key.to_owned(), value.to_owned())].into_iter().collect()
    }

    #[test]
    fn energy_grows_less_than_speed() {
        let before = Measurement {
            power_w: Some(211.0),
            idle_w: Some(126.0),
            limit_w: Some(700.0),
            ..Measurement::default()
        };
        let predicted = |speed: f64, changes: &Settings| Objective::Energy.predicted(speed, changes, &before);
        let larger = settings("loader.batch_size", "256");
        // As measured with a CNN on an H200: 3.54 times as fast took 426 W, 1.76 times as many samples a joule.
        let gain = predicted(3.54, &larger).unwrap();
        assert!((gain / 1.76 - 1.0).abs() < 0.02, "{gain}");
        // At 700 W it is 6.75 times as fast, whatever was hoped for.
        let most = 574.0 / 85.0 * 211.0 / 700.0;
        assert!((predicted(10.0, &larger).unwrap() - most).abs() < 1e-9);
        assert_eq!(predicted(2.0, &settings("amp", "bf16")), None);
        let unknown = Objective::Energy.predicted(2.0, &larger, &Measurement::default());
        assert_eq!(unknown, None);
        let speed = Objective::SamplesPerSecond.predicted(2.0, &larger, &Measurement::default());
        assert_eq!(speed, Some(2.0));
    }

    #[test]
    fn words() {
        assert!(Objective::parse("joy", None).is_err());
        assert!(matches!(Objective::parse("cost", None), Err(TuneError::NoPrice)));
        assert_eq!(
            Objective::parse("samples/s", None).unwrap(),
            Objective::SamplesPerSecond
        );
    }
}
