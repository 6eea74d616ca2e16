//! What a trial measured: from the file that the probe writes at its end, or from the record that our own trainer keeps.

use super::power;
use crate::collect::Clock;
use flatout_record::{Record, RunData};
use flatout_tune::trial::{Fed, Measurement, Plan, Rate, Settings, Size, Supply, Variant};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Fewer measured steps than this say nothing.
const LEAST_STEPS: usize = 5;

/// The probe's file.
#[derive(Deserialize)]
struct File {
    steps: u64,
    begin_ns: u64,
    times_ns: Vec<u64>,
    /// Samples since the beginning, after each step.
    samples: Vec<u64>,
    /// Waiting for batches, of all the measured time.
    data_ns: Option<u64>,
    /// Evaluating and saving, of the same.
    aside_ns: Option<u64>,
    #[serde(default)]
    on_pages: Option<f64>,
    #[serde(default)]
    sizes: Vec<Size>,
    #[serde(default)]
    fed: Vec<Fed>,
    #[serde(default)]
    supply: Vec<Supply>,
    #[serde(default)]
    variants: Vec<Variant>,
    losses: Vec<(u64, Option<f64>)>,
    cut: bool,
    ended: bool,
    world: u64,
    memory_bytes: Option<u64>,
}

#[derive(Default)]
pub struct Told {
    /// Steps that the program did at all.
    pub steps: u64,
    /// The trial came to its own end, whatever the program did then.
    pub complete: bool,
    /// Seconds since the measuring began and samples by then, after each step.
    ends: Vec<(f64, Option<u64>)>,
    wait_s: Option<f64>,
    aside_s: Option<f64>,
    on_pages: Option<f64>,
    sizes: Vec<Size>,
    fed: Vec<Fed>,
    supply: Vec<Supply>,
    variants: Vec<Variant>,
    /// The record's second in which a complete measurement ended.
    pub until_s: Option<f64>,
    losses: Vec<(u64, Option<f64>)>,
    cut: bool,
    memory_bytes: Option<u64>,
    power_w: Option<f64>,
    idle_w: Option<f64>,
    limit_w: Option<f64>,
}

impl Told {
    pub fn measurement(self, settings: &Settings) -> Option<Measurement> {
        if self.ends.len() < LEAST_STEPS {
            return None;
        }
        let steps = self.ends.len() as u64;
        let &(seconds, samples) = self.ends.last()?;
        let asked: Option<u64> = settings
            .get("loader.batch_size")
            .and_then(|batch| batch.parse().ok());
        // A program that does not tell its samples, but takes a batch size: that many a step.
        let samples = samples.or_else(|| asked.map(|batch| batch * steps));
        let done = |(index, (seconds, counted)): (usize, &(f64, Option<u64>))| {
            let step = index as f64 + 1.0;
            (
                *seconds,
                counted.map_or_else(
                    || asked.map_or(step, |batch| batch as f64 * step),
                    |counted| counted as f64,
                ),
            )
        };
        let ends: Vec<(f64, f64)> = self.ends.iter().enumerate().map(done).collect();
        Some(Measurement {
            steps,
            samples,
            seconds,
            rate: Rate::of(&ends)?,
            wait_s: self.wait_s,
            aside_s: self.aside_s,
            on_pages: self.on_pages,
            sizes: self.sizes,
            fed: self.fed,
            supply: self.supply,
            variants: self.variants,
            until_s: self.until_s,
            memory_bytes: self.memory_bytes,
            power_w: self.power_w,
            idle_w: self.idle_w,
            limit_w: self.limit_w,
            losses: self.losses,
            cut: self.cut,
            not_in_force: Vec::new(),
            record: PathBuf::new(),
        })
    }
}

