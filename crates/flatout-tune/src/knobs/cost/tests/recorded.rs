//! Searches that were measured on an H200, held against what is predicted now: from each trial that was the best, the next.

use crate::knobs::cost::Cost;
use crate::knobs::{self, Done, Situation};
use crate::limits::Limits;
use crate::machine::Machine;
use crate::trial::{Measurement, Outcome, Settings, Size};
use flatout_core::cpus::UsableCpus;
use flatout_diagnose::Analysis;
use flatout_record::{Event, EventKind, Fact, Phase, PhaseTime, RunData, StepTick};
use serde::Deserialize;
use serde_json::json;

/// Four of five are to be predicted within a quarter of what was measured.
const RIGHT: f64 = 0.8;
const WITHIN: f64 = 0.25;

#[derive(Deserialize)]
struct Search {
    program: String,
    workers: u64,
    batch: u64,
    length: u64,
    pinned: bool,
    trials: Vec<Tried>,
}

#[derive(Deserialize)]
struct Tried {
    settings: Settings,
    verdict: String,
    gain: Option<f64>,
    measured: Measurement,
}

impl Search {
    /// As the trial's record would tell, but for what only the record knows: copying and starts of workers. Workers take as long for a
    /// batch as it took with nobody beside.
    fn record(&self, tried: &Tried) -> RunData {
        let on = |key: &str| tried.settings.get(key) == Some("on");
        let number = |key: &str, own: u64| tried.settings.get(key).map_or(Ok(own), str::parse).unwrap();
        let loader = [
            (
                "loader.num_workers",
                json!(number("loader.num_workers", self.workers)),
            ),
            (
                "loader.batch_size",
                json!(number("loader.batch_size", self.batch)),
            ),
            ("loader.length", json!(self.length)),
            (
                "loader.persistent_workers",
                json!(on("loader.persistent_workers")),
            ),
            ("loader.pin_memory", json!(self.pinned || on("loader.pin_memory"))),
        ];
        let fact = |(key, value): (&str, serde_json::Value), scope: Option<&str>| Fact {
            t: 0.0,
            key: key.into(),
            value,
            scope: scope.map(str::to_owned),
            place: None,
        };
        let mut facts: Vec<Fact> = loader
            .into_iter()
            .map(|one| fact(one, Some("loader.0")))
            .collect();
        facts.push(fact(("device", json!("cuda")), None));
        let measured = &tried.measured;
        let wait_share = measured.wait_s.unwrap() / measured.seconds;
        let time = |ms: f64| PhaseTime {
            ms,
            ..PhaseTime::default()
        };
        let tick = |number: u32| StepTick {
            t: f64::from(number) * 0.5,
            dt: 0.5,
            steps: (0.5 * measured.steps as f64 / measured.seconds).ceil() as u64,
            phases: [
                (Phase::Data, time(500.0 * wait_share)),
                (Phase::Compute, time(500.0 * (1.0 - wait_share))),
            ]
            .into(),
            ..StepTick::default()
        };
        // An epoch's last batch may be smaller.
        let samples = measured.samples_a_step().unwrap();
        let near = |size: &&Size| (size.samples as f64 / samples - 1.0).abs() < 0.05;
        let made = measured.sizes.iter().find(near);
        let events = made.and_then(|size| size.wait_s).map(|made_s| Event {
            t: 5.0,
            kind: EventKind::Workers {
                loader: 0,
                fetch_ms: made_s * 1e3,
                collate_ms: 0.0,
                garbage_ms: None,
                batches: 1,
            },
        });
        RunData {
            facts,
            events: events.into_iter().collect(),
            steps: (1..=20).map(tick).collect(),
            ..RunData::default()
        }
    }

    /// As it was when this trial was the best and those before `at` were done.
    fn then<T>(&self, best: &Tried, at: usize, limits: &Limits, look: impl Fn(&Situation) -> T) -> T {
        let machine = Machine {
            cpus: UsableCpus {
                online: 16,
                affinity: 16,
                quota: None,
            },
            memory_bytes: None,
            gpus: Vec::new(),
            cpu_bf16: false,
        };
        let trials: Vec<Done> = self.trials[..at]
            .iter()
            .map(|one| Done {
                settings: one.settings.clone(),
                outcome: Outcome::Measured(Box::new(one.measured.clone())),
            })
            .collect();
        let data = self.record(best);
        look(&Situation {
            analysis: &Analysis::new(&data),
            findings: &[],
            settings: &best.settings,
            best: &best.measured,
            trials: &trials,
            limits,
            machine: &machine,
            hurtful_batch: None,
        })
    }

