//! Where every second of the run went. The rows add up to the run; what nothing explains is a row of its own.

use super::copies;
use flatout_core::{Message, message};
use flatout_record::{Phase, RunData};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TimeTable {
    pub total_s: f64,
    pub rows: Vec<TimeRow>,
}

#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TimeRow {
    /// `start-up`, a phase's name, `profiling`, `after-last-step`, `unexplained`.
    pub key: String,
    pub name: Message,
    pub seconds: f64,
    pub share: f64,
}

impl TimeTable {
    /// Of a run whose copies to the device wait for it this share of their time.
    pub fn new(data: &RunData, waiting_in_copies: f64) -> Self {
        let Some(total_s) = length(data) else {
            return Self::default();
        };
        // Without steps there is no start-up that ends: a row that is 100% of the time would claim one.
        if data
            .steps
            .iter()
            .all(|tick| tick.steps == 0 && tick.phases.is_empty())
        {
            return Self {
                total_s,
                rows: Vec::new(),
            };
        }
        // What lies before the tick of the first step is start-up, whatever the program did in it.
        let first = data.steps.iter().position(|tick| tick.steps > 0).unwrap_or(0);
        let ticks = data.steps.get(first..).unwrap_or_default();
        let mut phases: BTreeMap<Phase, f64> = BTreeMap::new();
        for tick in ticks {
            for (phase, time) in &tick.phases {
                *phases.entry(*phase).or_default() += time.ms / 1e3;
            }
        }
        copies::tell_apart(&mut phases, waiting_in_copies);
        let stepping = || {
            ticks
                .iter()
                .filter(|tick| !tick.phases.is_empty() || tick.steps > 0)
        };
        // Nothing is told before there are steps: the first of those ticks may hold all that the program did until then.
        let before_s = ticks
            .first()
            .filter(|tick| tick.steps > 0)
            .and_then(|tick| tick.phases.get(&Phase::Other));
        let before_s = before_s.map_or(0.0, |time| time.ms / 1e3);
        if let Some(other) = phases.get_mut(&Phase::Other) {
            *other = (*other - before_s).max(0.0);
        }
        let begin = stepping()
            .next()
            .map_or(total_s, |tick| (tick.t - tick.dt + before_s).clamp(0.0, total_s));
        let end = stepping()
            .next_back()
            .map_or(total_s, |tick| tick.t.clamp(begin, total_s));
        let in_phases: f64 = phases.values().sum();
        // The first phases begin before the tick they are written in: what they hold beyond the ticks is taken from the start.
        let begin = (begin - (in_phases - (end - begin)).max(0.0)).max(0.0);
        let outside = (end - begin - in_phases).max(0.0);
        let profiling = profiling_s(data).min(outside);
        let unexplained = outside - profiling;
        let mut seconds = vec![("start-up".to_owned(), start_up(), begin)];
        for phase in Phase::ALL {
            seconds.push((
                phase.name().to_owned(),
                phase_row(phase),
                phases.get(&phase).copied().unwrap_or(0.0),
            ));
        }
        seconds.push(("profiling".to_owned(), profiling_row(), profiling));
        seconds.push(("after-last-step".to_owned(), after(), total_s - end));
        seconds.push(("unexplained".to_owned(), unexplained_row(), unexplained));
        let whole = seconds
            .iter()
            .map(|(.., seconds)| seconds)
            .sum::<f64>()
            .max(f64::MIN_POSITIVE);
        Self {
            total_s,
            rows: seconds
                .into_iter()
                .filter(|(.., seconds)| *seconds > 0.0)
                .map(|(key, name, seconds)| TimeRow {
                    key,
                    name,
                    seconds,
                    share: seconds / whole,
                })
                .collect(),
        }
    }

    pub fn share(&self, key: &str) -> f64 {
        self.rows
            .iter()
            .find(|row| row.key == key)
            .map_or(0.0, |row| row.share)
    }
}

/// What `flatout run --profile` itself took: starting the profiler, writing its trace. No phase holds it.
fn profiling_s(data: &RunData) -> f64 {
    let told = data.facts.iter().filter(|fact| fact.key == "profile.seconds");
    told.filter_map(|fact| fact.value.as_f64()).fold(0.0, f64::max)
}

