//! Memory that the training process gives back to the kernel and takes again, page by page.
//!
//! A page fault says that a page came, not why. What is counted is what the process took beyond what it grew by: those pages it had had
//! before. Ticks in which a process of the tree has just begun are left out, because after a fork a write to a shared page is a fault too.

use super::workers;
use flatout_core::stats::{mean, quantile};
use flatout_record::{Event, EventKind, ProcessSample, RunData, Sample};
use std::collections::{BTreeMap, BTreeSet};

/// Ticks that say how it usually is: fewer are a chance.
const FEWEST_TICKS: usize = 5;

#[derive(Clone, Copy, Debug)]
pub struct Pages {
    /// Pages taken again a second, in the middle one of the ticks.
    pub again_s: f64,
    /// CPU time for one of them on this machine, as flatout measured it.
    pub page_us: f64,
    /// CPUs that the process used.
    pub cpus: f64,
    /// Those of them that the kernel used, for pages and for all else.
    pub kernel_cpus: f64,
}

impl Pages {
    /// `None` where the record does not tell what a page costs, or how many faults there were.
    pub fn new(data: &RunData, range: (f64, f64)) -> Option<Self> {
        let page = data.info.host.as_ref()?.page?;
        let ticks = quiet_ticks(data, range);
        let process = training_process(data, &ticks)?;
        let own: Vec<(f64, &ProcessSample)> = ticks
            .iter()
            .filter_map(|sample| Some((sample.t, sample.processes.get(&process)?)))
            .collect();
        let values = |value: fn(&ProcessSample) -> Option<f64>| {
            let mut values: Vec<f64> = own.iter().filter_map(|(_, process)| value(process)).collect();
            values.sort_by(f64::total_cmp);
            (values.len() >= FEWEST_TICKS).then_some(values)
        };
        let grown_s = growth_bytes_s(&own).max(0.0) / page.bytes.max(1) as f64;
        Some(Self {
            again_s: (quantile(&values(|process| process.faults_s)?, 0.5) - grown_s).max(0.0),
            page_us: page.us,
            cpus: mean(&values(|process| process.cpus)?),
            kernel_cpus: mean(&values(|process| process.kernel_cpus)?),
        })
    }

    /// CPUs that the pages take: what so many cost, and never more than the kernel used.
    pub fn pages_cpus(&self) -> f64 {
        (self.again_s * self.page_us / 1e6).min(self.kernel_cpus)
    }

    /// Of the process's CPU time, the part that goes to pages.
    pub fn share(&self) -> f64 {
        if self.cpus > 0.0 {
            (self.pages_cpus() / self.cpus).min(1.0)
        } else {
            0.0
        }
    }
}

/// The window's ticks in which no process had just begun: a fork at the end of a tick shows in the next one, too.
fn quiet_ticks(data: &RunData, (start_s, end_s): (f64, f64)) -> Vec<&Sample> {
    let began = |event: &&Event| {
        matches!(
            event.kind,
            EventKind::Process {
                began: true,
                role: None,
                ..
            }
        )
    };
    let mut begins: Vec<f64> = data.events.iter().filter(began).map(|event| event.t).collect();
    begins.sort_by(f64::total_cmp);
    let mut before_s = f64::NEG_INFINITY;
    let mut quiet = Vec::new();
    for sample in &data.samples {
        let next = begins.partition_point(|t| *t < before_s);
        let disturbed = begins.get(next).is_some_and(|t| *t <= sample.t);
        before_s = sample.t;
        if sample.t > start_s && sample.t <= end_s && !disturbed {
            quiet.push(sample);
        }
    }
    quiet
}

/// The process that used most CPU time, the loaders' workers left out: what they do delays a step only where it waits for them.
fn training_process(data: &RunData, ticks: &[&Sample]) -> Option<u32> {
    let named = workers::named(data);
    let mut used: BTreeMap<u32, f64> = BTreeMap::new();
    for sample in ticks {
        let workers = workers::workers_of(sample, &named).into_iter();
        let workers: BTreeSet<u32> = workers.map(|(pid, _)| pid).collect();
        for (pid, process) in &sample.processes {
            if !workers.contains(pid) {
                *used.entry(*pid).or_default() += process.cpus.unwrap_or(0.0);
            }
        }
    }
    used.into_iter()
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(pid, _)| pid)
}

fn growth_bytes_s(own: &[(f64, &ProcessSample)]) -> f64 {
    let mut known = own
        .iter()
        .filter_map(|(t, process)| Some((*t, process.rss_bytes? as f64)));
    match (known.next(), known.next_back()) {
        (Some((first_s, first)), Some((last_s, last))) if last_s > first_s => {
            (last - first) / (last_s - first_s)
        }
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Build;

    const ALL: (f64, f64) = (0.0, f64::INFINITY);

    fn faulting() -> Build {
        Build::steady(20).pages(100_000.0, 0.5, 2.0)
    }

    #[test]
    fn what_pages_cost_is_never_more_than_the_kernel_used() {
        let pages = Pages::new(&faulting().done(), ALL).unwrap();
        assert!(
            (pages.pages_cpus() - 0.2).abs() < 1e-9 && (pages.share() - 0.1).abs() < 1e-9,
            "{pages:?}"
        );
        let capped = Pages::new(&Build::steady(20).pages(1_000_000.0, 0.5, 2.0).done(), ALL).unwrap();
        assert!((capped.pages_cpus() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn pages_that_stay_are_growth() {
        let mut data = faulting().done();
        for (second, sample) in data.samples.iter_mut().enumerate() {
            sample.processes.get_mut(&100).unwrap().rss_bytes = Some(second as u64 * 100_000 * 4096);
        }
        assert_eq!(Pages::new(&data, ALL).unwrap().again_s, 0.0);
    }

    #[test]
    fn a_burst_is_not_how_it_usually_is() {
        let mut data = Build::steady(20).pages(10.0, 0.5, 2.0).done();
        data.samples[4].processes.get_mut(&100).unwrap().faults_s = Some(5e6);
        assert_eq!(Pages::new(&data, ALL).unwrap().again_s, 10.0);
    }

    #[test]
    fn copies_after_a_fork_are_not_counted() {
        let mut data = faulting().done();
        let began = |pid| EventKind::Process {
            pid,
            began: true,
            role: None,
        };
        // Every second tick and the one behind it: all of them.
        let times: Vec<f64> = data.samples.iter().step_by(2).map(|sample| sample.t).collect();
        data.events.extend(times.iter().map(|t| Event {
            t: *t,
            kind: began(7),
        }));
        assert!(Pages::new(&data, ALL).is_none());
    }

    #[test]
    fn old_records_have_no_page_cost() {
        let mut data = faulting().done();
        data.info.host.as_mut().unwrap().page = None;
        assert!(Pages::new(&data, ALL).is_none());
        let mut data = faulting().done();
        for sample in &mut data.samples {
            sample.processes.get_mut(&100).unwrap().faults_s = None;
        }
        assert!(Pages::new(&data, ALL).is_none());
        assert!(Pages::new(&RunData::default(), ALL).is_none());
    }
}
