//! A training from its data to its end: phases one after the other, each with its session. The loop, evaluation and saving have
//! files of their own below.

mod answers;
mod closing;
mod epochs;
mod evaluation;
mod place;
mod report;
mod resuming;
mod saving;
#[cfg(test)]
mod tests;

pub use report::{Outcome, Report};

use crate::augment::Ahead;
use crate::batch_size::{self, Batch, fitting};
use crate::checkpoint::{self, Progress, Snapshot};
use crate::configuration::{Configuration, Phase};
use crate::data::TrainingData;
use crate::device::{self, Opened};
use crate::effects::{self, Facts};
use crate::folder::{self, FolderLock};
use crate::metric_files::MetricFiles;
use crate::metrics::Scores;
use crate::recorder::Recorder;
use crate::target::{Objective, Target, Task};
use crate::{Settings, TrainError, length, models, threads};
use epochs::PhaseRun;
use flatout_core::{Message, message, units};
use flatout_data::EpochOrder;
use flatout_engine::{EngineError, Position, Session};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

pub struct Trainer<'a> {
    configuration: &'a Configuration,
    /// With the batch sizes that were measured: what `config.yaml` says.
    in_force: Configuration,
    data: TrainingData,
    recorder: Recorder,
    progress: Progress,
    /// Of the session, after the last whole step.
    position: Position,
    interrupted: &'a AtomicBool,
    report: &'a mut dyn FnMut(&Report),
    /// From the first step on.
    metrics: Option<MetricFiles>,
    place: place::Place,
    /// Checkpoints on their way to the disk.
    saving: Vec<saving::Saving>,
    /// A checkpoint could not be written.
    unsaved: bool,
    /// The last step up to which the loss was seen to be a number.
    finite_step: u64,
    trained_samples: u64,
    trained_s: f64,
    /// Asked of the device and not read yet, in order.
    pending: VecDeque<answers::Pending>,
    /// When the epoch that is being read began, and when the last of its losses was here.
    epoch_began: Instant,
    epoch_ended: Instant,
    /// The scores get no better: this phase ends.
    stopping: bool,
    last_scores: Option<Scores>,
    last_targets: BTreeMap<String, Scores>,
    test_scores: Option<Scores>,
    /// Notes that were told: a second phase does not repeat them.
    told: Vec<Message>,
    begun: Instant,
    opener: fitting::Opener,
    /// Images that change from epoch to epoch.
    ahead: Option<Ahead>,
    /// Seconds between signs of life inside an epoch.
    report_s: f64,
}

/// What a session begins with.
enum Begin {
    /// Drawn from the seed.
    Anew,
    File(PathBuf),
    /// The weights of another training, as far as they fit.
    Weights(PathBuf),
    Memory(Snapshot),
}

impl Begin {
    /// Gives what there is to report about it.
    fn put(&self, session: &mut dyn Session) -> Result<Option<Message>, TrainError> {
        match self {
            Self::Anew => {
                session.begin_averages()?;
                Ok(None)
            }
            Self::File(path) => checkpoint::load(path, session).map(|_| None),
            Self::Weights(path) => {
                let without = checkpoint::load_matching(path, session)?;
                session.begin_averages()?;
                Ok(Some(began_with(path, &without)))
            }
            Self::Memory(snapshot) => snapshot.put(session).map(|()| None),
        }
    }
}

impl<'a> Trainer<'a> {
    /// Loads the data and makes the output folder.
    pub fn new(
        configuration: &'a Configuration,
        interrupted: &'a AtomicBool,
        report: &'a mut dyn FnMut(&Report),
    ) -> Result<Self, TrainError> {
        let begun = Instant::now();
        let lock = FolderLock::take(&configuration.settings.output_dir)?;
        let data = TrainingData::load(&configuration.settings)?;
        let trainer = Self::locked(configuration, data, lock, interrupted, report)?;
        Ok(Self { begun, ..trainer })
    }

    /// The same over data that are already there.
    pub fn with_data(
        configuration: &'a Configuration,
        data: TrainingData,
        interrupted: &'a AtomicBool,
        report: &'a mut dyn FnMut(&Report),
    ) -> Result<Self, TrainError> {
        let lock = FolderLock::take(&configuration.settings.output_dir)?;
        Self::locked(configuration, data, lock, interrupted, report)
    }

