//! How many samples one update is made of, how many go through the model at once, and the learning rate that goes with them.
//! Here are the rules; `probe` measures, `fitting` makes smaller what does not fit.

pub mod fitting;
mod probe;
mod stored;

use crate::data::TrainingData;
use crate::{Settings, TrainError};
use flatout_core::{Message, message, units};
use serde::{Deserialize, Serialize};

pub use probe::Measured;

/// The batch that `learning_rate` is meant for when the batch size is chosen by measuring.
pub const REFERENCE_BATCH: usize = 512;
/// Fewer updates an epoch learn less from the same samples, however fast they are.
const FEWEST_STEPS_AN_EPOCH: usize = 200;
/// A smaller batch is taken when it is at most this much slower than the best: it learns more from each sample.
const TOLERANCE_RATIO: f64 = 0.03;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// Samples in one update.
    pub effective: usize,
    /// Samples that go through the model at once.
    pub micro: usize,
    /// What the configured learning rate is multiplied by.
    pub rate_factor: f64,
}

impl Batch {
    /// Micro-batches in one update.
    pub fn parts(&self) -> usize {
        self.effective.div_ceil(self.micro.max(1)).max(1)
    }

    /// The next one to try when this does not fit; `None` when single samples do not fit.
    pub fn halved(self) -> Option<Self> {
        let micro = self.effective.div_ceil(self.parts() * 2);
        (micro < self.micro).then_some(Self { micro, ..self })
    }
}

/// The batch of a phase, with what there is to say about it.
pub fn decide(
    settings: &Settings,
    data: &TrainingData,
    phase: &str,
) -> Result<(Batch, Vec<Message>), TrainError> {
    let samples = data.train.len().max(1);
    let parts = settings.gradient_accumulation_steps;
    if let Some(size) = settings.batch_size {
        return Ok(given(size, parts, samples));
    }
    if settings.naive {
        // A first script measures nothing.
        return Ok(given(REFERENCE_BATCH, parts, samples));
    }
    if settings.deterministic
        && let Some(batch) = stored::load(settings, phase, samples)
    {
        let size = batch.micro;
        let note = message!(en: "batch size {size}: measured in the previous run", zh: "batch {size}：沿用上次运行的实测结果");
        return Ok((batch, vec![note]));
    }
    let largest = largest(samples, parts);
    let measured = probe::measure(settings, data, largest)?;
    let chosen = choose(&measured.sizes);
    // Where not even the first one fits, the ladder makes it smaller, or says what would fit.
    let size = chosen.map_or(largest.min(probe::FIRST_ON_CPU), |chosen| chosen.size);
    let (mut batch, _) = given(size, parts, samples);
    batch.rate_factor = rate_factor(settings, batch.effective);
    stored::save(settings, phase, samples, batch)?;
    let steps = (samples / (largest * parts)).clamp(1, FEWEST_STEPS_AN_EPOCH);
    let notes = chosen.map(|chosen| told(chosen, &measured, largest, steps));
    Ok((
        batch,
        notes.into_iter().chain(rate_told(settings, batch)).collect(),
    ))
}

/// A size that was asked for; the learning rate stays.
fn given(size: usize, parts: usize, samples: usize) -> (Batch, Vec<Message>) {
    let wanted = size.saturating_mul(parts);
    let effective = wanted.min(samples);
    let batch = Batch {
        effective,
        micro: size.min(effective),
        rate_factor: 1.0,
    };
    let note = (effective < wanted).then(|| {
        message!(
            en: "batch size {wanted} exceeds the {samples} training samples: each epoch is one step with all \
            of them",
            zh: "batch {wanted} 超过训练样本数 {samples}：每轮只有一步，使用全部样本"
        )
    });
    (batch, note.into_iter().collect())
}

/// The smallest size within the tolerance of the best.
fn choose(measured: &[Measured]) -> Option<&Measured> {
    let best = measured.iter().map(|one| one.samples_s).fold(0.0, f64::max);
    let enough = best * (1.0 - TOLERANCE_RATIO);
    measured
        .iter()
        .filter(|one| one.samples_s >= enough)
        .min_by_key(|one| one.size)
}

/// Adam's steps are as long as their rate whatever the batch, and their noise falls with the square root of the batch; SGD's
/// are means over it. Hence the square root for the one and the plain ratio for the other.
fn rate_factor(settings: &Settings, effective: usize) -> f64 {
    let ratio = effective as f64 / REFERENCE_BATCH as f64;
    match settings.optimizer.as_str() {
        _ if settings.keep_lr => 1.0,
        "sgd" => ratio,
        _ => ratio.sqrt(),
    }
}

