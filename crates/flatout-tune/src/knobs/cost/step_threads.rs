//! The threads that compute a step: PyTorch's on the CPU, or the one that launches a GPU's work.

use crate::knobs::Situation;

const KEY: &str = "threads.torch";

#[derive(Clone, Debug)]
pub struct StepThreads {
    pub threads: f64,
    /// How many CPUs they keep busy with work.
    pub busy: f64,
    /// How many times longer they take next to the current workers.
    pub disturbed: f64,
    /// Whether their number may be changed along with the workers'.
    pub may_change: bool,
    /// Numbers of threads that were tried, and what a step's own part took with them, as a part of what it took with the program's own.
    pub tried: Vec<(f64, f64)>,
}

impl StepThreads {
    /// How many times longer a step's own part takes with so many threads than with those it has.
    pub fn pace(&self, threads: f64) -> f64 {
        if threads == self.threads {
            return 1.0;
        }
        match (self.ratio(threads), self.ratio(self.threads)) {
            (Some(then), Some(now)) => then / now,
            // PyTorch's idle threads spin: nothing else tells how much of their time was work.
            _ if threads < self.threads => (self.busy / threads).max(1.0),
            _ => 1.0,
        }
    }

    /// Between numbers that were tried, the speed lies on a line.
    fn ratio(&self, threads: f64) -> Option<f64> {
        let above = self.tried.iter().find(|(count, _)| *count >= threads)?;
        let below = self.tried.iter().rev().find(|(count, _)| *count <= threads)?;
        if above.0 == below.0 {
            return Some(above.1);
        }
        let part = (threads - below.0) / (above.0 - below.0);
        Some(1.0 / ((1.0 - part) / below.1 + part / above.1))
    }
}

/// PyTorch's threads: those the search has set, else the program's own.
pub fn threads(situation: &Situation) -> Option<f64> {
    situation
        .number(KEY)
        .map(|threads| threads as f64)
        .or(own_threads(situation))
        .filter(|threads| *threads >= 1.0)
}

fn own_threads(situation: &Situation) -> Option<f64> {
    situation.analysis.facts.number(KEY)
}

/// By the steps that trials took with other numbers of threads, the smallest number first; the program's own among them. Of several
/// trials the latest that began with the program's own speaks.
pub fn tried(situation: &Situation) -> Vec<(f64, f64)> {
    let measured = situation.measured_with(|settings| settings.get(KEY).is_none());
    let told = measured.map(|measured| {
        let variants = measured.variants.iter();
        let counts = variants.filter_map(|variant| {
            let count = variant.setting.strip_prefix(KEY)?.strip_prefix('=')?;
            Some((count.parse().ok()?, variant.own_ratio))
        });
        counts
            .filter(|(_, ratio): &(f64, f64)| *ratio > 0.0)
            .collect::<Vec<(f64, f64)>>()
    });
    let mut all = told
        .into_iter()
        .find(|counts| !counts.is_empty())
        .unwrap_or_default();
    let first = first_threads(situation);
    if let (false, Some(own)) = (all.is_empty(), first) {
        all.push((own, 1.0));
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    all
}

/// Of the program as it is: the record of a trial that set them tells those.
fn first_threads(situation: &Situation) -> Option<f64> {
    let usable = situation.machine.cpus.count() as f64;
    match situation.settings.get(KEY) {
        None => own_threads(situation),
        Some(_) => Some(usable),
    }
}