    /// What each trial was predicted to be worth, by those before it, and what it was.
    fn predictions(&self) -> Vec<(String, f64, f64)> {
        let (mut best, mut all) = (&self.trials[0], Vec::new());
        for (at, tried) in self.trials.iter().enumerate().skip(1) {
            // Searches of an earlier build left everything else of the loader alone.
            let alone = tried.settings.get("loader.persistent_workers").is_none();
            let knobs = ["batch_size", "num_workers"].map(str::to_owned);
            let limits = Limits::parse(if alone { &knobs } else { &[] }).unwrap();
            let changed = |key: &str| tried.settings.get(key) != best.settings.get(key);
            let fed = tried
                .settings
                .0
                .keys()
                .all(|key| key.starts_with("loader.") || key == knobs::FREEZE || !changed(key));
            let other = changed("loader.batch_size") || changed("loader.num_workers");
            let batch = tried.measured.samples_a_step().unwrap();
            let workers = tried.settings.get("loader.num_workers");
            let workers = workers.map_or(self.workers, |count| count.parse().unwrap());
            let predicted = self.then(best, at, &limits, |situation| {
                let cost = Cost::of(situation).unwrap();
                cost.tells(workers).then(|| cost.gain(batch, workers))
            });
            if let (true, Some(predicted), Some(gain)) = (fed && other, predicted, tried.gain) {
                all.push((format!("{} {}", self.program, tried.settings), predicted, gain));
            }
            if tried.verdict == "kept" {
                best = tried;
            }
        }
        all
    }
}

fn searches() -> Vec<Search> {
    let lines = include_str!("../../../../tests/data/h200-searches.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn what_was_measured_is_predicted() {
    let all: Vec<_> = searches().iter().flat_map(Search::predictions).collect();
    let right = |(_, predicted, measured): &&(String, f64, f64)| (predicted / measured - 1.0).abs() <= WITHIN;
    let table: Vec<String> = all
        .iter()
        .map(|(what, predicted, measured)| format!("{predicted:6.2} {measured:6.2} {what}"))
        .collect();
    let share = all.iter().filter(right).count() as f64 / all.len() as f64;
    assert!(
        all.len() >= 10 && share >= RIGHT,
        "{share:.2}\n{}",
        table.join("\n")
    );
}

/// The LSTM with four workers of its own, which supply enough: what goes along with them comes with the batch; later, alone, without a
/// longer queue, and for the reason that it mends.
#[test]
fn what_goes_along_with_workers_is_proposed_with_a_batch_and_alone() {
    let all = searches();
    let search = all.iter().find(|search| search.program == "stocks_lstm").unwrap();
    let limits = Limits::default();
    let first = search.then(&search.trials[0], 1, &limits, |situation| {
        knobs::proposals(situation).remove(0)
    });
    assert_eq!(
        first.changes.to_string(),
        "gc.freeze=on,loader.batch_size=512,loader.persistent_workers=on,loader.pin_memory=on"
    );
    let one = search.then(&search.trials[2], 3, &limits, |situation| {
        let proposals = knobs::proposals(situation).into_iter();
        let mut loader = proposals.filter(|one| one.knob == knobs::LOADER);
        loader
            .find(|one| one.changes.get("loader.num_workers").is_none())
            .unwrap()
    });
    assert_eq!(
        one.changes.to_string(),
        "gc.freeze=on,loader.persistent_workers=on,loader.pin_memory=on"
    );
    assert!(one.gain.is_some_and(|gain| gain > 1.0), "{one:?}");
    assert!(one.why.en.contains("waiting for batches"), "{}", one.why.en);
}

/// The transformer, where bf16 was kept first: what TF32 is worth to products in fp32 says nothing then, and a larger batch is worth much
/// more than before.
#[test]
fn another_precision_changes_what_all_else_is_worth() {
    let all = searches();
    let in_bf16 = |search: &&Search| search.trials[1].settings.get("amp") == Some("bf16");
    let search = all.iter().find(in_bf16).unwrap();
    assert_eq!(search.program, "text_transformer");
    let limits = Limits::default();
    let worth = |best: usize| {
        search.then(&search.trials[best], best + 1, &limits, |situation| {
            let all = knobs::proposals(situation);
            let batch = all.into_iter().find(|one| one.knob == "batch_size").unwrap();
            (situation.own_ratio("tf32", "on"), batch.gain.unwrap())
        })
    };
    let (fp32, bf16) = (worth(0), worth(1));
    assert!(fp32.0.is_some_and(|ratio| ratio < 0.8) && bf16.0.is_none());
    assert!(fp32.1 < 1.5 && bf16.1 > 3.0, "{} {}", fp32.1, bf16.1);
}