    fn locked(
        configuration: &'a Configuration,
        data: TrainingData,
        lock: FolderLock,
        interrupted: &'a AtomicBool,
        report: &'a mut dyn FnMut(&Report),
    ) -> Result<Self, TrainError> {
        let begun = Instant::now();
        let settings = &configuration.settings;
        folder::bring_back(lock.folder())?;
        let resumed = match &settings.resume {
            Some(path) => {
                let path = checkpoint::find(path);
                let kept = resuming::check(&path, configuration, &data, report)?;
                Some((path, kept))
            }
            None => None,
        };
        let from = resumed
            .as_ref()
            .map(|(path, progress)| (path.as_path(), progress.step));
        let place = place::Place::find(lock, from);
        check_select(settings, &data)?;
        let ahead = data.augmenter().map(Ahead::new);
        Ok(Self {
            recorder: Recorder::create(&place.first_record()?, &saving::name_of(&settings.output_dir))?,
            configuration,
            in_force: configuration.clone(),
            data,
            metrics: None,
            place,
            progress: resumed.map(|(_, progress)| progress).unwrap_or_default(),
            position: Position::default(),
            interrupted,
            report,
            saving: Vec::new(),
            unsaved: false,
            finite_step: 0,
            trained_samples: 0,
            trained_s: 0.0,
            pending: VecDeque::new(),
            epoch_began: begun,
            epoch_ended: begun,
            stopping: false,
            last_scores: None,
            last_targets: BTreeMap::new(),
            test_scores: None,
            told: Vec::new(),
            begun,
            opener: fitting::open_once,
            ahead,
            report_s: epochs::REPORT_S,
        })
    }

    pub fn run(mut self) -> Result<Outcome, TrainError> {
        let result = self.run_phases();
        // Whatever ended the training, what is being written becomes whole.
        let written = self.finish_saving();
        self.finish_metrics();
        let result = result.and_then(|interrupted| written.map(|()| interrupted));
        self.recorder.finish(i32::from(result.is_err()));
        self.leave();
        let interrupted = result?;
        Ok(Outcome {
            scores: self.last_scores,
            targets: self.last_targets,
            selected: self.configuration.settings.select.name().to_owned(),
            best: self.progress.best,
            best_loss: self.progress.best_scores.map(|scores| scores.loss),
            best_scores: self.progress.best_scores,
            test_scores: self.test_scores,
            samples_s: (self.trained_s > 0.0).then(|| self.trained_samples as f64 / self.trained_s),
            seconds: self.begun.elapsed().as_secs_f64(),
            output_dir: self.configuration.settings.output_dir.clone(),
            interrupted,
        })
    }

    fn run_phases(&mut self) -> Result<bool, TrainError> {
        let configuration = self.configuration;
        let Settings { resume, init, .. } = &configuration.settings;
        let mut begin = match (resume, init) {
            (Some(path), _) => Begin::File(checkpoint::find(path)),
            (None, Some(path)) => Begin::Weights(checkpoint::find_best(path)),
            (None, None) => Begin::Anew,
        };
        for index in self.progress.phase..configuration.phases.len() {
            self.progress.phase = index;
            if self.run_phase(&configuration.phases[index], begin)? {
                return Ok(true);
            }
            begin = Begin::File(self.output("last.safetensors"));
            if index + 1 < configuration.phases.len() {
                self.progress = Progress {
                    phase: index + 1,
                    step: self.progress.step,
                    ..Progress::default()
                };
            }
        }
        Ok(false)
    }

    /// Runs a phase to its end, with smaller parts where memory runs out on the way; true when it was interrupted.
    fn run_phase(&mut self, phase: &Phase, mut begin: Begin) -> Result<bool, TrainError> {
        let mut settings = phase.settings.clone();
        let (mut batch, mut notes) = self.batch_of(phase)?;
        let steps = (self.data.train.len() as u64).div_ceil(batch.effective.max(1) as u64);
        // Of a resumed training nothing is known but the value.
        let interval = settings.eval_interval.to_string();
        let given = self.configuration.given.contains("eval_interval")
            || !crate::settings::is_default("eval_interval", &interval);
        length::decide(&mut settings, steps, given);
        self.in_force = self.in_force.with_batch(self.progress.phase, batch, &settings);
        loop {
            let mut opened = self.open(&settings, &mut batch)?;
            if threads::is_open(&settings, &opened) {
                drop(opened);
                let chosen = threads::choose(&settings, &self.data, batch.micro)?;
                settings.threads = Some(chosen.threads);
                notes.extend(chosen.told());
                opened = self.open(&settings, &mut batch)?;
            }
            notes.extend(begin.put(&mut *opened.session)?);
            self.unsettle();
            self.position = opened.session.position();
            self.progress.batch = Some(batch);
            let run = PhaseRun {
                name: &phase.name,
                settings: &settings,
                batch,
                order: EpochOrder::new(
                    self.data.train.clone(),
                    batch.effective,
                    true,
                    Some(settings.seed),
                ),
            };
            log::info!(
                "phase {}: {} on {}, {}; batch {batch:?}, learning rate {}; from epoch {} step {}",
                phase.name,
                models::chosen(&settings, self.data.shape()),
                opened.name,
                opened.precision,
                run.peak_rate(),
                self.progress.epoch,
                self.progress.epoch_step
            );
            self.recorder.watch(&opened.name);
            self.facts(&run, &opened);
            self.start_report(&opened, &run, std::mem::take(&mut notes));
            let wanted_bytes = match self.train_phase(&run, &mut *opened.session) {
                Err(TrainError::Engine(EngineError::OutOfMemory { wanted_bytes })) => wanted_bytes,
                result => return result,
            };
            // What was trained before memory ran out took time as well.
            self.catch_up(&mut *opened.session)?;
            self.trained_s += self.epoch_began.elapsed().as_secs_f64();
            begin = Begin::Memory(Snapshot::take(&mut *opened.session, self.position)?);
            drop(opened);
            let Self { data, report, .. } = self;
            let mut say = |message: Message| report(&Report::Warning { message });
            batch = fitting::make_smaller(&settings, data, batch, wanted_bytes, &mut say)?;
        }
    }

