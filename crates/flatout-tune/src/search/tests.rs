//! The search on programs whose cost is known by formula.

mod simulated;

use super::*;
use crate::trial::Outcome;
use flatout_core::cpus::UsableCpus;
use simulated::Simulated;

fn options() -> Options {
    Options {
        objective: Objective::SamplesPerSecond,
        most_trials: 12,
        budget: Duration::from_secs(60),
        plan: Plan {
            warm_up_steps: 10,
            steps: 40,
            seconds: 4.0,
            longest_s: 20.0,
            noise: 0.03,
            settle_s: 12.0,
            patience_s: 60.0,
            ..Plan::default()
        },
        scale_learning_rate: false,
        limits: Limits::default(),
        start: Settings::default(),
    }
}

fn tune(program: &mut Simulated, options: &Options) -> Result<Found> {
    let machine = Machine {
        cpus: UsableCpus {
            online: 8,
            affinity: 8,
            quota: None,
        },
        memory_bytes: None,
        gpus: Vec::new(),
        cpu_bf16: false,
    };
    search(options, &machine, program, &mut |_| {})
}

#[test]
fn finds_workers_and_batch_and_takes_the_smallest_that_is_as_good() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Simulated::new(folder.path());
    let found = tune(&mut program, &options()).unwrap();
    let mut best = 0.0f64;
    for workers in 0..=8u64 {
        for batch in [32u64, 64, 128, 256, 512, 1024, 2048] {
            best = best.max(batch as f64 / program.step_ms(batch, workers) * 1e3);
        }
    }
    assert!(
        found.score.mean >= 0.97 * best,
        "{} of {best}: {}",
        found.score.mean,
        found.settings
    );
    assert!(found.rows.len() <= 12 && found.changed);
    assert!(found.gain().low > 2.0);
}

#[test]
fn a_batch_that_hurts_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Simulated {
        hurts: true,
        load_ms: 0.0,
        ..Simulated::new(folder.path())
    };
    let found = tune(&mut program, &options()).unwrap();
    assert!(!found.changed, "{}", found.settings);
    assert!(
        found
            .rows
            .iter()
            .any(|row| matches!(&row.verdict, Verdict::Refused { why } if why.en.contains("loss")))
    );
}

#[test]
fn out_of_memory_at_the_start_halves_and_accumulates() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Simulated {
        largest_batch: 8,
        ..Simulated::new(folder.path())
    };
    let found = tune(&mut program, &options()).unwrap();
    let mended = found.mended.clone().unwrap().to_string();
    assert_eq!(mended, "loader.batch_size=8,step.accumulation=4");
    // Nothing else helps it, and yet this is no start to keep.
    assert!(found.changed && found.start.is_empty());
    assert_eq!(found.changes().get("step.accumulation"), Some("4"));
}

#[test]
fn the_learning_rate_follows_the_batch_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        scale_learning_rate: true,
        ..options()
    };
    let found = tune(&mut Simulated::new(folder.path()), &options).unwrap();
    let batches = found.rows.iter().filter_map(|row| {
        Some((
            row.settings.get("loader.batch_size")?,
            row.settings.get("optimizer.lr_scale")?,
        ))
    });
    let scales: Vec<(u64, f64)> = batches
        .map(|(batch, scale)| (batch.parse().unwrap(), scale.parse().unwrap()))
        .collect();
    assert!(scales.len() > 1, "{:?}", found.rows);
    // The program's own batch is 32; the trial of half the best batch follows it, too.
    assert!(
        scales.iter().all(|(batch, scale)| *batch as f64 / 32.0 == *scale),
        "{scales:?}"
    );
}

#[test]
fn out_of_memory_later_is_a_result() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Simulated {
        largest_batch: 64,
        load_ms: 0.0,
        ..Simulated::new(folder.path())
    };
    let found = tune(&mut program, &options()).unwrap();
    assert!(
        found
            .rows
            .iter()
            .any(|row| matches!(row.verdict, Verdict::OutOfMemory { .. }))
    );
    assert_eq!(found.settings.get("loader.batch_size"), Some("64"));
}

#[test]
fn failures_end_the_search_and_the_start_stays() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Simulated {
        fails_from: 3,
        ..Simulated::new(folder.path())
    };
    let found = tune(&mut program, &options()).unwrap();
    assert!(found.rows.len() <= 6, "{}", found.rows.len());
    let mut broken = Simulated {
        fails_from: 1,
        ..Simulated::new(folder.path())
    };
    assert!(tune(&mut broken, &options()).is_err());
}

#[test]
fn only_the_knobs_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        limits: Limits::parse(&["num_workers=0..2".into()]).unwrap(),
        ..options()
    };
    let found = tune(&mut Simulated::new(folder.path()), &options).unwrap();
    assert_eq!(found.settings.to_string(), "loader.num_workers=2");
}

