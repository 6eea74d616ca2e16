//! Trains the combinations, one after the other or several side by side, and gathers what comes out.

use super::side_by_side::{self, Candidate};
use super::{Grid, Point, PointResult};
use crate::data::TrainingData;
use crate::folder::FolderLock;
use crate::settings::Values;
use crate::{Report, Settings, TrainError, Trainer, device};
use flatout_core::Message;
use flatout_data::DataError;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};

/// What a grid tells the one who watches it.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all of them are the large one, and one exists at a time"
)]
pub enum GridReport {
    /// How many train at the same time, where more than one was allowed.
    SideBySide {
        jobs: usize,
        tried: Vec<(usize, f64)>,
        #[serde(skip)]
        told: Message,
    },
    /// How the tasks stand that train the combinations elsewhere.
    Queue {
        done: usize,
        of: usize,
        running: usize,
        waiting: usize,
        /// Why they wait, by the scheduler's word, where none runs.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Note {
        told: Message,
    },
    Begin {
        point: usize,
        of: usize,
        name: String,
        /// From the checkpoint of an earlier call.
        resumed: bool,
    },
    Training {
        point: usize,
        name: String,
        report: Report,
    },
    End {
        point: usize,
        of: usize,
        result: Box<PointResult>,
        /// By an earlier call.
        before: bool,
    },
}

/// What the jobs share.
struct Shared<'a> {
    grid: &'a Grid,
    jobs: usize,
    next: AtomicUsize,
    interrupted: &'a AtomicBool,
    /// For a training that says nothing itself, where not all CPUs are its own.
    threads: Option<usize>,
    /// Loaded by whoever comes first; all others take windows of it.
    data: Mutex<Option<(Settings, TrainingData)>>,
}

/// Trains all points, up to `jobs` of them at the same time when that is measured to be faster. The results come in the order of the
/// points; those missing were interrupted, to be finished by the same call again.
pub fn run(
    grid: &Grid,
    jobs: usize,
    interrupted: &AtomicBool,
    report: &mut dyn FnMut(&GridReport),
) -> Result<Vec<PointResult>, TrainError> {
    // Two grids in one folder would train the same combinations twice.
    let _lock = FolderLock::take(&grid.output_dir)?;
    let jobs = jobs.clamp(1, grid.points.len().max(1));
    let mut shared = Shared {
        grid,
        jobs,
        next: AtomicUsize::new(0),
        interrupted,
        threads: None,
        data: Mutex::new(None),
    };
    if jobs > 1 {
        let found = side_by_side::measure(shared.candidates(), jobs)?;
        shared.jobs = found.jobs;
        shared.threads = (found.jobs > 1).then(|| side_by_side::threads_of_one(found.jobs));
        report(&GridReport::SideBySide {
            jobs: found.jobs,
            told: found.told(),
            tried: found.tried,
        });
    }
    let (sender, receiver) = mpsc::channel();
    let mut results: Vec<(usize, PointResult)> = Vec::new();
    let failed = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..shared.jobs)
            .map(|_| {
                let (shared, sender) = (&shared, sender.clone());
                scope.spawn(move || work(shared, &sender))
            })
            .collect();
        drop(sender);
        for event in receiver {
            report(&event);
            if let GridReport::End { point, result, .. } = event {
                results.push((point, *result));
            }
        }
        let ends = threads.into_iter().filter_map(|thread| thread.join().ok());
        ends.filter_map(Result::err).next()
    });
    if let Some(error) = failed {
        return Err(error);
    }
    if shared.jobs > 1 {
        again_alone(&mut shared, &mut results, report)?;
    }
    results.sort_by_key(|(point, _)| *point);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

/// The CPUs that Slurm gave this task, where it does not keep the task from using the others of the node.
fn granted() -> Option<usize> {
    let cpus = std::env::var("SLURM_CPUS_PER_TASK").ok()?.parse::<usize>().ok()?;
    (1..device::usable_threads()).contains(&cpus).then_some(cpus)
}

/// One combination, in this process.
pub(super) fn one_alone(
    grid: &Grid,
    index: usize,
    interrupted: &AtomicBool,
    report: &mut dyn FnMut(&GridReport),
) -> Result<(), TrainError> {
    let Some(point) = grid.points.get(index) else {
        return Ok(());
    };
    let shared = Shared {
        grid,
        jobs: 1,
        next: AtomicUsize::new(index),
        interrupted,
        threads: granted(),
        data: Mutex::new(None),
    };
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let training = scope.spawn({
            let shared = &shared;
            move || one(shared, point, index, &sender)
        });
        for event in receiver {
            report(&event);
        }
        training.join().unwrap_or(Ok(()))
    })
}

/// What failed beside others (their memory, their use of the card) may do alone: it is tried once more, one after the other.
fn again_alone(
    shared: &mut Shared,
    results: &mut [(usize, PointResult)],
    report: &mut dyn FnMut(&GridReport),
) -> Result<(), TrainError> {
    shared.jobs = 1;
    shared.threads = None;
    for (number, result) in results.iter_mut().filter(|(_, result)| result.error.is_some()) {
        let Some(point) = shared.grid.points.get(*number - 1) else {
            continue;
        };
        if shared.interrupted.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (sender, receiver) = mpsc::channel();
        one(shared, point, *number - 1, &sender)?;
        drop(sender);
        for event in receiver {
            report(&event);
            if let GridReport::End { result: again, .. } = event {
                *result = *again;
            }
        }
    }
    Ok(())
}