pub fn from_probe(folder: &Path, data: &RunData, clock: &Clock) -> Told {
    // The second one is there when steps of other sizes were too much for the program.
    let text = std::fs::read(folder.join("trial-0.json"))
        .or_else(|_| std::fs::read(folder.join("trial-0.early.json")))
        .unwrap_or_default();
    let Ok(file) = serde_json::from_slice::<File>(&text) else {
        return Told {
            steps: data.steps.iter().map(|tick| tick.steps).sum(),
            ..Told::default()
        };
    };
    let seconds = |at: &u64| at.saturating_sub(file.begin_ns) as f64 / 1e9;
    let counted = file.samples.last().is_some_and(|samples| *samples > 0);
    let ends = file
        .times_ns
        .iter()
        .zip(&file.samples)
        .map(|(at, samples)| (seconds(at), counted.then_some(samples * file.world.max(1))));
    let window = (
        clock.seconds(file.begin_ns),
        file.times_ns.last().map_or(0.0, |at| clock.seconds(*at)),
    );
    Told {
        steps: file.steps,
        complete: !file.ended,
        ends: ends.collect(),
        wait_s: file.data_ns.map(|waited| waited as f64 / 1e9),
        on_pages: file.on_pages,
        aside_s: file.aside_ns.map(|aside| aside as f64 / 1e9),
        sizes: file.sizes,
        fed: file.fed,
        supply: file.supply,
        variants: file.variants,
        until_s: (!file.ended).then_some(window.1),
        losses: file.losses,
        cut: file.cut,
        memory_bytes: file.memory_bytes,
        power_w: power::mean(data, window),
        idle_w: power::idle(data),
        limit_w: power::limit(data),
    }
}

/// Steps in the record that our own trainer keeps.
pub fn own_steps(record: &Path) -> u64 {
    Record::open(record).map_or(0, |record| record.steps().map(|tick| tick.steps).sum())
}

/// Whether that record holds as much as the plan wants.
pub fn own_is_enough(record: &Path, plan: &Plan) -> bool {
    let Ok(record) = Record::open(record) else {
        return false;
    };
    let data = RunData {
        steps: record.steps().collect(),
        ..RunData::default()
    };
    let (steps, seconds) = steady(&data).fold((0, 0.0), |(steps, seconds), tick| {
        (steps + tick.steps, seconds + tick.dt)
    });
    (steps >= plan.steps && seconds >= plan.seconds)
        || (seconds >= plan.longest_s && steps >= LEAST_STEPS as u64)
}

/// Its ticks after the first two with steps: they hold the start.
fn steady(data: &RunData) -> impl Iterator<Item = &flatout_record::StepTick> {
    data.steps.iter().filter(|tick| tick.steps > 0).skip(2)
}

/// From the ticks of a record; a tick is one piece.
pub fn from_record(data: &RunData, _plan: &Plan) -> Told {
    let mut told = Told {
        steps: data.steps.iter().map(|tick| tick.steps).sum(),
        ..Told::default()
    };
    let (mut seconds, mut samples) = (0.0, 0);
    let mut seen = 0;
    for tick in &data.steps {
        seen += tick.samples.unwrap_or(0);
        if let Some(loss) = tick.loss {
            told.losses.push((seen, loss.is_finite().then_some(loss)));
        }
    }
    for tick in steady(data) {
        // Steps within a tick lie evenly, as far as is known.
        for step in 1..=tick.steps {
            let part = step as f64 / tick.steps as f64;
            let counted = tick.samples.map(|all| samples + (all as f64 * part) as u64);
            told.ends.push((seconds + tick.dt * part, counted));
        }
        seconds += tick.dt;
        samples += tick.samples.unwrap_or(0);
    }
    told.complete = told.ends.len() >= LEAST_STEPS;
    let begin = steady(data).next().map_or(0.0, |tick| tick.t - tick.dt);
    told.power_w = power::mean(data, (begin, data.steps.last().map_or(0.0, |tick| tick.t)));
    told.idle_w = power::idle(data);
    told.limit_w = power::limit(data);
    told
}

/// Moves our trainer's record from the trial's scratch folder to where the other records lie.
pub fn keep(own: &Path, folder: &Path) -> PathBuf {
    let kept = folder.join("own");
    let moved = std::fs::create_dir_all(&kept).and_then(|()| {
        for entry in std::fs::read_dir(own)?
            .flatten()
            .filter(|entry| entry.path().is_file())
        {
            std::fs::copy(entry.path(), kept.join(entry.file_name()))?;
        }
        Ok(())
    });
    if moved.is_ok() { kept } else { own.to_owned() }
}