    fn open(&mut self, settings: &Settings, batch: &mut Batch) -> Result<Opened, TrainError> {
        let Self {
            data, report, opener, ..
        } = self;
        let mut say = |message: Message| report(&Report::Warning { message });
        fitting::open(*opener, settings, data, batch, &mut say)
    }

    /// A resumed phase goes on with the batch it had, unless another one is asked for.
    fn batch_of(&mut self, phase: &Phase) -> Result<(Batch, Vec<Message>), TrainError> {
        let settings = &phase.settings;
        let Some(before) = self.progress.batch else {
            return batch_size::decide(settings, &self.data, &phase.name);
        };
        if settings.batch_size.is_none() {
            return Ok((before, Vec::new()));
        }
        let (batch, mut notes) = batch_size::decide(settings, &self.data, &phase.name)?;
        if batch.effective == before.effective {
            return Ok((before, notes));
        }
        self.progress.epoch_step =
            self.progress.epoch_step * before.effective as u64 / batch.effective as u64;
        let (old, new) = (before.effective, batch.effective);
        notes.push(message!(en: "the batch size is {new} from here on (previously {old})", zh: "batch 大小从这里起为 {new}；之前为 {old}"));
        Ok((batch, notes))
    }

    fn start_report(&mut self, opened: &Opened, run: &PhaseRun, notes: Vec<Message>) {
        let facts = Facts {
            settings: run.settings,
            data: &self.data,
            device: opened.device,
            steps_an_epoch: run.order.batches_per_epoch(),
        };
        let idle = effects::missing(&self.configuration.given, &facts);
        let all = opened.notes.iter().chain(&self.configuration.notes).chain(&idle);
        let all = all.chain(&self.data.notes).chain(&notes);
        let mut new: Vec<Message> = all
            .cloned()
            .chain(where_data_lie(&*opened.session, self.data.bytes))
            .collect();
        new.retain(|note| !self.told.contains(note));
        self.told.extend(new.iter().cloned());
        let report = Report::Start {
            device: opened.session.device(),
            precision: opened.precision.to_owned(),
            model: models::chosen(run.settings, self.data.shape()).to_owned(),
            parameters: opened.session.plan().parameter_count(),
            samples: self.data.train.len(),
            validation_samples: self.data.validation.len(),
            batch_size: run.batch.effective,
            micro_batch_size: run.batch.micro,
            learning_rate: run.peak_rate(),
            steps_an_epoch: run.order.batches_per_epoch(),
            data_bytes: self.data.bytes,
            memory_bytes: opened.session.memory_bytes(),
            seconds: self.begun.elapsed().as_secs_f64(),
            notes: new,
        };
        (self.report)(&report);
    }

    fn facts(&mut self, run: &PhaseRun, opened: &Opened) {
        let Settings { optimizer, naive, .. } = run.settings;
        let model = models::chosen(run.settings, self.data.shape()).to_owned();
        let recorder = &mut self.recorder;
        recorder.fact("device", opened.device);
        let precision = Some(opened.precision).filter(|name| *name != "f32");
        recorder.fact("amp.dtype", precision.unwrap_or("off"));
        recorder.fact("loader.batch_size", run.batch.micro);
        recorder.fact("step.accumulation", run.batch.parts());
        recorder.fact("optimizer.class", optimizer.as_str());
        recorder.fact("step.flops", run.flops(&*opened.session));
        if let Some(peak) = opened.session.peak_flops() {
            recorder.fact("device.peak_flops", peak);
        }
        recorder.fact("optimizer.fused", true);
        if opened.device == "cpu"
            && let Ok(speed) = flatout_engine::ceilings::cpu::brief(crate::device::threads(run.settings))
        {
            recorder.fact("device.flops", (speed / 1e9).round() * 1e9);
        }
        recorder.fact("model.class", model);
        recorder.fact("model.parameters", opened.session.plan().parameter_count());
        if opened.device == "cpu" {
            recorder.fact("threads", device::threads(run.settings));
        }
        let chosen = run.settings.batch_size.is_none() && !*naive;
        recorder.fact("batch.measured", chosen);
        recorder.fact("eval.interval", run.settings.eval_interval);
        recorder.fact("checkpoint.interval", run.settings.checkpoint_interval);
        recorder.fact("pipeline", if *naive { "naive" } else { "auto" });
    }

