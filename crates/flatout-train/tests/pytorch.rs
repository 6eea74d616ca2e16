//! Real PyTorch beside the engine: a checkpoint loaded by `examples/load_in_pytorch.py` predicts the same, and from one file of initial
//! weights and one of batch indices both train along the same curve.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use flatout_data::generate::{Recipe, captcha, images, interactions};
use flatout_engine::{Session, Table};
use flatout_testing::safetensors_python as python;
use flatout_train::checkpoint::{self, Extra, Progress};
use flatout_train::data::{Preparation, TrainingData};
use flatout_train::target::Task;
use flatout_train::{Configuration, Settings, device, models, predict};
use std::path::{Path, PathBuf};
use std::process::Command;

/// One kind of data with a model for it.
struct Case {
    name: &'static str,
    recipe: Recipe,
    more: &'static [(&'static str, &'static str)],
}

fn cases() -> Vec<Case> {
    let stocks = || {
        let stocks = flatout_data::generate::stocks::Stocks {
            stocks: 8,
            days: 260,
            seed: 7,
            ..Default::default()
        };
        Recipe::Stocks(stocks)
    };
    let shapes = images::ImageClasses {
        images: 160,
        ..Default::default()
    };
    vec![
        Case {
            name: "lstm",
            recipe: stocks(),
            more: &[("num_layers", "2")],
        },
        Case {
            name: "gru",
            recipe: stocks(),
            more: &[("model_type", "gru"), ("num_layers", "2")],
        },
        Case {
            name: "bidirectional lstm",
            recipe: stocks(),
            more: &[("num_layers", "2"), ("bidirectional", "true")],
        },
        Case {
            name: "bidirectional gru",
            recipe: stocks(),
            more: &[
                ("model_type", "gru"),
                ("num_layers", "1"),
                ("bidirectional", "true"),
            ],
        },
        Case {
            name: "tcn",
            recipe: stocks(),
            more: &[
                ("model_type", "tcn"),
                ("num_layers", "3"),
                ("sequence_length", "13"),
            ],
        },
        Case {
            name: "tcn-wide",
            recipe: stocks(),
            // As wide as the inputs: the first block has no projection.
            more: &[
                ("model_type", "tcn"),
                ("num_layers", "2"),
                ("hidden_size", "24"),
                ("kernel_size", "5"),
            ],
        },
        Case {
            name: "transformer",
            recipe: stocks(),
            more: &[
                ("model_type", "transformer"),
                ("num_layers", "2"),
                ("num_heads", "2"),
            ],
        },
        Case {
            name: "mlp",
            recipe: Recipe::Interactions(interactions::Interactions::of_size(3000, 3)),
            more: &[("num_layers", "2"), ("betas", "0.8,0.95"), ("eps", "1e-5")],
        },
        Case {
            name: "wide-deep",
            recipe: Recipe::Interactions(interactions::Interactions::of_size(3000, 3)),
            more: &[("model_type", "wide-deep"), ("num_layers", "2")],
        },
        Case {
            name: "tabular-transformer",
            recipe: Recipe::Interactions(interactions::Interactions::of_size(3000, 3)),
            more: &[
                ("model_type", "tabular-transformer"),
                ("num_layers", "2"),
                ("num_heads", "2"),
            ],
        },
        Case {
            name: "resnet",
            recipe: Recipe::Images(shapes.clone()),
            more: &[
                ("model_type", "resnet"),
                ("num_layers", "10"),
                ("hidden_size", "64"),
                ("input_size", "64"),
                ("batch_size", "32"),
                // Slow enough that rounding does not decide how few images are learned by heart.
                ("learning_rate", "0.0003"),
            ],
        },
        Case {
            name: "cnn",
            recipe: Recipe::Images(shapes),
            more: &[("num_layers", "3"), ("input_size", "24"), ("batch_size", "32")],
        },
        Case {
            name: "heatmap",
            recipe: Recipe::Captcha(captcha::Captcha { images: 96, seed: 1 }),
            more: &[
                ("model_type", "heatmap"),
                ("num_layers", "3"),
                // Odd sizes on the way: a level is not twice the one below.
                ("input_size", "44,22"),
                ("batch_size", "32"),
                ("learning_rate", "0.0005"),
            ],
        },
        Case {
            name: "cnn-positions",
            recipe: Recipe::Captcha(captcha::Captcha { images: 96, seed: 1 }),
            more: &[
                ("num_layers", "2"),
                ("input_size", "40,20"),
                ("batch_size", "32"),
                ("channels", "3"),
                // Slow enough that rounding does not decide how few pictures are learnt by heart.
                ("learning_rate", "0.0003"),
            ],
        },
    ]
}

