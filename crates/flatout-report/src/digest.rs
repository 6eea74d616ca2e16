//! A record boiled down to what is shown of it: the headline, the findings, charts of a bounded size, tables. Report and
//! comparison both start here. Nothing is judged: figures are measured, findings come from the rules.

pub mod charts;
pub mod checklist;
pub mod clean;
pub mod figures;
pub mod flame;
pub mod marks;
pub mod processes;
pub mod series;
pub mod thin;

use crate::ranks::Ranks;
use charts::Chart;
use checklist::Item;
use clean::{Ascending, Defect};
use figures::Figure;
use flatout_core::histogram::Histogram;
use flatout_diagnose::account::over_time::OverTime;
use flatout_diagnose::analysis::loaders::Loader;
use flatout_diagnose::verdict::{Gatherer, Verdict};
use flatout_diagnose::{Analysis, Diagnosis};
use flatout_record::{Fact, Record, RunData, RunInfo, Sample, StepTick, StepTimeline};
use marks::Marks;
use processes::ProcessRow;

/// Everything that is shown of one run.
#[derive(Debug)]
pub struct Digest {
    pub info: RunInfo,
    /// How long the record is, in seconds; `None` for an empty one.
    pub length_s: Option<f64>,
    pub figures: Vec<Figure>,
    pub diagnosis: Diagnosis,
    pub verdict: Verdict,
    /// Wall times from step to step, in the steady part.
    pub step_hist: Histogram,
    pub charts: Vec<Chart>,
    pub marks: Marks,
    pub loaders: Vec<Loader>,
    pub processes: Vec<ProcessRow>,
    /// The last fact of each key and scope.
    pub facts: Vec<Fact>,
    pub checklist: Vec<Item>,
    /// Optimizer steps and samples of the whole run, with the loss read at the time: for comparing at equal samples.
    pub learning: Vec<LossPoint>,
    /// What is wrong with the record itself.
    pub defects: Vec<Defect>,
    /// Whether training steps were seen at all.
    pub has_steps: bool,
    /// What the training thread did as the run went on.
    pub over_time: Option<OverTime>,
    /// A step event by event: the last one that was kept.
    pub timeline: Option<StepTimeline>,
    /// The other ranks of its job beside it.
    pub ranks: Ranks,
    /// The run is known to go on; a record alone does not tell that from a kill.
    pub is_running: bool,
}

/// The loss after so many samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossPoint {
    pub samples: f64,
    pub loss: f64,
}

impl Digest {
    /// Reads a record line by line, samples beside steps: a day of seconds takes no more memory than an hour.
    pub fn read(record: &Record) -> Self {
        let mut data = RunData {
            info: record.info.clone(),
            profile: record.profile(),
            ..RunData::default()
        };
        let info = &record.info;
        let (samples, steps) = std::thread::scope(|scope| {
            let steps = scope.spawn(|| {
                let mut items = record.steps();
                (StepReading::of(info, items.by_ref()), items.skipped)
            });
            let mut items = record.samples();
            let samples = (SampleReading::of(info, items.by_ref()), items.skipped);
            let steps = steps
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (samples, steps)
        });
        data.skipped = [samples.1, steps.1].concat();
        let mut events = record.events();
        data.events = events.by_ref().filter(|event| clean::placed(event.t)).collect();
        data.skipped.append(&mut events.skipped);
        let mut facts = record.facts();
        data.facts = facts.by_ref().collect();
        data.skipped.append(&mut facts.skipped);
        data.stacks = record.stacks().collect();
        data.lines = record.lines().collect();
        data.windows = record.windows().collect();
        data.timelines = record.timelines().collect();
        data.ranks = record.load_ranks();
        let mut digest = Self::from_parts(data, samples.0, steps.0);
        digest.ranks = Ranks::beside(record).as_diagnosed(digest.diagnosis.ranks.as_ref());
        digest.timeline = record.timelines().filter(|timeline| timeline.us > 0.0).last();
        digest
    }

    /// The same of a record that is in memory.
    pub fn of(mut data: RunData) -> Self {
        let samples = SampleReading::of(&data.info, std::mem::take(&mut data.samples).into_iter());
        let steps = StepReading::of(&data.info, std::mem::take(&mut data.steps).into_iter());
        data.events.retain(|event| clean::placed(event.t));
        Self::from_parts(data, samples, steps)
    }