/// Takes points until there is none left. What fails for one point is its result; what fails for all ends the grid.
fn work(shared: &Shared, sender: &mpsc::Sender<GridReport>) -> Result<(), TrainError> {
    loop {
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        let Some(point) = shared.grid.points.get(number) else {
            return Ok(());
        };
        if shared.interrupted.load(Ordering::Relaxed) {
            return Ok(());
        }
        if let Err(error) = one(shared, point, number, sender) {
            // The others stop with their next point.
            shared.next.store(shared.grid.points.len(), Ordering::Relaxed);
            return Err(error);
        }
    }
}

fn one(
    shared: &Shared,
    point: &Point,
    number: usize,
    sender: &mpsc::Sender<GridReport>,
) -> Result<(), TrainError> {
    let of = shared.grid.points.len();
    let send = |event: GridReport| {
        // Whoever watched has gone only when the grid is over.
        let _ = sender.send(event);
    };
    let mut more = Values::new();
    if let Some(threads) = shared.threads
        && point.configuration(&more)?.settings.threads.is_none()
    {
        more.insert("threads", threads.to_string());
    }
    let mut configuration = point.configuration(&more)?;
    if let Some(result) = point.done(&configuration) {
        send(GridReport::End {
            point: number + 1,
            of,
            result: Box::new(result),
            before: true,
        });
        return Ok(());
    }
    let begun = point.begun(&configuration);
    let resumed = begun.is_some();
    if let Some(path) = begun {
        more.insert("resume", path.display().to_string());
        configuration = point.configuration(&more)?;
    }
    send(GridReport::Begin {
        point: number + 1,
        of,
        name: point.name.clone(),
        resumed,
    });
    let data = shared.data(&configuration.settings)?;
    let mut tell = |report: &Report| {
        send(GridReport::Training {
            point: number + 1,
            name: point.name.clone(),
            report: report.clone(),
        });
    };
    let trained =
        data.and_then(|data| Trainer::with_data(&configuration, data, shared.interrupted, &mut tell)?.run());
    if trained.as_ref().is_ok_and(|outcome| outcome.interrupted) {
        return Ok(());
    }
    let in_use = matches!(trained, Err(TrainError::FolderInUse { .. }));
    let result = point.result(&configuration, trained);
    // The folder of another training is its own, and a failure does not replace the result of a model that is there.
    if !in_use && (result.error.is_none() || !point.is_trained()) {
        result.keep()?;
    }
    send(GridReport::End {
        point: number + 1,
        of,
        result: Box::new(result),
        before: false,
    });
    Ok(())
}

impl Shared<'_> {
    /// The trainings that are still to be done, each with its data when it is asked for.
    fn candidates(&self) -> impl Iterator<Item = Result<Candidate, TrainError>> {
        self.grid
            .points
            .iter()
            .filter_map(|point| self.candidate(point).transpose())
    }

    fn candidate(&self, point: &Point) -> Result<Option<Candidate>, TrainError> {
        let configuration = point.configuration(&Values::new())?;
        if point.done(&configuration).is_some() {
            return Ok(None);
        }
        // What fails for one point alone is reported when its turn comes.
        let Ok(data) = self.data(&configuration.settings)? else {
            return Ok(None);
        };
        let phase = configuration.phases.into_iter().next();
        let settings = phase.map_or(configuration.settings, |phase| phase.settings);
        Ok(Some(Candidate { settings, data }))
    }

    /// Whether every other combination would fail with the same error: it comes from files that all of them read in the same way.
    fn is_everybodys(&self, error: &TrainError, settings: &Settings) -> bool {
        let of_files = match error {
            TrainError::Data(error) => !matches!(error, DataError::NoWindows { .. }),
            TrainError::File(_) | TrainError::Missing { .. } => true,
            _ => false,
        };
        let reads_the_same = |point: &Point| {
            let configuration = point.configuration(&Values::new());
            configuration.is_ok_and(|other| TrainingData::same_files(&other.settings, settings))
        };
        of_files && self.grid.points.iter().all(reads_the_same)
    }

    /// The outer error is everybody's (the files that all read cannot be read), the inner one this combination's (a window too long, a
    /// label that is not there).
    fn data(&self, settings: &Settings) -> Result<Result<TrainingData, TrainError>, TrainError> {
        let mut kept = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, data)) = &*kept
            && TrainingData::same_files(of, settings)
        {
            return Ok(data.for_training(settings));
        }
        let data = match TrainingData::load(settings) {
            Err(error) if self.is_everybodys(&error, settings) => return Err(error),
            Err(error) => return Ok(Err(error)),
            Ok(data) => data,
        };
        let own = data.clone();
        *kept = Some((settings.clone(), data));
        Ok(Ok(own))
    }
}
