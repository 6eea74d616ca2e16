//! Memory that runs out in the middle of a training, as a card's does when somebody else takes it.

use super::*;
use crate::settings::Values;
use flatout_data::generate::{Recipe, stocks::Stocks};
use flatout_engine::{Plan, Table};

/// A session of the CPU that has no room for a step of many rows after a while.
struct RunsOut {
    inner: Box<dyn Session>,
    steps: u64,
    /// Room for steps, but not for an evaluation.
    evaluating: bool,
}

const FITS: usize = 20;
const STEPS: u64 = 7;

fn open(settings: &Settings, data: &TrainingData, micro: usize) -> Result<Opened, TrainError> {
    running_out(settings, data, micro, false)
}

fn open_to_evaluate(settings: &Settings, data: &TrainingData, micro: usize) -> Result<Opened, TrainError> {
    running_out(settings, data, micro, true)
}

fn running_out(
    settings: &Settings,
    data: &TrainingData,
    micro: usize,
    evaluating: bool,
) -> Result<Opened, TrainError> {
    let opened = fitting::open_once(settings, data, micro)?;
    Ok(Opened {
        session: Box::new(RunsOut {
            inner: opened.session,
            steps: 0,
            evaluating,
        }),
        ..opened
    })
}

impl Session for RunsOut {
    fn step(&mut self, learning_rate: f64) -> Result<(), EngineError> {
        self.accumulate(1.0)?;
        self.update(learning_rate)
    }
    fn accumulate(&mut self, weight: f64) -> Result<(), EngineError> {
        self.steps += 1;
        if !self.evaluating && self.steps > STEPS && self.plan().batch() > FITS {
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
        if self.evaluating && self.plan().batch() > FITS {
            return Err(EngineError::OutOfMemory {
                wanted_bytes: 1 << 30,
            });
        }
        self.inner.evaluate_keeping(name)
    }
    fn take_kept(&mut self) -> Result<Vec<f32>, EngineError> {
        self.inner.take_kept()
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
    let values: Values = [
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
    let configuration = Configuration::read(None, &values).unwrap();
    let (interrupted, mut reports) = (AtomicBool::new(false), Vec::new());
    let mut report = |report: &Report| reports.push(report.clone());
    let mut trainer = Trainer::new(&configuration, &interrupted, &mut report).unwrap();
    trainer.opener = opener;
    let outcome = trainer.run().unwrap();
    (outcome.best_loss.unwrap(), reports)
}

#[test]
fn memory_that_runs_out_on_the_way_costs_parts_not_results() {
    let folder = tempfile::tempdir().unwrap();
    let stocks = Stocks {
        stocks: 4,
        days: 200,
        ..Stocks::default()
    };
    Recipe::Stocks(stocks)
        .generate(&folder.path().join("data"), Some(1))
        .unwrap();
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