struct Prepared {
    folder: tempfile::TempDir,
    settings: Settings,
    data: TrainingData,
    yaml: String,
}

impl Prepared {
    fn of(case: &Case, also: &[(&'static str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        case.recipe.generate(&data, Some(2)).unwrap();
        let mut more = vec![("cache", "false"), ("learning_rate", "0.002")];
        more.extend(case.more);
        more.extend(also);
        let values = support::values(&data, &folder.path().join("out"), &more);
        let configuration = Configuration::read(None, &values).unwrap();
        let settings = configuration.settings.clone();
        Self {
            data: TrainingData::load(&settings).unwrap(),
            yaml: configuration.yaml(),
            settings,
            folder,
        }
    }

    fn batch(&self) -> usize {
        self.settings.batch_size.unwrap()
    }

    fn session(&self) -> Box<dyn Session> {
        let plan = || models::plan(&self.settings, &self.data.preparation, self.batch());
        let mut session = device::open(&self.settings, plan).unwrap().session;
        for (name, table) in &self.data.tables {
            session.attach(name, table.clone()).unwrap();
        }
        session
    }

    fn save(&self, session: &mut dyn Session, preparation: &Preparation) -> PathBuf {
        let path = self.folder.path().join("weights.safetensors");
        let extra = Extra {
            progress: &Progress::default(),
            configuration: &self.yaml,
            preparation,
        };
        checkpoint::save(&path, session, &extra).unwrap();
        path
    }

    /// Names a batch to the session.
    fn name(&self, session: &mut dyn Session, samples: &[u32]) {
        let indices = |value: &dyn Fn(u32) -> i32| samples.iter().map(|&s| value(s)).collect::<Vec<_>>();
        session.set_indices("start", &indices(&|s| s as i32)).unwrap();
        let rows = indices(&|s| self.data.label_row(s) as i32);
        session.set_indices("label_row", &rows).unwrap();
        if session.plan().find("entity").is_ok() {
            let entities = indices(&|s| self.data.entity(s));
            session.set_indices("entity", &entities).unwrap();
        }
    }

    /// The tables as files, and what PyTorch's side needs to know about them.
    fn job(&self, checkpoint: &Path, samples: &[u32]) -> PathBuf {
        let folder = self.folder.path().join("tables");
        std::fs::create_dir_all(&folder).unwrap();
        let mut rows = 0;
        for (name, table) in &self.data.tables {
            let bytes: Vec<u8> = match table {
                Table::F32(values) => (**values).as_ref().iter().flat_map(|v| v.to_le_bytes()).collect(),
                Table::I32(values) => (**values).as_ref().iter().flat_map(|v| v.to_le_bytes()).collect(),
                Table::U8(values) => (**values).as_ref().to_vec(),
            };
            rows = if *name == "labels" { table.len() } else { rows };
            std::fs::write(folder.join(name), bytes).unwrap();
        }
        let whole =
            |values: &mut dyn Iterator<Item = i32>| values.flat_map(i32::to_le_bytes).collect::<Vec<u8>>();
        let entities = whole(&mut (0..rows as u32).map(|row| self.data.entity(row)));
        std::fs::write(folder.join("entities"), entities).unwrap();
        let samples = whole(&mut samples.iter().map(|&sample| sample as i32));
        std::fs::write(folder.join("samples"), samples).unwrap();
        let loader = self.folder.path().join("load_in_pytorch.py");
        std::fs::write(&loader, LOADER).unwrap();
        let job = serde_json::json!({
            "loader": loader,
            "device": self.settings.device,
            "folder": folder,
            "checkpoint": checkpoint,
            "batch": self.batch(),
            "sequence_length": self.settings.sequence_length,
            "label_offset": self.data.label_row(0),
            "learning_rate": self.settings.learning_rate,
            "weight_decay": self.settings.weight_decay,
            "betas": [self.settings.betas.0, self.settings.betas.1],
            "eps": self.settings.eps,
            "clip_norm": self.settings.clip_norm.unwrap(),
        });
        let path = self.folder.path().join("job.json");
        std::fs::write(&path, job.to_string()).unwrap();
        path
    }
}

/// PyTorch's side, carried along: the test also runs on GPU machines without the sources.
const LOADER: &str = include_str!("../../../examples/load_in_pytorch.py");
const COMPARE: &str = include_str!("pytorch/compare.py");

/// One process for all jobs: starting PyTorch takes longer than any of them.
fn torch(python: &Path, what: &str, jobs: &[PathBuf]) -> Vec<Vec<f64>> {
    let output = Command::new(python)
        .args(["-c", COMPARE])
        .arg(what)
        .args(jobs)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Steps of the curve, and steps that are averaged into one of its points.
const STEPS: usize = 80;
const POINT: usize = 10;

/// A few passes over the training samples, shuffled.
fn batches(prepared: &Prepared) -> Vec<u32> {
    let order = flatout_data::EpochOrder::new(prepared.data.train.clone(), prepared.batch(), true, Some(5));
    let mut samples = vec![0u32; prepared.batch()];
    let mut all = Vec::new();
    for step in 0..STEPS as u64 {
        let position = flatout_data::Position {
            epoch: step / order.batches_per_epoch(),
            batch: step % order.batches_per_epoch(),
        };
        assert_eq!(order.fill(position, &mut samples), prepared.batch());
        all.extend_from_slice(&samples);
    }
    all
}

fn points(losses: &[f64]) -> Vec<f64> {
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    losses.chunks(POINT).map(mean).collect()
}

#[test]
fn the_loss_falls_along_pytorchs_curve() {
    let Some(python) = python() else { return };
    along_the_curve(&python, &cases(), &[]);
}

/// PyTorch computes in f32 on the same card, flatout in each of its precisions.
#[test]
#[ignore = "needs a GPU"]
fn on_a_gpu_the_loss_follows_pytorch_in_every_precision() {
    let Some(python) = python() else { return };
    let mut cases = cases();
    let stocks = flatout_data::generate::stocks::Stocks {
        stocks: 64,
        days: 400,
        seed: 7,
        ..Default::default()
    };
    cases.push(Case {
        name: "lstm 3x256",
        recipe: Recipe::Stocks(stocks),
        more: &[
            ("num_layers", "3"),
            ("hidden_size", "256"),
            ("sequence_length", "60"),
            ("batch_size", "512"),
            ("learning_rate", "0.001"),
        ],
    });
    for amp in ["off", "tf32", "bf16", "fp16"] {
        eprintln!("{amp}:");
        along_the_curve(&python, &cases, &[("device", "cuda"), ("amp", amp)]);
    }
}

fn along_the_curve(python: &Path, cases: &[Case], also: &[(&'static str, &str)]) {
    let prepared: Vec<(&Case, Prepared)> = cases
        .iter()
        .map(|case| (case, Prepared::of(case, also)))
        .collect();
    let sessions = prepared.iter().map(|(_, prepared)| prepared.session());
    let mut sessions: Vec<Box<dyn Session>> = sessions.collect();
    let jobs = prepared
        .iter()
        .zip(&mut sessions)
        .map(|((_, prepared), session)| {
            let weights = prepared.save(&mut **session, &prepared.data.preparation);
            prepared.job(&weights, &batches(prepared))
        });
    let jobs: Vec<PathBuf> = jobs.collect();
    let all = torch(python, "curve", &jobs);
    for (((case, prepared), session), theirs) in prepared.iter().zip(&mut sessions).zip(all) {
        let mut ours = Vec::new();
        for batch in batches(prepared).chunks(prepared.batch()) {
            prepared.name(&mut **session, batch);
            session.step(prepared.settings.learning_rate).unwrap();
            ours.push(session.take_loss().unwrap());
        }
        let (ours, theirs) = (points(&ours), points(&theirs));
        let apart = ours.iter().zip(&theirs).map(|(one, two)| (one / two - 1.0).abs());
        let (apart, name) = (apart.fold(0.0, f64::max), case.name);
        eprintln!(
            "{name}: at most {:.4}% apart\n  flatout {ours:.5?}\n  PyTorch {theirs:.5?}",
            apart * 100.0
        );
        assert!(
            ours[STEPS / POINT - 1] < 0.97 * ours[0],
            "{name} learns nothing: {ours:?}"
        );
        assert!(apart < 0.02, "{name}");
    }
}

#[test]
fn a_checkpoint_predicts_the_same_in_pytorch() {
    let Some(python) = python() else { return };
    let (mut jobs, mut wanted, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for case in cases() {
        let prepared = Prepared::of(&case, &[]);
        let mut session = prepared.session();
        for batch in batches(&prepared).chunks(prepared.batch()).take(20) {
            prepared.name(&mut *session, batch);
            session.step(prepared.settings.learning_rate).unwrap();
        }
        let samples = &prepared.data.validation;
        let samples = samples[..prepared.batch().min(samples.len())].to_vec();
        // The tables are standardised already, so what PyTorch does to raw values must do nothing here.
        let mut preparation = prepared.data.preparation.clone();
        preparation.mean.fill(0.0);
        preparation.std.fill(1.0);
        let weights = prepared.save(&mut *session, &preparation);
        jobs.push(prepared.job(&weights, &samples));
        wanted.push((case.name, predictions(&prepared, &mut *session, &samples)));
        kept.push(prepared);
    }
    for ((name, ours), theirs) in wanted.iter().zip(torch(&python, "predict", &jobs)) {
        assert_eq!(theirs.len(), ours.len(), "{name}");
        for (own, other) in ours.iter().zip(&theirs) {
            let apart = (f64::from(*own) - other).abs();
            assert!(
                apart < 1e-4 * (1.0 + other.abs()),
                "{name}: {own} against {other}"
            );
        }
    }
}

/// In the label's own units; classes as logits.
fn predictions(prepared: &Prepared, session: &mut dyn Session, samples: &[u32]) -> Vec<f32> {
    let mut all = samples.to_vec();
    all.resize(prepared.batch(), samples[0]);
    prepared.name(session, &all);
    session.evaluate().unwrap();
    let target = prepared.data.target();
    let outputs = target.outputs();
    let mut values = vec![0f32; prepared.batch() * outputs];
    session.read("prediction", &mut values).unwrap();
    values.truncate(samples.len() * outputs);
    if target.task == Task::Regression {
        for (place, value) in values.iter_mut().enumerate() {
            *value = target.restore(place % outputs, *value);
        }
    }
    values
}

#[test]
fn raw_values_go_the_same_way_from_file_to_prediction() {
    let Some(python) = python() else { return };
    let case = &cases()[0];
    let prepared = Prepared::of(case, &[]);
    let output = prepared.settings.output_dir.clone();
    let data = prepared.settings.data.clone().unwrap();
    let more = [("epochs", "1"), ("cache", "false")];
    support::train(&support::values(&data, &output, &more), None).unwrap();
    let flags = [("device", "cpu".to_owned())].into();
    let ours = predict::predict(&output, &data, &flags).unwrap();
    let options = flatout_data::PanelOptions {
        label: "return_pct".into(),
        ..Default::default()
    };
    let panel = flatout_data::load_panel(&data, &options).unwrap();
    let length = prepared.settings.sequence_length as u32;
    let windows = panel
        .entities
        .iter()
        .flat_map(|entity| entity.rows.start..entity.rows.end + 1 - length);
    let samples: Vec<u32> = windows.take(50).collect();
    let job = prepared.job(&output.join("best.safetensors"), &samples);
    let raw: Vec<u8> = panel
        .features
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    std::fs::write(prepared.folder.path().join("tables/features"), raw).unwrap();
    let theirs = torch(&python, "predict", &[job]).remove(0);
    let Some((_, predict::Column::Real(ours))) =
        ours.columns.into_iter().find(|(name, _)| name == "prediction")
    else {
        panic!("no predictions");
    };
    for (own, other) in ours.iter().zip(&theirs) {
        assert!((f64::from(*own) - other).abs() < 1e-4, "{own} against {other}");
    }
}
