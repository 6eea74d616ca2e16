//! A record boiled down to what is shown of it: the headline, the findings, charts of a bounded size, tables. Report and
//! comparison both start here. Nothing is judged: figures are measured, findings come from the rules.

pub mod charts;
pub mod checklist;
pub mod clean;
pub mod figures;
pub mod marks;
pub mod processes;
pub mod series;

use charts::Chart;
use checklist::Item;
use clean::Defect;
use figures::Figure;
use flatout_core::histogram::Histogram;
use flatout_diagnose::analysis::loaders::Loader;
use flatout_diagnose::verdict::Verdict;
use flatout_diagnose::{Analysis, Diagnosis};
use flatout_telemetry::record::{Record, RunData};
use flatout_telemetry::{Fact, RunInfo};
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
    pub fn read(record: &Record) -> Self {
        Self::of(record.load())
    }

    pub fn of(mut data: RunData) -> Self {
        let defects = clean::clean(&mut data);
        let diagnosis = flatout_diagnose::diagnose(&data);
        let analysis = Analysis::new(&data);
        let length_s = clean::length_s(&data);
        Self {
            length_s,
            figures: figures::of(&analysis),
            verdict: Verdict::of(&data.info, &data.samples),
            step_hist: analysis
                .window
                .as_ref()
                .map(|window| window.step_hist.clone())
                .unwrap_or_default(),
            charts: charts::of(&data, length_s.unwrap_or(0.0)),
            marks: Marks::of(&data.events),
            loaders: analysis.loaders.clone(),
            processes: processes::of(&data),
            facts: last_facts(&data.facts),
            checklist: checklist::of(&analysis, &diagnosis.findings),
            learning: learning(&data),
            has_steps: data.steps.iter().any(|tick| tick.steps > 0),
            diagnosis,
            defects,
            info: data.info,
        }
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

/// One point a tick that knows its loss.
fn learning(data: &RunData) -> Vec<LossPoint> {
    let mut samples = 0.0;
    let mut points = Vec::new();
    for tick in &data.steps {
        let Some(seen) = tick.samples else { continue };
        samples += seen as f64;
        if let Some(loss) = tick.loss.filter(|loss| loss.is_finite() && seen > 0) {
            points.push(LossPoint { samples, loss });
        }
    }
    points
}