/// With the small batch there is nothing to wait for, and with the large one workers promise nothing; yet they help, and are looked at.
#[test]
fn looks_at_the_loader_again_once_the_batch_is_settled() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Simulated {
        batch: 8,
        fixed_ms: 1.0,
        compute_ms: 0.002,
        load_ms: 0.004,
        ..Simulated::new(folder.path())
    };
    let options = Options {
        limits: Limits::parse(&["num_workers=0..1".into(), "batch_size=8..64".into()]).unwrap(),
        ..options()
    };
    let found = tune(&mut program, &options).unwrap();
    assert_eq!(
        found.settings.to_string(),
        "loader.batch_size=64,loader.num_workers=1"
    );
    let row = found
        .rows
        .iter()
        .find(|row| row.changes.get("loader.num_workers").is_some());
    let row = row.unwrap();
    assert!(row.predicted.unwrap() < 1.0 && row.gain.unwrap() > 1.2);
}

/// One size alone, and nothing that was measured beside it: then the first batch is tried without a prediction.
#[test]
fn makes_no_prediction_without_a_basis() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Simulated {
        tells_sizes: false,
        load_ms: 0.0,
        ..Simulated::new(folder.path())
    };
    let found = tune(&mut program, &options()).unwrap();
    let tried: Vec<&Row> = found.rows.iter().filter(|row| row.knob.is_some()).collect();
    assert!(tried[0].predicted.is_none() && tried[0].gain.unwrap() > 1.5);
    assert!(tried[1].predicted.is_some());
}

/// Workers that were tried with a smaller batch and given up with a larger one are as the program had them: nothing to write down.
#[test]
fn reverted_settings_are_not_a_change() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Simulated {
        fixed_ms: 20.0,
        compute_ms: 0.01,
        load_ms: 0.2,
        workers_hurt_from: 256,
        ..Simulated::new(folder.path())
    };
    let options = Options {
        limits: Limits::parse(&["num_workers=0..4".into(), "batch_size=32..2048".into()]).unwrap(),
        ..options()
    };
    let found = tune(&mut program, &options).unwrap();
    assert!(found.rows.iter().any(|row| {
        row.settings
            .get("loader.num_workers")
            .is_some_and(|count| count != "0")
    }));
    assert_eq!(
        found.settings.get("loader.num_workers"),
        None,
        "{}",
        found.settings
    );
}

/// One worker feeds the steps as well as two, and a bit better, within the noise: then one is enough.
#[test]
fn prefers_fewer_workers_on_a_tie() {
    let folder = tempfile::tempdir().unwrap();
    let rate = |mean: f64| Rate {
        mean,
        low: mean * 0.8,
        high: mean * 1.2,
    };
    for (mean, kept) in [(104.0, true), (96.0, false)] {
        let mut trial = Simulated::new(folder.path());
        let options = options();
        let machine = Machine::here();
        let mut tell = |_: Progress| {};
        let mut search = Search::new(&options, &machine, &mut trial, &mut tell);
        search.trials.interrupted = true;
        let mut best = Best {
            settings: knobs::one("loader.num_workers", 2),
            measured: Measurement::default(),
            scores: vec![rate(100.0)],
            data: RunData::default(),
        };
        let proposal = Proposal {
            knob: "loader",
            changes: knobs::one("loader.num_workers", 1),
            gain: None,
            worth: 1.1,
            why: flatout_core::Message::default(),
            changes_numbers: false,
        };
        let measured = Measurement {
            rate: rate(mean),
            steps: 40,
            seconds: 1.0,
            ..Measurement::default()
        };
        let outcome = Outcome::Measured(Box::new(measured));
        let (verdict, _) = search
            .judge(&proposal, &Measurement::default(), &mut best, outcome)
            .unwrap();
        assert_eq!(matches!(verdict, Some(Verdict::Kept { .. })), kept, "{mean}");
    }
}

/// A step that spends a third of its time on pages that it has just given back; one that spends a hundredth on them is left alone.
#[test]
fn memory_is_kept_where_pages_take_their_time() {
    for (on_pages, kept) in [(0.33, true), (0.01, false)] {
        let folder = tempfile::tempdir().unwrap();
        let mut program = Simulated {
            on_pages,
            load_ms: 0.0,
            ..Simulated::new(folder.path())
        };
        let options = Options {
            limits: Limits::parse(&["malloc_keep".into()]).unwrap(),
            ..options()
        };
        let found = tune(&mut program, &options).unwrap();
        assert_eq!(found.settings.get("malloc.keep").is_some(), kept);
        let predicted = found.rows.iter().find_map(|row| row.predicted);
        assert_eq!(
            predicted.is_some_and(|gain| (gain - 1.42).abs() < 0.03),
            kept,
            "{predicted:?}"
        );
    }
}

/// What the start was measured at again counts for it, whoever asked for that.
#[test]
fn averages_a_baseline_measured_twice() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Simulated {
        on_pages: 0.2,
        shaky: true,
        ..Simulated::new(folder.path())
    };
    let limits = Limits::parse(&["malloc.keep".to_owned()]).unwrap();
    let found = tune(
        &mut program,
        &Options {
            limits,
            most_trials: 3,
            ..options()
        },
    )
    .unwrap();
    let start = |row: &&Row| row.settings == found.start;
    let means: Vec<f64> = found
        .rows
        .iter()
        .filter(start)
        .filter_map(|row| Some(row.score?.mean))
        .collect();
    assert!(means.len() > 1 && means[1] > means[0] * 1.05, "{means:?}");
    assert!(found.start_score.mean > means[0] * 1.02, "{means:?}");
    assert!(found.changed);
}
