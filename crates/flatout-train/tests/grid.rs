//! A grid as a user has it: every combination, data read once, nothing done twice.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use flatout_data::generate::{Recipe, images};
use flatout_train::data::TrainingData;
use flatout_train::grid::{self, Grid, GridReport, PointResult};
use flatout_train::{Report, Settings, TrainError};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use support::{stocks, values};

fn grid(data: &Path, output: &Path, more: &[(&'static str, &str)]) -> Grid {
    let lists = [
        ("hidden_size", "4,8"),
        ("sequence_length", "5,10"),
        ("epochs", "2"),
        ("log_interval", "1"),
    ];
    let flags = values(data, output, &[&lists[..], more].concat());
    Grid::of(Path::new("grid.yaml"), "", &flags).unwrap()
}

/// What was said, and what came out; interrupted after so many lines of progress.
fn run(
    grid: &Grid,
    jobs: usize,
    lines: Option<usize>,
) -> Result<(Vec<GridReport>, Vec<PointResult>), TrainError> {
    let interrupted = AtomicBool::new(false);
    let (mut said, mut seen) = (Vec::new(), 0);
    let mut report = |report: &GridReport| {
        if let GridReport::Training {
            report: Report::Steps { .. },
            ..
        } = report
        {
            seen += 1;
            if lines.is_some_and(|lines| seen >= lines) {
                interrupted.store(true, Ordering::Relaxed);
            }
        }
        said.push(report.clone());
    };
    let results = grid::run(grid, jobs, &interrupted, &mut report)?;
    Ok((said, results))
}

#[test]
fn every_combination_is_trained_once_and_an_interrupted_grid_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (data, output) = (folder.path().join("data"), folder.path().join("out"));
    stocks(&data);
    let grid = grid(&data, &output, &[]);
    // Some twenty steps per epoch: into the second combination.
    let (_, results) = run(&grid, 1, Some(60)).unwrap();
    assert!(results.len() < 4, "{}", results.len());
    let (said, results) = run(&grid, 1, None).unwrap();
    assert_eq!(results.len(), 4);
    assert!(
        results
            .iter()
            .all(|result| result.best_loss.is_some() && result.error.is_none())
    );
    assert!(
        said.iter()
            .any(|event| matches!(event, GridReport::Begin { resumed: true, .. }))
    );
    grid::write_csv(&grid, &results).unwrap();
    let csv = std::fs::read_to_string(output.join("grid.csv")).unwrap();
    assert_eq!(csv.lines().count(), 5);
    assert!(
        csv.starts_with("hidden_size,sequence_length,validation_loss"),
        "{csv}"
    );
    // Now all of it is done, and other epochs are another training.
    let (said, again) = run(&grid, 1, None).unwrap();
    assert!(
        said.iter()
            .all(|event| matches!(event, GridReport::End { before: true, .. }))
    );
    assert_eq!(again[3].best_loss, results[3].best_loss);
}

#[test]
fn side_by_side_gives_the_same_and_one_that_fails_does_not_stop_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    stocks(&data);
    // With one thread each, so that sums are made in the same order.
    let one = grid(&data, &folder.path().join("one"), &[("threads", "1")]);
    let two = grid(&data, &folder.path().join("two"), &[("threads", "1")]);
    let (_, alone) = run(&one, 1, None).unwrap();
    let (_, beside) = run(&two, 2, None).unwrap();
    let losses = |results: &[PointResult]| -> Vec<Option<f64>> {
        results.iter().map(|result| result.best_loss).collect()
    };
    assert_eq!(losses(&alone), losses(&beside));

    let long = grid(
        &data,
        &folder.path().join("long"),
        &[("sequence_length", "5,5000"), ("hidden_size", "4")],
    );
    let (_, results) = run(&long, 1, None).unwrap();
    assert!(results[0].error.is_none() && results[1].error.is_some());
}

#[test]
fn a_combination_that_cannot_be_loaded_is_a_failure_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    stocks(&data);
    let small = [("hidden_size", "4"), ("sequence_length", "5"), ("epochs", "1")];
    let run = |name: &str, more: &[(&'static str, &str)], jobs| {
        let grid = grid(&data, &folder.path().join(name), &[&small[..], more].concat());
        run(&grid, jobs, None)
    };
    // The label of a window's last row would be among its inputs, also where the data were read for another horizon.
    for (name, horizons) in [("first", "1,0"), ("last", "0,1")] {
        let more = [("past_labels", "true"), ("horizon", horizons)];
        let (_, results) = run(name, &more, 1).unwrap();
        for result in &results {
            let leaks = result.values.contains(&("horizon".to_owned(), "0".to_owned()));
            assert_eq!(result.error.is_some(), leaks, "{:?}", result.error);
        }
        assert_eq!(results.len(), 2);
    }
    let (_, results) = run("entity", &[("validation_from", "1990-01-01,2021-06-01")], 2).unwrap();
    assert_eq!(results.iter().filter(|result| result.error.is_some()).count(), 1);
    // What no combination can read is one error.
    assert!(run("nothing", &[("label", "nothing"), ("seed", "1,2")], 1).is_err());
}

#[test]
fn every_seed_changes_images_in_its_own_way() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("images");
    Recipe::Images(images::ImageClasses {
        images: 40,
        ..Default::default()
    })
    .generate(&data, Some(1))
    .unwrap();
    let settings = |seed: &str| {
        let output = folder.path().join("out");
        let more = [("seed", seed), ("rotate", "20"), ("cache", "false")];
        let mut values = values(&data, &output, &more);
        values.remove("sequence_length");
        Settings::of(&values).unwrap()
    };
    let (one, two) = (settings("1"), settings("2"));
    let data = TrainingData::load(&one).unwrap();
    let pixels = |data: &TrainingData| data.changed_tables(0)[0].1.bytes().to_vec();
    assert!(TrainingData::same_files(&one, &two));
    let for_two = data.for_training(&two).unwrap();
    assert!(pixels(&for_two) == pixels(&TrainingData::load(&two).unwrap()));
    assert!(pixels(&for_two) != pixels(&data));
    assert!(pixels(&for_two.for_training(&one).unwrap()) == pixels(&data));
}
