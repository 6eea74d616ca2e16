//! The loop: order, step, evaluate, keep. It never reads the loss back but when it is to be shown.

use crate::checkpoint::{self, Extra, Progress};
use crate::configuration::Configuration;
use crate::data::TrainingData;
use crate::metrics::{RegressionMeter, Scores};
use crate::recorder::Recorder;
use crate::schedule::{Schedule, Shape as ScheduleShape};
use crate::settings::Settings;
use crate::{TrainError, device, models};
use flatout_core::error::FileError;
use flatout_core::files::write_atomically;
use flatout_core::{Message, message};
use flatout_data::{EpochOrder, Position};
use flatout_engine::Session;
use flatout_telemetry::{EventKind, Phase};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// What a training tells the one who watches it.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Report {
    /// Before the first step: everything that is really in force.
    Start {
        device: String,
        precision: String,
        model: String,
        parameters: usize,
        samples: usize,
        validation_samples: usize,
        batch_size: usize,
        steps_an_epoch: u64,
        data_bytes: usize,
        memory_bytes: u64,
        seconds: f64,
        #[serde(skip)]
        notes: Vec<Message>,
    },
    Steps {
        phase: String,
        epoch: u64,
        step: u64,
        of: u64,
        samples_s: f64,
        loss: Option<f64>,
        seconds_left: f64,
    },
    Epoch {
        phase: String,
        epoch: u64,
        epochs: u64,
        loss: f64,
        samples_s: f64,
        seconds: f64,
        rate: f64,
        scores: Option<Scores>,
    },
    Saved {
        path: PathBuf,
        best: bool,
    },
    Stopped {
        early: bool,
    },
}

/// How it ended.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    pub scores: Option<Scores>,
    pub best_loss: Option<f64>,
    pub samples_s: f64,
    pub seconds: f64,
    pub output_dir: PathBuf,
    /// Ctrl-C: saved, to be resumed.
    pub interrupted: bool,
}

/// Seconds between lines of progress inside an epoch, for those who watch.
const REPORT_S: f64 = 0.5;

pub struct Trainer<'a> {
    configuration: &'a Configuration,
    data: TrainingData,
    recorder: Recorder,
    progress: Progress,
    interrupted: &'a AtomicBool,
    report: &'a mut dyn FnMut(&Report),
    metrics: String,
    /// Trained on since the loss was last read.
    unread_samples: u64,
    trained_samples: u64,
    trained_s: f64,
    last_scores: Option<Scores>,
}

impl<'a> Trainer<'a> {
    /// Loads the data and makes the output folder.
    pub fn new(
        configuration: &'a Configuration,
        interrupted: &'a AtomicBool,
        report: &'a mut dyn FnMut(&Report),
    ) -> Result<Self, TrainError> {
        let settings = &configuration.settings;
        let output = &settings.output_dir;
        std::fs::create_dir_all(output).map_err(|source| FileError::writing(output, source))?;
        let data = TrainingData::load(settings)?;
        write_atomically(&output.join("config.yaml"), configuration.yaml().as_bytes())?;
        let run = if settings.resume.is_some() {
            free_folder(output)
        } else {
            fresh_folder(output)?
        };
        Ok(Self {
            recorder: Recorder::create(&run, &name_of(output))?,
            configuration,
            data,
            progress: Progress::default(),
            interrupted,
            report,
            metrics: String::new(),
            unread_samples: 0,
            trained_samples: 0,
            trained_s: 0.0,
            last_scores: None,
        })
    }

    pub fn run(mut self) -> Result<Outcome, TrainError> {
        let begun = Instant::now();
        let result = self.run_phases(begun);
        self.recorder.finish(i32::from(result.is_err()));
        let interrupted = result?;
        Ok(Outcome {
            scores: self.last_scores,
            best_loss: self.progress.best,
            samples_s: self.trained_samples as f64 / self.trained_s.max(1e-9),
            seconds: begun.elapsed().as_secs_f64(),
            output_dir: self.configuration.settings.output_dir.clone(),
            interrupted,
        })
    }

    fn run_phases(&mut self, begun: Instant) -> Result<bool, TrainError> {
        let mut parameters: Option<PathBuf> = self
            .configuration
            .settings
            .resume
            .as_deref()
            .map(checkpoint::find);
        if let Some(path) = &parameters {
            self.progress = checkpoint::describe(path)?.progress;
        }
        let configuration = self.configuration;
        for index in self.progress.phase..configuration.phases.len() {
            let phase = &configuration.phases[index];
            let settings = &phase.settings;
            let micro = settings.batch_size.div_ceil(settings.gradient_accumulation_steps);
            let plan = || models::plan(settings, &self.data.shape, self.data.task, micro);
            let mut opened = device::open(settings, plan)?;
            for (name, table) in &self.data.tables {
                opened.session.attach(name, table.clone())?;
            }
            if let Some(path) = &parameters {
                checkpoint::load(path, &mut *opened.session)?;
            }
            self.progress.phase = index;
            self.facts(settings, &opened);
            let order = EpochOrder::new(self.data.train.clone(), micro, true, Some(settings.seed));
            self.start_report(&opened, settings, &order, begun);
            let run = PhaseRun {
                name: &phase.name,
                settings,
                order,
            };
            if self.train_phase(&run, &mut *opened.session)? {
                return Ok(true);
            }
            parameters = Some(self.output("last.safetensors"));
            self.progress = Progress {
                phase: index + 1,
                step: self.progress.step,
                best: None,
                ..Progress::default()
            };
        }
        Ok(false)
    }

