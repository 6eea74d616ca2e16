//! Devices that the CPU is not: memory that runs out in the middle of a training, as a card's does when somebody else takes it, and
//! answers that arrive while the training goes on.

use super::*;
use crate::settings::Values;
use flatout_data::generate::{Recipe, stocks::Stocks};
use flatout_engine::{Loss, Plan, Readback, Snapshot, Table};
use std::cell::Cell;
use std::sync::atomic::Ordering;

/// What a session of the CPU is made to do.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// No room for a step of many rows after a while.
    ShortOfMemory,
    /// Room for steps, but not for an evaluation.
    ShortToEvaluate,
    /// Every answer is here later.
    Late,
}

struct Odd {
    inner: Box<dyn Session>,
    steps: u64,
    way: Way,
}

/// An answer that is here when somebody has looked for it some times.
struct Later<T> {
    value: T,
    looks: Cell<u32>,
}

impl<T: Send> Readback<T> for Later<T> {
    fn is_ready(&self) -> bool {
        self.looks.set(self.looks.get() + 1);
        self.looks.get() > 5
    }

    fn wait(self: Box<Self>) -> Result<T, EngineError> {
        Ok(self.value)
    }
}

impl Odd {
    fn answer<T: Send + 'static>(
        &self,
        answer: Box<dyn Readback<T>>,
    ) -> Result<Box<dyn Readback<T>>, EngineError> {
        if self.way != Way::Late {
            return Ok(answer);
        }
        let (value, looks) = (answer.wait()?, Cell::new(0));
        Ok(Box::new(Later { value, looks }))
    }
}

const FITS: usize = 20;
const STEPS: u64 = 7;

fn open(settings: &Settings, data: &TrainingData, micro: usize) -> Result<Opened, TrainError> {
    odd(settings, data, micro, Way::ShortOfMemory)
}

fn open_to_evaluate(settings: &Settings, data: &TrainingData, micro: usize) -> Result<Opened, TrainError> {
    odd(settings, data, micro, Way::ShortToEvaluate)
}

fn open_late(settings: &Settings, data: &TrainingData, micro: usize) -> Result<Opened, TrainError> {
    odd(settings, data, micro, Way::Late)
}

fn odd(settings: &Settings, data: &TrainingData, micro: usize, way: Way) -> Result<Opened, TrainError> {
    let opened = fitting::open_once(settings, data, micro)?;
    Ok(Opened {
        session: Box::new(Odd {
            inner: opened.session,
            steps: 0,
            way,
        }),
        ..opened
    })
}

impl Session for Odd {
    fn step(&mut self, learning_rate: f64) -> Result<(), EngineError> {
        self.accumulate(1.0)?;
        self.update(learning_rate)
    }
    fn accumulate(&mut self, weight: f64) -> Result<(), EngineError> {
        self.steps += 1;
        if self.way == Way::ShortOfMemory && self.steps > STEPS && self.plan().batch() > FITS {
            return Err(EngineError::OutOfMemory {
                wanted_bytes: 1 << 30,
            });
        }
        self.inner.accumulate(weight)
    }
    fn plan(&self) -> &Plan {
        self.inner.plan()
    }
    fn device(&self) -> String {
        self.inner.device()
    }
    fn attach(&mut self, name: &str, table: Table) -> Result<(), EngineError> {
        self.inner.attach(name, table)
    }
    fn set(&mut self, name: &str, values: &[f32]) -> Result<(), EngineError> {
        self.inner.set(name, values)
    }
    fn set_indices(&mut self, name: &str, values: &[i32]) -> Result<(), EngineError> {
        self.inner.set_indices(name, values)
    }
    fn set_valid_rows(&mut self, rows: usize) {
        self.inner.set_valid_rows(rows);
    }
    fn set_epoch(&mut self, epoch: u64) {
        self.inner.set_epoch(epoch);
    }

