//! A record boiled down to what is shown of it: the headline, the findings, charts of a bounded size, tables. Report and
//! comparison both start here. Nothing is judged: figures are measured, findings come from the rules.

pub mod charts;
pub mod checklist;
pub mod clean;
pub mod figures;
pub mod marks;
pub mod processes;
pub mod series;
pub mod thin;

use charts::Chart;
use checklist::Item;
use clean::{Ascending, Defect};
use figures::Figure;
use flatout_core::histogram::Histogram;
use flatout_diagnose::analysis::loaders::Loader;
use flatout_diagnose::verdict::{Gatherer, Verdict};
use flatout_diagnose::{Analysis, Diagnosis};
use flatout_telemetry::record::{Record, RunData};
use flatout_telemetry::{Fact, RunInfo, Sample, StepTick};
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
}

/// The loss after so many samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossPoint {
    pub samples: f64,
    pub loss: f64,
}

impl Digest {
    /// Reads a record line by line: a day of seconds takes no more memory than an hour.
    pub fn read(record: &Record) -> Self {
        let mut reading = Reading::new(&record.info);
        let mut data = RunData {
            info: record.info.clone(),
            ..RunData::default()
        };
        let mut samples = record.samples();
        samples.by_ref().for_each(|sample| reading.sample(sample));
        data.skipped.append(&mut samples.skipped);
        let mut steps = record.steps();
        steps.by_ref().for_each(|tick| reading.step(tick));
        data.skipped.append(&mut steps.skipped);
        let mut events = record.events();
        data.events = events.by_ref().filter(|event| clean::placed(event.t)).collect();
        data.skipped.append(&mut events.skipped);
        let mut facts = record.facts();
        data.facts = facts.by_ref().collect();
        data.skipped.append(&mut facts.skipped);
        data.stacks = record.stacks().collect();
        reading.done(data)
    }

    /// The same of a record that is in memory.
    pub fn of(mut data: RunData) -> Self {
        let mut reading = Reading::new(&data.info);
        std::mem::take(&mut data.samples)
            .into_iter()
            .for_each(|sample| reading.sample(sample));
        std::mem::take(&mut data.steps)
            .into_iter()
            .for_each(|tick| reading.step(tick));
        data.events.retain(|event| clean::placed(event.t));
        reading.done(data)
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

/// What is gathered while the lines go by.
struct Reading {
    sample_times: Ascending,
    step_times: Ascending,
    charts: charts::Builder,
    processes: processes::Builder,
    verdict: Gatherer,
    samples: thin::Samples,
    steps: thin::Steps,
    samples_seen: f64,
    learning: Vec<LossPoint>,
}

impl Reading {
    fn new(info: &RunInfo) -> Self {
        Self {
            sample_times: Ascending::default(),
            step_times: Ascending::default(),
            charts: charts::Builder::new(info),
            processes: processes::Builder::default(),
            verdict: Gatherer::new(info),
            samples: thin::Samples::default(),
            steps: thin::Steps::default(),
            samples_seen: 0.0,
            learning: Vec::new(),
        }
    }

    fn sample(&mut self, sample: Sample) {
        if self.sample_times.take(sample.t) {
            self.charts.sample(&sample);
            self.processes.sample(&sample);
            self.verdict.add(&sample);
            self.samples.push(sample);
        }
    }

    fn step(&mut self, tick: StepTick) {
        if !self.step_times.take(tick.t) {
            return;
        }
        self.charts.step(&tick);
        if let Some(samples) = tick.samples.filter(|samples| *samples > 0) {
            self.samples_seen += samples as f64;
            if let Some(loss) = tick.loss.filter(|loss| loss.is_finite()) {
                self.learning.push(LossPoint {
                    samples: self.samples_seen,
                    loss,
                });
            }
        }
        self.steps.push(tick);
    }

    /// `data` holds everything but samples and steps.
    fn done(self, mut data: RunData) -> Digest {
        let every = self.samples.every;
        data.samples = self.samples.kept;
        data.steps = self.steps.done();
        let defects = clean::defects(&data, (self.sample_times.dropped, self.step_times.dropped), every);
        let diagnosis = flatout_diagnose::diagnose(&data);
        let analysis = Analysis::new(&data);
        Digest {
            length_s: clean::length_s(&data),
            figures: figures::of(&analysis),
            verdict: self.verdict.verdict(),
            step_hist: analysis
                .window
                .as_ref()
                .map(|window| window.step_hist.clone())
                .unwrap_or_default(),
            charts: self.charts.done(),
            marks: Marks::of(&data.events),
            loaders: analysis.loaders.clone(),
            processes: self.processes.done(&data.events),
            facts: last_facts(&data.facts),
            checklist: checklist::of(&analysis, &diagnosis.findings),
            learning: self.learning,
            has_steps: data.steps.iter().any(|tick| tick.steps > 0),
            diagnosis,
            defects,
            info: data.info,
        }
    }
}