    fn start_report(
        &mut self,
        opened: &device::Opened,
        settings: &Settings,
        order: &EpochOrder,
        begun: Instant,
    ) {
        let plan = opened.session.plan();
        let report = Report::Start {
            device: opened.session.device(),
            precision: opened.precision.to_owned(),
            model: settings.model_type.clone(),
            parameters: plan.parameter_count(),
            samples: self.data.train.len(),
            validation_samples: self.data.validation.len(),
            batch_size: settings.batch_size,
            steps_an_epoch: order.batches_per_epoch() / settings.gradient_accumulation_steps as u64,
            data_bytes: self.data.bytes,
            memory_bytes: opened.session.memory_bytes(),
            seconds: begun.elapsed().as_secs_f64(),
            notes: opened
                .notes
                .iter()
                .chain(&self.configuration.notes)
                .cloned()
                .collect(),
        };
        (self.report)(&report);
    }

    fn facts(&mut self, settings: &Settings, opened: &device::Opened) {
        let recorder = &mut self.recorder;
        recorder.fact("device", opened.device);
        recorder.fact(
            "amp.dtype",
            if opened.precision == "f32" {
                "off"
            } else {
                opened.precision
            },
        );
        recorder.fact("loader.batch_size", settings.batch_size);
        recorder.fact("step.accumulation", settings.gradient_accumulation_steps);
        recorder.fact("optimizer.class", settings.optimizer.as_str());
        recorder.fact("optimizer.fused", true);
        recorder.fact("model.class", settings.model_type.as_str());
        recorder.fact("model.parameters", opened.session.plan().parameter_count());
        recorder.fact("pipeline", if settings.naive { "naive" } else { "auto" });
    }

    /// Runs one phase to its end; true when it was interrupted.
    fn train_phase(&mut self, run: &PhaseRun, session: &mut dyn Session) -> Result<bool, TrainError> {
        let settings = run.settings;
        while self.progress.epoch < settings.epochs {
            let (began, samples_before) = (Instant::now(), self.trained_samples);
            if self.train_epoch(run, session)? {
                self.save(session, "last.safetensors", false)?;
                return Ok(true);
            }
            self.take_loss(session)?;
            let seconds = began.elapsed().as_secs_f64();
            self.trained_s += seconds;
            let loss = self.progress.epoch_loss / self.progress.epoch_samples.max(1) as f64;
            self.progress.epoch += 1;
            self.progress.batch = 0;
            (self.progress.epoch_loss, self.progress.epoch_samples) = (0.0, 0);
            let (epoch, last) = (self.progress.epoch, self.progress.epoch == settings.epochs);
            self.recorder.event(EventKind::Epoch {
                number: epoch,
                duration_ms: Some(seconds * 1e3),
            });
            let due = |interval: u64| last || epoch.is_multiple_of(interval);
            let scores = if due(settings.eval_interval) {
                self.evaluate(session, settings)?
            } else {
                None
            };
            let samples = (self.trained_samples - samples_before) as f64;
            let rate = run.schedule().rate(self.progress.step.saturating_sub(1));
            self.epoch_line(
                run,
                epoch,
                loss,
                samples / seconds.max(1e-9),
                seconds,
                rate,
                scores,
            )?;
            if let Some(scores) = scores {
                self.keep_best(session, &scores)?;
            }
            if due(settings.checkpoint_interval) {
                self.save(session, "last.safetensors", false)?;
            }
            if settings.early_stopping > 0 && self.progress.without_gain >= settings.early_stopping {
                (self.report)(&Report::Stopped { early: true });
                self.save(session, "last.safetensors", false)?;
                break;
            }
        }
        Ok(false)
    }