    fn update(&mut self, learning_rate: f64) -> Result<(), EngineError> {
        self.inner.update(learning_rate)
    }
    fn evaluate(&mut self) -> Result<(), EngineError> {
        self.inner.evaluate()
    }
    fn evaluate_keeping(&mut self, name: &str) -> Result<(), EngineError> {
        if self.way == Way::ShortToEvaluate && self.plan().batch() > FITS {
            return Err(EngineError::OutOfMemory {
                wanted_bytes: 1 << 30,
            });
        }
        self.inner.evaluate_keeping(name)
    }
    fn take_kept(&mut self) -> Result<Vec<f32>, EngineError> {
        self.inner.take_kept()
    }
    fn ask_kept(&mut self) -> Result<Box<dyn Readback<Vec<f32>>>, EngineError> {
        let answer = self.inner.ask_kept()?;
        self.answer(answer)
    }
    fn ask_loss(&mut self) -> Result<Box<dyn Readback<Loss>>, EngineError> {
        let answer = self.inner.ask_loss()?;
        self.answer(answer)
    }
    fn set_loss(&mut self, sum: f64, rows: u64) -> Result<(), EngineError> {
        self.inner.set_loss(sum, rows)
    }
    fn snapshot(&mut self) -> Result<Snapshot, EngineError> {
        let answer = self.inner.snapshot()?;
        self.answer(answer)
    }
    fn take_loss(&mut self) -> Option<f64> {
        self.inner.take_loss()
    }
    fn take_evaluation_loss(&mut self) -> Option<f64> {
        self.inner.take_evaluation_loss()
    }
    fn gradient_norm(&mut self) -> f64 {
        self.inner.gradient_norm()
    }
    fn read(&mut self, name: &str, values: &mut [f32]) -> Result<(), EngineError> {
        self.inner.read(name, values)
    }
    fn write(&mut self, name: &str, values: &[f32]) -> Result<(), EngineError> {
        self.inner.write(name, values)
    }
    fn read_gradient(&mut self, name: &str, values: &mut [f32]) -> Result<(), EngineError> {
        self.inner.read_gradient(name, values)
    }
    fn position(&self) -> Position {
        self.inner.position()
    }
    fn set_position(&mut self, position: Position) {
        self.inner.set_position(position);
    }
    fn memory_bytes(&self) -> u64 {
        self.inner.memory_bytes()
    }
}

fn train(folder: &Path, output: &str, opener: fitting::Opener) -> (f64, Vec<Report>) {
    train_with(folder, output, opener, &[])
}