    /// `data` holds everything but samples and steps.
    fn from_parts(mut data: RunData, samples: SampleReading, steps: StepReading) -> Self {
        let every = samples.kept.every;
        data.samples = samples.kept.kept;
        data.steps = steps.kept.done();
        let defects = clean::defects(&data, (samples.times.dropped, steps.times.dropped), every);
        let analysis = Analysis::new(&data);
        let mut diagnosis = flatout_diagnose::conclude(&analysis);
        let verdict = samples.verdict.verdict();
        // Of every sample, as `replay` shows it; the rules saw some.
        diagnosis.monitor = diagnosis.monitor.map(|_| verdict.clone());
        Self {
            length_s: clean::length_s(&data),
            figures: figures::of(&analysis),
            verdict,
            step_hist: analysis
                .window
                .as_ref()
                .map(|window| window.step_hist.clone())
                .unwrap_or_default(),
            charts: samples.charts.with(steps.charts).done(),
            marks: Marks::of(&data.events),
            loaders: analysis.loaders.clone(),
            processes: samples.processes.done(&data.events),
            facts: last_facts(&data.facts),
            checklist: checklist::of(&analysis, &diagnosis.findings),
            learning: steps.learning,
            has_steps: data.steps.iter().any(|tick| tick.steps > 0),
            over_time: OverTime::new(&data),
            timeline: None,
            diagnosis,
            defects,
            ranks: Ranks::default(),
            is_running: false,
            info: data.info,
        }
    }

    /// Takes back what was said about the missing end.
    pub fn mark_running(&mut self) {
        self.is_running = true;
        self.defects.retain(|defect| !defect.is_missing_end);
    }

    pub fn figure(&self, key: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.key == key)
    }
}

fn last_facts(facts: &[Fact]) -> Vec<Fact> {
    let mut last = std::collections::BTreeMap::new();
    for fact in facts {
        last.insert((fact.scope.clone(), fact.key.clone()), fact);
    }
    last.into_values().cloned().collect()
}

/// What is gathered while the samples go by.
struct SampleReading {
    times: Ascending,
    charts: charts::Builder,
    processes: processes::Builder,
    verdict: Gatherer,
    kept: thin::Samples,
}

impl SampleReading {
    fn of(info: &RunInfo, samples: impl Iterator<Item = Sample>) -> Self {
        let mut reading = Self {
            times: Ascending::default(),
            charts: charts::Builder::new(info),
            processes: processes::Builder::default(),
            verdict: Gatherer::new(info),
            kept: thin::Samples::default(),
        };
        for sample in samples {
            if reading.times.take(sample.t) {
                reading.charts.sample(&sample);
                reading.processes.sample(&sample);
                reading.verdict.add(&sample);
                reading.kept.push(sample);
            }
        }
        reading
    }
}

/// What is gathered while the step lines go by.
struct StepReading {
    times: Ascending,
    charts: charts::Builder,
    kept: thin::Steps,
    learning: Vec<LossPoint>,
}

impl StepReading {
    fn of(info: &RunInfo, ticks: impl Iterator<Item = StepTick>) -> Self {
        let mut reading = Self {
            times: Ascending::default(),
            charts: charts::Builder::new(info),
            kept: thin::Steps::default(),
            learning: Vec::new(),
        };
        let mut samples = 0.0;
        for tick in ticks {
            if !reading.times.take(tick.t) {
                continue;
            }
            reading.charts.step(&tick);
            samples += tick.samples.unwrap_or(0) as f64;
            let loss = tick.loss.filter(|loss| loss.is_finite());
            if let (Some(loss), Some(1..)) = (loss, tick.samples) {
                reading.learning.push(LossPoint { samples, loss });
            }
            reading.kept.push(tick);
        }
        reading
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn reads_everything_that_the_diagnosis_rests_on() {
        let lines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../faults/lines");
        for name in ["point_sets/record", "point_sets/record-gpu"] {
            let record = Record::open(&lines.join(name)).unwrap();
            let digest = Digest::read(&record);
            let whole = flatout_diagnose::diagnose(&record.load());
            let first =
                |found: &Diagnosis| (found.findings[0].rule.clone(), found.findings[0].places.clone());
            assert_eq!(first(&digest.diagnosis), first(&whole), "{name}");
            let rows = |found: &Diagnosis| found.account.as_ref().map(|account| account.rows.len());
            assert_eq!(rows(&digest.diagnosis), rows(&whole), "{name}");
        }
    }
}