    /// True when it was interrupted; the position then names the next batch.
    fn train_epoch(&mut self, run: &PhaseRun, session: &mut dyn Session) -> Result<bool, TrainError> {
        let (settings, order, schedule) = (run.settings, &run.order, run.schedule());
        let group = settings.gradient_accumulation_steps as u64;
        let steps = order.batches_per_epoch() / group;
        let mut batch = BatchIndices::new(order.batch_size());
        let (began, first, mut shown_at) = (Instant::now(), self.progress.batch / group, Instant::now());
        while self.progress.batch / group < steps {
            let step_began = Instant::now();
            let rate = schedule.rate(self.progress.step);
            let mut samples = 0;
            for _ in 0..group {
                let filling = Instant::now();
                let position = Position {
                    epoch: self.progress.epoch,
                    batch: self.progress.batch,
                };
                samples += batch.fill(&self.data, order, position, session)?;
                self.recorder.add(Phase::Data, filling.elapsed().as_secs_f64());
                let computing = Instant::now();
                if group == 1 {
                    session.step(rate)?;
                } else {
                    session.accumulate(1.0 / group as f64)?;
                }
                self.recorder
                    .add(Phase::Compute, computing.elapsed().as_secs_f64());
                self.progress.batch += 1;
            }
            if group > 1 {
                session.update(rate)?;
            }
            self.progress.step += 1;
            self.trained_samples += samples as u64;
            self.progress.epoch_samples += samples as u64;
            self.unread_samples += samples as u64;
            if settings.naive {
                self.take_loss(session)?;
            }
            self.recorder.step(samples, step_began.elapsed().as_secs_f64());
            let done = self.progress.batch / group;
            let wanted = settings.log_interval > 0 && done.is_multiple_of(settings.log_interval);
            if wanted || (settings.log_interval == 0 && shown_at.elapsed().as_secs_f64() > REPORT_S) {
                // Reading the loss waits for the device: only when a line was asked for.
                let loss = if wanted { self.take_loss(session)? } else { None };
                let each = began.elapsed().as_secs_f64() / (done - first).max(1) as f64;
                let report = Report::Steps {
                    phase: run.name.to_owned(),
                    epoch: self.progress.epoch + 1,
                    step: done,
                    of: steps,
                    samples_s: settings.batch_size as f64 / each,
                    loss,
                    seconds_left: each
                        * ((settings.epochs - self.progress.epoch) * steps).saturating_sub(done) as f64,
                };
                (self.report)(&report);
                shown_at = Instant::now();
            }
            if self.interrupted.load(Ordering::Relaxed) {
                self.take_loss(session)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads the loss since the last time; a loss that is no number ends the run.
    fn take_loss(&mut self, session: &mut dyn Session) -> Result<Option<f64>, TrainError> {
        let waiting = Instant::now();
        let loss = session.take_loss();
        self.recorder.add(Phase::Sync, waiting.elapsed().as_secs_f64());
        let Some(loss) = loss else { return Ok(None) };
        if !loss.is_finite() {
            let kept = Some(self.output("last.safetensors")).filter(|path| path.exists());
            return Err(TrainError::NotFinite {
                epoch: self.progress.epoch + 1,
                step: self.progress.step,
                kept,
            });
        }
        self.recorder.loss(loss);
        // The mean since the last reading stands for all samples since then.
        self.progress.epoch_loss += loss * std::mem::take(&mut self.unread_samples) as f64;
        Ok(Some(loss))
    }

    fn evaluate(
        &mut self,
        session: &mut dyn Session,
        settings: &Settings,
    ) -> Result<Option<Scores>, TrainError> {
        let began = Instant::now();
        let order = EpochOrder::new(self.data.validation.clone(), session.plan().batch(), false, None);
        let mut batch = BatchIndices::new(order.batch_size());
        let mut meter = RegressionMeter::default();
        let mut predictions = vec![0f32; order.batch_size()];
        for number in 0..order.batches_per_epoch() {
            let count = batch.fill(
                &self.data,
                &order,
                Position {
                    epoch: 0,
                    batch: number,
                },
                session,
            )?;
            session.set_valid_rows(count);
            session.evaluate()?;
            session.read("prediction", &mut predictions)?;
            for (&sample, &prediction) in batch.samples[..count].iter().zip(&predictions) {
                meter.add(prediction, self.data.label(sample));
            }
            if settings.naive {
                self.recorder.flush_if_due();
            }
        }
        session.set_valid_rows(session.plan().batch());
        session.take_evaluation_loss();
        let seconds = began.elapsed().as_secs_f64();
        self.recorder.add(Phase::Eval, seconds);
        self.recorder.event(EventKind::Eval {
            duration_ms: seconds * 1e3,
            batches: Some(order.batches_per_epoch()),
            place: None,
        });
        self.last_scores = meter.scores().or(self.last_scores);
        Ok(meter.scores())
    }

    fn keep_best(&mut self, session: &mut dyn Session, scores: &Scores) -> Result<(), TrainError> {
        if self.progress.best.is_none_or(|best| scores.loss < best) {
            self.progress.best = Some(scores.loss);
            self.progress.without_gain = 0;
            return self.save(session, "best.safetensors", true);
        }
        self.progress.without_gain += 1;
        Ok(())
    }

    fn save(&mut self, session: &mut dyn Session, name: &str, best: bool) -> Result<(), TrainError> {
        let began = Instant::now();
        let position = session.position();
        (self.progress.updates, self.progress.micro_batches) = (position.updates, position.micro_batches);
        let path = self.output(name);
        let extra = Extra {
            progress: &self.progress,
            configuration: &self.configuration.yaml(),
            mean: &self.data.standardiser.mean,
            std: &self.data.standardiser.std,
        };
        checkpoint::save(&path, session, &extra)?;
        let seconds = began.elapsed().as_secs_f64();
        self.recorder.add(Phase::Checkpoint, seconds);
        let bytes = std::fs::metadata(&path).map(|metadata| metadata.len()).ok();
        self.recorder.event(EventKind::Checkpoint {
            duration_ms: seconds * 1e3,
            bytes,
            place: None,
        });
        (self.report)(&Report::Saved { path, best });
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of one line")]
    fn epoch_line(
        &mut self,
        run: &PhaseRun,
        epoch: u64,
        loss: f64,
        samples_s: f64,
        seconds: f64,
        rate: f64,
        scores: Option<Scores>,
    ) -> Result<(), TrainError> {
        let report = Report::Epoch {
            phase: run.name.to_owned(),
            epoch,
            epochs: run.settings.epochs,
            loss,
            samples_s,
            seconds,
            rate,
            scores,
        };
        (self.report)(&report);
        self.metrics += &format!("{}\n", serde_json::to_string(&report).unwrap_or_default());
        Ok(write_atomically(
            &self.output("metrics.jsonl"),
            self.metrics.as_bytes(),
        )?)
    }

    fn output(&self, name: &str) -> PathBuf {
        self.configuration.settings.output_dir.join(name)
    }
}

struct PhaseRun<'a> {
    name: &'a str,
    settings: &'a Settings,
    order: EpochOrder,
}

impl PhaseRun<'_> {
    fn schedule(&self) -> Schedule {
        let steps = self.order.batches_per_epoch() / self.settings.gradient_accumulation_steps as u64;
        Schedule {
            peak: self.settings.learning_rate,
            warmup_steps: self.settings.warmup,
            total_steps: steps * self.settings.epochs,
            shape: ScheduleShape::named(&self.settings.lr_schedule),
        }
    }
}

/// The indices of one batch, in buffers that are used again and again.
struct BatchIndices {
    samples: Vec<u32>,
    values: Vec<i32>,
}

impl BatchIndices {
    fn new(size: usize) -> Self {
        Self {
            samples: vec![0; size],
            values: vec![0; size],
        }
    }

    /// Names the samples of a batch to the session; a short batch is filled up with its first sample. Returns how many count.
    fn fill(
        &mut self,
        data: &TrainingData,
        order: &EpochOrder,
        position: Position,
        session: &mut dyn Session,
    ) -> Result<usize, TrainError> {
        let count = order.fill(position, &mut self.samples);
        let first = self.samples.first().copied().unwrap_or(0);
        self.samples[count..].fill(first);
        self.set(session, "start", |sample| sample as i32)?;
        self.set(session, "label_row", |sample| data.label_row(sample) as i32)?;
        if session.plan().find("entity").is_ok() {
            self.set(session, "entity", |sample| data.entity(sample))?;
        }
        Ok(count)
    }

    fn set(
        &mut self,
        session: &mut dyn Session,
        name: &str,
        value: impl Fn(u32) -> i32,
    ) -> Result<(), TrainError> {
        for (target, &sample) in self.values.iter_mut().zip(&self.samples) {
            *target = value(sample);
        }
        Ok(session.set_indices(name, &self.values)?)
    }
}

fn name_of(output: &Path) -> String {
    output
        .file_name()
        .map_or_else(|| "train".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// `<output>/run`, emptied of an earlier run's record: a training that begins anew replaces it.
fn fresh_folder(output: &Path) -> Result<PathBuf, TrainError> {
    let run = output.join("run");
    if run.join("run.json").exists() {
        std::fs::remove_dir_all(&run).map_err(|source| FileError::writing(&run, source))?;
    }
    Ok(run)
}

/// A resumed training keeps the earlier records: `run`, `run-2`, `run-3` …
fn free_folder(output: &Path) -> PathBuf {
    let numbered = (2..).map(|number| output.join(format!("run-{number}")));
    std::iter::once(output.join("run"))
        .chain(numbered)
        .find(|folder| !folder.join("run.json").exists())
        .unwrap_or_default()
}

/// The words for the end of a run.
pub fn resume_hint(output: &Path) -> Message {
    let output = output.display();
    message!(en: "stopped and saved; go on with: flatout train --resume {output}", zh: "已停止并保存；继续训练：flatout train --resume {output}")
}