fn train_with(
    folder: &Path,
    output: &str,
    opener: fitting::Opener,
    more: &[(&'static str, &str)],
) -> (f64, Vec<Report>) {
    let (outcome, reports) = train_until(folder, output, opener, more, (epochs::REPORT_S, None));
    (outcome.best_loss.unwrap(), reports)
}

/// Trains with signs of life this many seconds apart, until this many of them were reported.
fn train_until(
    folder: &Path,
    output: &str,
    opener: fitting::Opener,
    more: &[(&'static str, &str)],
    (report_s, stop_after): (f64, Option<usize>),
) -> (Outcome, Vec<Report>) {
    let mut values: Values = [
        ("data", folder.join("data").display().to_string()),
        ("output_dir", folder.join(output).display().to_string()),
        ("device", "cpu".to_owned()),
        ("hidden_size", "8".to_owned()),
        ("num_layers", "1".to_owned()),
        ("sequence_length", "5".to_owned()),
        ("batch_size", "64".to_owned()),
        ("epochs", "2".to_owned()),
    ]
    .into();
    for (key, value) in more {
        values.insert(key, (*value).to_owned());
    }
    let configuration = Configuration::read(None, &values).unwrap();
    let (interrupted, mut reports) = (AtomicBool::new(false), Vec::new());
    let mut seen = 0;
    let mut report = |report: &Report| {
        seen += usize::from(matches!(report, Report::Steps { .. }));
        interrupted.store(stop_after.is_some_and(|limit| seen >= limit), Ordering::Relaxed);
        reports.push(report.clone());
    };
    let mut trainer = Trainer::new(&configuration, &interrupted, &mut report).unwrap();
    (trainer.opener, trainer.report_s) = (opener, report_s);
    let outcome = trainer.run().unwrap();
    (outcome, reports)
}

fn small_data(folder: &Path) {
    let stocks = Stocks {
        stocks: 4,
        days: 200,
        ..Stocks::default()
    };
    Recipe::Stocks(stocks)
        .generate(&folder.join("data"), Some(1))
        .unwrap();
}

/// Epochs are closed while the next ones are trained: scores, losses and checkpoints are those of their own moment all the same.
#[test]
fn answers_that_are_late_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    small_data(folder.path());
    let tensors = |output: &str, name: &str| {
        let bytes = std::fs::read(folder.path().join(output).join(name)).unwrap();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let mut all: Vec<_> = file
            .tensors()
            .into_iter()
            .map(|(name, view)| (name, view.data().to_vec()))
            .collect();
        all.sort();
        all
    };
    let every = [
        ("epochs", "6"),
        ("eval_interval", "1"),
        ("checkpoint_interval", "2"),
        // The best epoch is one in the middle.
        ("learning_rate", "0.3"),
        ("entity_dropout", "0"),
    ];
    let stopping = [every[0], every[1], every[3], every[4], ("early_stopping", "2")];
    for (number, more) in [&every[..], &stopping[..]].into_iter().enumerate() {
        let outputs = [format!("soon{number}"), format!("late{number}")];
        let openers = [fitting::open_once as fitting::Opener, open_late];
        let told = [0, 1].map(|which| {
            let (best, reports) = train_with(folder.path(), &outputs[which], openers[which], more);
            let epochs = reports.iter().filter_map(|report| match report {
                Report::Epoch {
                    epoch,
                    step,
                    loss,
                    rate,
                    scores,
                    ..
                } => Some((*epoch, *step, *loss, *rate, scores.map(|scores| scores.loss))),
                _ => None,
            });
            // However late it is told, the best checkpoint is said to be of the epoch with the best score.
            let kept = reports.iter().rev().find_map(|report| match report {
                Report::Saved {
                    best: true,
                    phase: None,
                    epoch,
                    ..
                } => Some(*epoch),
                _ => None,
            });
            (best, epochs.collect::<Vec<_>>(), kept)
        });
        assert_eq!(told[0], told[1]);
        let of_best = told[0].1.iter().find(|epoch| epoch.4 == Some(told[0].0));
        assert_eq!(told[0].2, of_best.map(|epoch| epoch.0));
        let scores: Vec<f64> = told[0].1.iter().filter_map(|epoch| epoch.4).collect();
        assert!(scores.last().is_some_and(|last| *last > told[0].0), "{scores:?}");
        for name in ["best.safetensors", "last.safetensors"] {
            assert_eq!(tensors(&outputs[0], name), tensors(&outputs[1], name), "{name}");
        }
    }
}

/// What an epoch and a logged step report, to the last bit.
fn losses(reports: &[Report]) -> Vec<(u64, u64, u64)> {
    let each = reports.iter().filter_map(|report| match report {
        Report::Epoch { epoch, loss, .. } => Some((*epoch, 0, loss.to_bits())),
        Report::Steps {
            epoch,
            step,
            loss: Some(loss),
            line: true,
            ..
        } => Some((*epoch, *step, loss.to_bits())),
        _ => None,
    });
    each.collect()
}

/// However often the loss is read on the way, it is the same number.
#[test]
fn reading_the_loss_more_often_does_not_change_it() {
    let folder = tempfile::tempdir().unwrap();
    small_data(folder.path());
    let more = [("epochs", "3"), ("log_interval", "3"), ("batch_size", "16")];
    let train = |output: &str, opener: fitting::Opener, report_s: f64| {
        let (_, reports) = train_until(folder.path(), output, opener, &more, (report_s, None));
        losses(&reports)
    };
    let never = train("never", fitting::open_once, f64::INFINITY);
    assert!(never.len() > 10, "{never:?}");
    assert_eq!(never, train("always", fitting::open_once, 0.0));
    assert_eq!(never, train("late", open_late, 0.0));
}

#[test]
fn a_resumed_run_reports_the_same_losses() {
    let folder = tempfile::tempdir().unwrap();
    small_data(folder.path());
    let more = [("epochs", "3"), ("log_interval", "4"), ("batch_size", "16")];
    let whole = train_until(
        folder.path(),
        "whole",
        fitting::open_once,
        &more,
        (f64::INFINITY, None),
    );
    let whole = losses(&whole.1);
    for stop_after in [1, 3, 6, 30, 45] {
        let output = format!("stopped{stop_after}");
        let (outcome, first) = train_until(
            folder.path(),
            &output,
            fitting::open_once,
            &more,
            (0.0, Some(stop_after)),
        );
        assert!(outcome.interrupted);
        let resume = folder.path().join(&output).display().to_string();
        let mut rest = more.to_vec();
        rest.push(("resume", &resume));
        let (_, second) = train_until(
            folder.path(),
            &output,
            fitting::open_once,
            &rest,
            (f64::INFINITY, None),
        );
        assert_eq!(
            whole,
            [losses(&first), losses(&second)].concat(),
            "stopped after {stop_after}"
        );
    }
}

#[test]
fn memory_that_runs_out_on_the_way_costs_parts_not_results() {
    let folder = tempfile::tempdir().unwrap();
    small_data(folder.path());
    let (whole, _) = train(folder.path(), "whole", fitting::open_once);
    for (output, opener) in [
        ("parts", open as fitting::Opener),
        ("evaluated", open_to_evaluate),
    ] {
        let (parts, reports) = train(folder.path(), output, opener);
        assert!((whole - parts).abs() < 1e-3 * whole, "{whole} against {parts}");
        let sizes = reports.iter().filter_map(|report| match report {
            Report::Start {
                batch_size,
                micro_batch_size,
                ..
            } => Some((*batch_size, *micro_batch_size)),
            _ => None,
        });
        assert_eq!(sizes.collect::<Vec<_>>(), [(64, 64), (64, 32), (64, 16)]);
        let epochs = reports.iter().filter_map(|report| match report {
            Report::Epoch { scores, loss, .. } => Some((scores.is_some(), *loss > 0.0)),
            _ => None,
        });
        let epochs: Vec<_> = epochs.collect();
        assert_eq!(epochs.len(), 2);
        assert!(epochs[1].0 && epochs.iter().all(|(_, has_loss)| *has_loss));
        assert!(folder.path().join(output).join("last.safetensors").is_file());
    }
}