    fn output(&self, name: &str) -> PathBuf {
        self.configuration.settings.output_dir.join(name)
    }
}

/// A score that the task does not have cannot decide.
fn check_select(settings: &Settings, data: &TrainingData) -> Result<(), TrainError> {
    let (select, target) = (&settings.select, data.target());
    let several = target.task == Task::Several;
    let mut names = vec!["loss"];
    for name in target
        .heads()
        .iter()
        .flat_map(|head| scores_of(head, data, !several))
    {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    // A label among several has scores of its own.
    let of_label = |label: &String, head: Option<&Target>| {
        let own = match (target.task, head) {
            (Task::Several, Some(head)) => scores_of(head, data, true),
            (Task::Labels, _) => vec!["accuracy", "auc", "precision", "recall", "f1"],
            _ if target.objective != Objective::Plain => vec!["mae", "mse"],
            _ => vec!["mae"],
        };
        let own = std::iter::once("loss").chain(own);
        own.map(|score| format!("{label}.{score}")).collect::<Vec<_>>()
    };
    let labels: Vec<String> = match target.task {
        Task::Several | Task::Labels | Task::Regression if target.names.len() > 1 => {
            let each = target.names.iter().enumerate();
            each.flat_map(|(place, label)| of_label(label, target.heads.get(place)))
                .collect()
        }
        _ => Vec::new(),
    };
    let all: Vec<String> = names.into_iter().map(str::to_owned).chain(labels).collect();
    if all.iter().any(|name| name == select.name()) {
        return Ok(());
    }
    let list = all.join(", ");
    Err(TrainError::Value {
        setting: "select".to_owned(),
        value: select.name().to_owned(),
        expected: message!(en: "a score of this task: {list}", zh: "此任务具有的得分：{list}"),
    })
}

/// The scores of a target; `alone`: not only those that have a mean over several labels.
fn scores_of(head: &Target, data: &TrainingData, alone: bool) -> Vec<&'static str> {
    let dated = data
        .train
        .first()
        .is_some_and(|sample| data.time_us(*sample).is_some());
    let mut names: Vec<&'static str> = match head.task {
        Task::Binary if alone => vec!["accuracy", "auc", "precision", "recall", "f1"],
        Task::Binary | Task::Labels => vec!["accuracy", "auc", "f1"],
        Task::Classes => vec!["accuracy", "f1"],
        Task::Regression | Task::Several => Vec::new(),
    };
    if head.task == Task::Classes && head.names.len() > 5 && alone {
        names.push("top5_accuracy");
    }
    if head.task == Task::Regression && alone {
        names.push("mae");
        names.extend((head.objective != Objective::Plain).then_some("mse"));
        names.extend(data.is_sequence().then_some("directional_accuracy"));
    }
    if head.task == Task::Regression && data.is_sequence() {
        names.push("ic");
        names.extend(["daily_ic", "rank_ic"].iter().filter(|_| dated));
    }
    names
}

fn began_with(path: &Path, without: &[String]) -> Message {
    let (path, names) = (path.display(), without.join(", "));
    if without.is_empty() {
        return message!(en: "training starts with the weights of {path}", zh: "训练以 {path} 的权重开始");
    }
    message!(
        en: "training starts with the weights of {path}, except for {names}, which it does not contain in \
        this shape",
        zh: "训练以 {path} 的权重开始，但其中没有形状相符的 {names}"
    )
}

/// The words for the end of a run.
pub fn resume_hint(output: &Path) -> Message {
    let output = output.display();
    message!(en: "stopped and saved; continue with: flatout train --resume {output}", zh: "已停止并保存；继续训练：flatout train --resume {output}")
}

/// Where the data lie, on a device with a memory of its own.
fn where_data_lie(session: &dyn Session, data_bytes: usize) -> Option<Message> {
    let (free, total) = session.device_memory()?;
    let data = units::bytes(data_bytes as f64);
    if session.is_streaming() {
        return Some(message!(
            en: "the data ({data}) does not fit on the GPU next to the model: each batch is copied while the \
            previous one is computed",
            zh: "数据（{data}）与模型无法同时放入显存：在计算上一个 batch 的同时传输下一个"
        ));
    }
    let (free, total) = (units::bytes(free as f64), units::bytes(total as f64));
    Some(message!(
        en: "the data ({data}) is on the GPU; {free} of its {total} remain free",
        zh: "数据（{data}）已放入显存；显存 {total} 中还剩 {free}"
    ))
}