/// As large as leaves enough steps per epoch; of few samples no less than what a batch's own mean makes sense of.
fn largest(samples: usize, parts: usize) -> usize {
    let by_steps = samples / (FEWEST_STEPS_AN_EPOCH * parts);
    largest_power_of_two(by_steps.max(probe::SMALLEST).min(samples))
}

fn largest_power_of_two(limit: usize) -> usize {
    1 << limit.max(1).ilog2()
}

fn told(chosen: &Measured, measured: &probe::Measurements, largest: usize, steps: usize) -> Message {
    let (size, rate) = (chosen.size, units::count(chosen.samples_s));
    let best = measured
        .sizes
        .iter()
        .max_by(|a, b| a.samples_s.total_cmp(&b.samples_s));
    let (best_size, best_rate) = best.map_or((size, chosen.samples_s), |best| (best.size, best.samples_s));
    let (best_rate, time) = (units::count(best_rate), units::duration(measured.seconds));
    let tried: Vec<String> = measured.sizes.iter().map(|one| one.size.to_string()).collect();
    let tried = tried.join(", ");
    message!(
        en: "chose batch size {size}: {rate} samples/s, the smallest within 3% of the best ({best_rate} at \
        {best_size}); tried {tried} in {time}; limit {largest}, to keep {steps} steps per epoch",
        zh: "自动选择 batch {size}：{rate} 样本/秒，是与最快（{best_size} 时 {best_rate}）相差 3% 以内的最小值；试了 {tried}，用时 {time}；上限 {largest}，以保证每轮 {steps} 步"
    )
}

fn rate_told(settings: &Settings, batch: Batch) -> Option<Message> {
    if settings.keep_lr || batch.effective == REFERENCE_BATCH {
        return None;
    }
    let (given, size) = (settings.learning_rate, batch.effective);
    let scaled = format!("{:.2e}", given * batch.rate_factor);
    let rule = if settings.optimizer == "sgd" {
        "B/512"
    } else {
        "sqrt(B/512)"
    };
    Some(message!(
        en: "learning rate {given} is for batch size 512: scaled to {scaled} for {size} (times {rule}; \
        --keep-lr turns this off)",
        zh: "学习率 {given} 对应 batch 512：batch {size} 使用 {scaled}（乘以 {rule}；--keep-lr 则不缩放）"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Values;

    fn measured(sizes: &[(usize, f64)]) -> Vec<Measured> {
        let one = |&(size, samples_s): &(usize, f64)| Measured { size, samples_s };
        sizes.iter().map(one).collect()
    }

    #[test]
    fn the_smallest_that_is_nearly_the_best() {
        let sizes = measured(&[
            (32, 500.0),
            (64, 900.0),
            (128, 971.0),
            (256, 1000.0),
            (512, 990.0),
        ]);
        assert_eq!(choose(&sizes).unwrap().size, 128);
        assert!(choose(&[]).is_none());
    }

    #[test]
    fn halves_keep_the_samples_of_an_update() {
        let mut batch = Batch {
            effective: 100,
            micro: 100,
            rate_factor: 1.0,
        };
        let mut parts = Vec::new();
        while let Some(smaller) = batch.halved() {
            batch = smaller;
            parts.push((batch.micro, batch.parts()));
        }
        assert_eq!(
            parts,
            [(50, 2), (25, 4), (13, 8), (7, 15), (4, 25), (2, 50), (1, 100)]
        );
    }

    #[test]
    fn few_samples_still_make_a_batch() {
        assert_eq!((largest(100_000, 1), largest(100_000, 4)), (256, 64));
        assert_eq!(
            (largest(200, 1), largest(200, 4), largest(5, 1), largest(1, 1)),
            (8, 8, 4, 1)
        );
    }

    #[test]
    fn the_rate_goes_with_the_batch() {
        let settings = |more: &[(&'static str, &str)]| {
            let values: Values = more
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect();
            Settings::of(&values).unwrap()
        };
        assert!((rate_factor(&settings(&[]), 2048) - 2.0).abs() < 1e-12);
        assert!((rate_factor(&settings(&[("optimizer", "sgd")]), 2048) - 4.0).abs() < 1e-12);
        assert!((rate_factor(&settings(&[("keep_lr", "true")]), 2048) - 1.0).abs() < 1e-12);
        assert_eq!([1, 5, 64, 1000].map(largest_power_of_two), [1, 4, 64, 512]);
        let (batch, notes) = given(512, 2, 300);
        assert_eq!(
            (batch.effective, batch.micro, batch.parts(), notes.len()),
            (300, 300, 1, 1)
        );
    }
}