/// The run's length: its exit, else the last thing known of it.
fn length(data: &RunData) -> Option<f64> {
    let last = [
        data.info.exit.as_ref().map(|exit| exit.t),
        data.steps.last().map(|tick| tick.t),
        data.samples.last().map(|sample| sample.t),
    ];
    last.into_iter()
        .flatten()
        .filter(|t| *t > 0.0)
        .max_by(f64::total_cmp)
}

fn start_up() -> Message {
    message!(en: "startup, before the first step", zh: "启动，第一步之前")
}

fn profiling_row() -> Message {
    message!(en: "flatout's own profiling", zh: "flatout 自身的 profile")
}

fn after() -> Message {
    message!(en: "after the last step", zh: "最后一步之后")
}

fn unexplained_row() -> Message {
    message!(en: "unexplained", zh: "未能解释")
}

fn phase_row(phase: Phase) -> Message {
    match phase {
        Phase::Data => message!(en: "waiting for batches", zh: "等待 batch"),
        Phase::Transfer => message!(en: "copying to the GPU", zh: "拷贝到 GPU"),
        Phase::Compute => message!(en: "computing or launching work", zh: "计算，或下发计算"),
        Phase::Sync => message!(en: "blocked on the GPU", zh: "阻塞等待设备"),
        Phase::Eval => message!(en: "evaluation", zh: "评估"),
        Phase::Checkpoint => message!(en: "saving checkpoints", zh: "保存 checkpoint"),
        Phase::Other => message!(en: "other code of the program", zh: "程序的其他代码"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Build;

    #[test]
    fn every_second_is_somewhere() {
        let data = Build::steady(20)
            .phase(Phase::Data, 0.4)
            .phase(Phase::Compute, 0.3)
            .done();
        let table = TimeTable::new(&data, 0.0);
        let sum: f64 = table.rows.iter().map(|row| row.share).sum();
        assert!((sum - 1.0).abs() < 1e-9);
        let seconds: f64 = table.rows.iter().map(|row| row.seconds).sum();
        assert!(
            (seconds - table.total_s).abs() < 1e-6,
            "{seconds} of {}",
            table.total_s
        );
        assert!(table.share("unexplained") > 0.2);
    }

    #[test]
    fn phases_that_began_before_the_first_tick_are_not_counted_twice() {
        let mut data = Build::steady(20).done();
        data.steps[0].phases.entry(Phase::Other).or_default().ms = 1500.0;
        let table = TimeTable::new(&data, 0.0);
        let seconds: f64 = table.rows.iter().map(|row| row.seconds).sum();
        assert!(
            (seconds - table.total_s).abs() < 1e-6,
            "{seconds} of {}",
            table.total_s
        );
    }

    #[test]
    fn what_a_program_does_before_its_first_step_is_start_up() {
        let mut data = Build::steady(20).done();
        for tick in &mut data.steps[..5] {
            tick.steps = 0;
        }
        let first = data.steps[5].t - data.steps[5].dt;
        let table = TimeTable::new(&data, 0.0);
        let start = table.rows.iter().find(|row| row.key == "start-up").unwrap();
        assert!(
            (start.seconds - first).abs() < 1e-6,
            "{} of {first}",
            start.seconds
        );
        let seconds: f64 = table.rows.iter().map(|row| row.seconds).sum();
        assert!((seconds - table.total_s).abs() < 1e-6);
    }

    #[test]
    fn what_profiling_takes_is_not_the_programs() {
        let steady = || Build::steady(20).phase(Phase::Compute, 0.6);
        let table = TimeTable::new(&steady().fact("profile.seconds", 3.0).done(), 0.0);
        let row = |key: &str| {
            table
                .rows
                .iter()
                .find(|row| row.key == key)
                .map_or(0.0, |row| row.seconds)
        };
        assert!((row("profiling") - 3.0).abs() < 1e-9);
        let before = TimeTable::new(&steady().done(), 0.0);
        assert!((row("unexplained") + 3.0 - before.share("unexplained") * before.total_s).abs() < 1e-6);
    }

    #[test]
    fn nothing_is_known_of_nothing() {
        assert_eq!(TimeTable::new(&RunData::default(), 0.0), TimeTable::default());
    }
}
