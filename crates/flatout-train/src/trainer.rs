//! A training from its data to its end: phases one after the other, each with its session. The loop, evaluation and saving have
//! files of their own below.

mod batch;
mod epochs;
mod evaluation;
mod report;
mod saving;

pub use report::{Outcome, Report};

use crate::checkpoint::{self, Progress};
use crate::configuration::Configuration;
use crate::data::TrainingData;
use crate::metric_files::MetricFiles;
use crate::metrics::Scores;
use crate::recorder::Recorder;
use crate::{Settings, TrainError, device, models};
use epochs::PhaseRun;
use flatout_core::error::FileError;
use flatout_core::files::write_atomically;
use flatout_core::{Message, message};
use flatout_data::EpochOrder;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

pub struct Trainer<'a> {
    configuration: &'a Configuration,
    data: TrainingData,
    recorder: Recorder,
    progress: Progress,
    interrupted: &'a AtomicBool,
    report: &'a mut dyn FnMut(&Report),
    metrics: MetricFiles,
    /// A checkpoint could not be written.
    unsaved: bool,
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
        let resumed = match &settings.resume {
            Some(path) => Some(checkpoint::describe(&checkpoint::find(path))?.progress),
            None => None,
        };
        let data = TrainingData::load(settings)?;
        write_atomically(&output.join("config.yaml"), configuration.yaml().as_bytes())?;
        let run = if settings.resume.is_some() {
            saving::free_folder(output)
        } else {
            saving::fresh_folder(output)?
        };
        Ok(Self {
            recorder: Recorder::create(&run, &saving::name_of(output))?,
            configuration,
            data,
            metrics: MetricFiles::open(output, resumed.as_ref().map(|progress| progress.step))?,
            progress: resumed.unwrap_or_default(),
            interrupted,
            report,
            unsaved: false,
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
        let configuration = self.configuration;
        for index in self.progress.phase..configuration.phases.len() {
            let phase = &configuration.phases[index];
            let settings = &phase.settings;
            let micro = settings.batch_size.div_ceil(settings.gradient_accumulation_steps);
            let plan = || models::plan(settings, self.data.shape(), self.data.target(), micro);
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
            model: models::chosen(settings, self.data.shape()).to_owned(),
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
                .chain(&self.data.notes)
                .cloned()
                .collect(),
        };
        (self.report)(&report);
    }

    fn facts(&mut self, settings: &Settings, opened: &device::Opened) {
        let model = models::chosen(settings, self.data.shape()).to_owned();
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
        recorder.fact("model.class", model);
        recorder.fact("model.parameters", opened.session.plan().parameter_count());
        recorder.fact("pipeline", if settings.naive { "naive" } else { "auto" });
    }

    fn output(&self, name: &str) -> PathBuf {
        self.configuration.settings.output_dir.join(name)
    }
}

/// The words for the end of a run.
pub fn resume_hint(output: &Path) -> Message {
    let output = output.display();
    message!(en: "stopped and saved; go on with: flatout train --resume {output}", zh: "已停止并保存；继续训练：flatout train --resume {output}")
}
