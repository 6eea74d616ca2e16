//! A grid whose combinations are trained elsewhere, each by a process of its own: tasks of a Slurm array, or one process per GPU of this
//! machine. A task is told by what is in its combination's folder, so the one who waits may leave and come back, and a task may be ended and
//! started again: it goes on from its checkpoint.

use super::{Grid, GridReport, PointResult, runner};
use crate::checkpoint;
use crate::folder::FolderLock;
use crate::settings::Values;
use crate::{Configuration, TrainError};
use flatout_core::{Failure, Message, message};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// A task that ended this many times without a result and without a newer checkpoint is not started again.
const MOST_TRIES: u32 = 3;
/// How often the folders are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Between two looks at the lock of a folder that another task still has.
const LOCK_EVERY: Duration = Duration::from_secs(2);

/// How a task stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// Not begun, or begun and queued again; why, where it is known.
    Waiting(Option<String>),
    Running,
    /// Somebody cancelled it: it is not started again.
    Cancelled,
    /// It ended, however; its scheduler's word.
    Ended(String),
}

/// Why tasks were not started or not found.
#[derive(Debug)]
pub enum TasksError {
    /// The scheduler does not answer; it may later.
    Away(Box<Failure>),
    Failed(Box<Failure>),
}

impl From<TasksError> for Failure {
    fn from(error: TasksError) -> Self {
        match error {
            TasksError::Away(failure) | TasksError::Failed(failure) => *failure,
        }
    }
}

/// Who runs the combinations. They are numbered from 1.
pub trait Tasks {
    /// Starts these.
    fn start(&mut self, points: &[usize]) -> Result<(), TasksError>;
    /// How every task that was started stands, also by an earlier call. What is missing is over.
    fn states(&mut self) -> Result<BTreeMap<usize, TaskState>, TasksError>;
    /// Between two calls of [`Self::states`]: a scheduler that is asked every second makes enemies.
    fn ask_every(&self) -> Duration;
    /// How long the result of a task that ended may take to be seen here.
    fn grace(&self) -> Duration;
    /// What the last task of a combination printed, where that is kept.
    fn log(&self, point: usize) -> Option<PathBuf>;
    /// Ends those that were started, where they cannot go on alone.
    fn leave(&mut self);
}

/// What the one who waits knows of a combination that has no result yet.
struct Missing {
    configuration: Configuration,
    tries: u32,
    /// Of its checkpoint, when it was last started.
    checkpoint: Option<SystemTime>,
    /// Since when its task is over.
    over_since: Option<Instant>,
}

/// Trains all combinations by tasks, and gathers the results as they come. Those missing at the end were interrupted.
pub fn run_by_tasks(
    grid: &Grid,
    tasks: &mut dyn Tasks,
    interrupted: &AtomicBool,
    report: &mut dyn FnMut(&GridReport),
) -> Result<Vec<PointResult>, Failure> {
    let of = grid.points.len();
    let _lock = FolderLock::take(&grid.output_dir)?;
    let mut results: BTreeMap<usize, PointResult> = BTreeMap::new();
    let mut missing: BTreeMap<usize, Missing> = BTreeMap::new();
    for (index, point) in grid.points.iter().enumerate() {
        let configuration = point.configuration(&Values::new())?;
        match point.done(&configuration) {
            Some(result) => {
                report(&GridReport::End {
                    point: index + 1,
                    of,
                    result: Box::new(result.clone()),
                    before: true,
                });
                results.insert(index + 1, result);
            }
            None => {
                missing.insert(
                    index + 1,
                    Missing {
                        configuration,
                        tries: 0,
                        checkpoint: None,
                        over_since: None,
                    },
                );
            }
        }
    }
    let mut states = BTreeMap::new();
    let mut to_start: BTreeSet<usize> = missing.keys().copied().collect();
    let (mut due, mut asked) = (true, Instant::now());
    let (mut answered, mut away) = (false, false);
    let mut shown = None;
    while !missing.is_empty() {
        if due {
            match ask(grid, tasks, &mut missing, &mut to_start, &mut states) {
                Ok(()) => {
                    answered = true;
                    if std::mem::take(&mut away) {
                        let told = message!(en: "the scheduler responds again", zh: "调度器已恢复响应");
                        report(&GridReport::Note { told });
                    }
                }
                Err(TasksError::Away(failure)) => {
                    if !std::mem::replace(&mut away, true) {
                        report(&GridReport::Note {
                            told: waiting(&failure),
                        });
                    }
                }
                // What is trained already goes on without the answer.
                Err(TasksError::Failed(failure)) if answered && to_start.is_empty() => {
                    log::warn!("the states of the tasks are unknown: {}", failure.message().en);
                }
                Err(TasksError::Failed(failure)) => return Err(*failure),
            }
            asked = Instant::now();
        }
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
        let finished = collect(grid, &missing, &to_start, &states);
        for result in finished {
            let (number, result) = result;
            missing.remove(&number);
            to_start.remove(&number);
            report(&GridReport::End {
                point: number,
                of,
                result: Box::new(result.clone()),
                before: false,
            });
            results.insert(number, result);
        }
        let again = over(
            grid,
            &mut missing,
            &to_start,
            &states,
            tasks,
            &mut |number, result| {
                report(&GridReport::End {
                    point: number,
                    of,
                    result: Box::new(result.clone()),
                    before: false,
                });
                results.insert(number, result);
            },
        );
        if !again.is_empty() {
            to_start.extend(again);
            due = true;
            continue;
        }
        let now = queue(results.len(), of, &missing, &states);
        if shown.as_ref() != Some(&now) {
            report(&GridReport::Queue {
                done: now.0,
                of: now.1,
                running: now.2,
                waiting: now.3,
                reason: now.4.clone(),
            });
            shown = Some(now);
        }
        if missing.is_empty() {
            break;
        }
        std::thread::sleep(LOOK_EVERY);
        due = asked.elapsed() >= tasks.ask_every();
    }
    if !missing.is_empty() {
        tasks.leave();
    }
    Ok(results.into_values().collect())
}

fn waiting(failure: &Failure) -> Message {
    let (en, zh) = (&failure.message().en, &failure.message().zh);
    Message {
        en: format!("{en}; waiting for the scheduler, tasks that run go on"),
        zh: format!("{zh}；正在等待调度器，运行中的任务不受影响"),
    }
}

/// Asks how the tasks stand, and starts those that shall be started and are not.
fn ask(
    grid: &Grid,
    tasks: &mut dyn Tasks,
    missing: &mut BTreeMap<usize, Missing>,
    to_start: &mut BTreeSet<usize>,
    states: &mut BTreeMap<usize, TaskState>,
) -> Result<(), TasksError> {
    *states = tasks.states()?;
    // Some may have been started although the scheduler did not say so.
    to_start.retain(|number| missing.contains_key(number) && !is_alive(states.get(number)));
    if to_start.is_empty() {
        return Ok(());
    }
    let numbers: Vec<usize> = to_start.iter().copied().collect();
    begin(grid, tasks, missing, &numbers)?;
    to_start.clear();
    for number in numbers {
        states.insert(number, TaskState::Waiting(None));
    }
    *states = tasks.states()?;
    Ok(())
}

fn is_alive(state: Option<&TaskState>) -> bool {
    matches!(state, Some(TaskState::Waiting(_) | TaskState::Running))
}

/// Starts tasks, and notes what there is of each so that its progress can be seen.
fn begin(
    grid: &Grid,
    tasks: &mut dyn Tasks,
    missing: &mut BTreeMap<usize, Missing>,
    numbers: &[usize],
) -> Result<(), TasksError> {
    let points = |number: &usize| grid.points.get(number - 1);
    for point in numbers.iter().filter_map(points) {
        // The failure of an earlier call would be taken for one of this task.
        point.forget_failure();
    }
    // Before the tasks can save one.
    let checkpoints: Vec<_> = numbers
        .iter()
        .filter_map(|number| Some((number, checkpoint_of(&points(number)?.output_dir()))))
        .collect();
    tasks.start(numbers)?;
    for (number, checkpoint) in checkpoints {
        if let Some(of) = missing.get_mut(number) {
            of.checkpoint = checkpoint;
            of.tries += 1;
            of.over_since = None;
        }
    }
    Ok(())
}

fn checkpoint_of(folder: &std::path::Path) -> Option<SystemTime> {
    let metadata = std::fs::metadata(checkpoint::find(folder)).ok()?;
    metadata.modified().ok()
}

/// The combinations that have a result now; a failure counts when its task is over. Of those that are still to start, it is an earlier
/// one's.
fn collect(
    grid: &Grid,
    missing: &BTreeMap<usize, Missing>,
    to_start: &BTreeSet<usize>,
    states: &BTreeMap<usize, TaskState>,
) -> Vec<(usize, PointResult)> {
    let found = missing.iter().filter_map(|(number, of)| {
        let point = grid.points.get(number - 1)?;
        if let Some(result) = point.done(&of.configuration) {
            return Some((*number, result));
        }
        let failed = point.failed(&of.configuration)?;
        let is_over = !is_alive(states.get(number)) && !to_start.contains(number);
        is_over.then_some((*number, failed))
    });
    found.collect()
}

/// Takes out the tasks that are over for good and without a result. The numbers are those to start again.
fn over(
    grid: &Grid,
    missing: &mut BTreeMap<usize, Missing>,
    to_start: &BTreeSet<usize>,
    states: &BTreeMap<usize, TaskState>,
    tasks: &dyn Tasks,
    end: &mut dyn FnMut(usize, PointResult),
) -> Vec<usize> {
    let (mut again, mut ended) = (Vec::new(), Vec::new());
    for (number, of) in missing.iter_mut() {
        let state = states.get(number);
        if is_alive(state) || to_start.contains(number) {
            of.over_since = None;
            continue;
        }
        let since = *of.over_since.get_or_insert_with(Instant::now);
        let Some(point) = grid.points.get(number - 1) else {
            continue;
        };
        if since.elapsed() < tasks.grace() {
            continue;
        }
        let mut reason = match state {
            Some(TaskState::Cancelled) => message!(en: "its task was cancelled", zh: "任务已被取消"),
            Some(TaskState::Ended(word)) => {
                message!(en: "its task ended without a result: {word}", zh: "任务结束但没有结果：{word}")
            }
            _ => message!(en: "its task ended without a result", zh: "任务结束但没有结果"),
        };
        if let Some(log) = tasks.log(*number).filter(|log| log.is_file()) {
            let log = log.display();
            reason.en += &format!("; its log: {log}");
            reason.zh += &format!("；日志：{log}");
        }
        if state == Some(&TaskState::Cancelled) {
            ended.push((*number, point.lost(&of.configuration, &reason)));
            continue;
        }
        // A time limit or a preemption: what was trained since is kept, so it comes to an end some day.
        let now = checkpoint_of(&point.output_dir());
        if now > of.checkpoint {
            of.tries = 0;
        }
        if of.tries < MOST_TRIES {
            again.push(*number);
        } else {
            ended.push((*number, point.lost(&of.configuration, &reason)));
        }
    }
    for (number, result) in ended {
        missing.remove(&number);
        end(number, result);
    }
    again
}

/// Done, all, running, waiting, why the first one waits.
type Queue = (usize, usize, usize, usize, Option<String>);

fn queue(
    done: usize,
    of: usize,
    missing: &BTreeMap<usize, Missing>,
    states: &BTreeMap<usize, TaskState>,
) -> Queue {
    let known = missing.keys().filter_map(|number| states.get(number));
    let (mut running, mut waiting, mut reasons) = (0, 0, BTreeSet::new());
    for state in known {
        match state {
            TaskState::Running => running += 1,
            TaskState::Waiting(reason) => {
                waiting += 1;
                reasons.extend(reason.clone());
            }
            _ => {}
        }
    }
    let reason = (running == 0).then(|| reasons.into_iter().next()).flatten();
    (done, of, running, waiting, reason)
}

/// Trains one combination in this process: what a task does. Another task of the same combination that still works (one that its
/// scheduler believes dead) is waited for. `None` where it was interrupted.
pub fn run_one(
    grid: &Grid,
    number: usize,
    interrupted: &AtomicBool,
    report: &mut dyn FnMut(&GridReport),
) -> Result<Option<PointResult>, TrainError> {
    let of = grid.points.len();
    let Some(point) = number.checked_sub(1).and_then(|index| grid.points.get(index)) else {
        return Err(TrainError::Value {
            setting: "point".to_owned(),
            value: number.to_string(),
            expected: message!(en: "a number from 1 to {of}", zh: "1 到 {of} 之间的数"),
        });
    };
    let mut waited = false;
    loop {
        match FolderLock::take(&point.output_dir()) {
            Ok(lock) => {
                drop(lock);
                break;
            }
            Err(TrainError::FolderInUse { pid, host, .. }) => {
                if !std::mem::replace(&mut waited, true) {
                    let told = message!(
                        en: "process {pid} on {host} still trains this combination; waiting for it",
                        zh: "{host} 上的进程 {pid} 仍在训练此组合；正在等待"
                    );
                    report(&GridReport::Note { told });
                }
                if interrupted.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                std::thread::sleep(LOCK_EVERY);
            }
            Err(error) => return Err(error),
        }
    }
    let mut found = None;
    runner::one_alone(grid, number - 1, interrupted, &mut |event| {
        report(event);
        if let GridReport::End { result, .. } = event {
            found = Some((**result).clone());
        }
    })?;
    Ok(found)
}

/// One process per GPU of this machine, each with one combination after the other.
pub struct LocalTasks {
    /// What `CUDA_VISIBLE_DEVICES` is for each.
    gpus: Vec<String>,
    /// The program and its arguments; ` --point N` is added.
    command: Vec<std::ffi::OsString>,
    logs: PathBuf,
    waiting: std::collections::VecDeque<usize>,
    running: Vec<Option<(usize, std::process::Child)>>,
    ended: BTreeMap<usize, TaskState>,
}

impl LocalTasks {
    pub fn new(gpus: Vec<String>, command: Vec<std::ffi::OsString>, logs: PathBuf) -> Self {
        let running = gpus.iter().map(|_| None).collect();
        Self {
            gpus,
            command,
            logs,
            waiting: std::collections::VecDeque::new(),
            running,
            ended: BTreeMap::new(),
        }
    }

    fn spawn(&self, slot: usize, number: usize) -> std::io::Result<std::process::Child> {
        use std::io::Write;
        use std::process::{Command, Stdio};
        std::fs::create_dir_all(&self.logs)?;
        let mut log = std::fs::File::create(self.logs.join(format!("{number}.log")))?;
        let (program, arguments) = self
            .command
            .split_first()
            .ok_or(std::io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).arg("--point").arg(number.to_string());
        if let Some(gpu) = self.gpus.get(slot) {
            writeln!(log, "CUDA_VISIBLE_DEVICES={gpu}")?;
            command.env("CUDA_VISIBLE_DEVICES", gpu);
        }
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
    }

    /// Fills the GPUs that are free.
    fn fill(&mut self) {
        for slot in 0..self.running.len() {
            if self.running.get(slot).is_some_and(Option::is_some) {
                continue;
            }
            let Some(number) = self.waiting.pop_front() else {
                return;
            };
            match self.spawn(slot, number) {
                Ok(child) => {
                    if let Some(place) = self.running.get_mut(slot) {
                        *place = Some((number, child));
                    }
                }
                Err(error) => {
                    self.ended.insert(number, TaskState::Ended(error.to_string()));
                }
            }
        }
    }
}

impl Tasks for LocalTasks {
    fn start(&mut self, points: &[usize]) -> Result<(), TasksError> {
        for point in points {
            self.ended.remove(point);
            self.waiting.push_back(*point);
        }
        self.fill();
        Ok(())
    }

    fn states(&mut self) -> Result<BTreeMap<usize, TaskState>, TasksError> {
        for slot in &mut self.running {
            if let Some((number, child)) = slot
                && let Ok(Some(status)) = child.try_wait()
            {
                self.ended.insert(*number, TaskState::Ended(status.to_string()));
                *slot = None;
            }
        }
        self.fill();
        let mut states = self.ended.clone();
        states.extend(
            self.waiting
                .iter()
                .map(|number| (*number, TaskState::Waiting(None))),
        );
        let running = self.running.iter().flatten();
        states.extend(running.map(|(number, _)| (*number, TaskState::Running)));
        Ok(states)
    }

    fn ask_every(&self) -> Duration {
        Duration::ZERO
    }

    fn grace(&self) -> Duration {
        Duration::ZERO
    }

    fn log(&self, point: usize) -> Option<PathBuf> {
        Some(self.logs.join(format!("{point}.log")))
    }

    /// They save a checkpoint and end.
    fn leave(&mut self) {
        self.waiting.clear();
        for (_, child) in self.running.iter().flatten() {
            // SAFETY: the child has not been waited for, so its number is still its own.
            unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
        }
        for (_, mut child) in self.running.iter_mut().filter_map(Option::take) {
            let _ = child.wait();
        }
    }
}

impl Drop for LocalTasks {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Tasks that end at once: what each try of a combination leaves.
    struct Fake<'a> {
        grid: &'a Grid,
        started: Vec<usize>,
        ends: BTreeMap<usize, TaskState>,
        leaves: fn(&Grid, usize, usize) -> Option<TaskState>,
    }

    impl Tasks for Fake<'_> {
        fn start(&mut self, points: &[usize]) -> Result<(), TasksError> {
            for point in points {
                self.started.push(*point);
                let tries = self.started.iter().filter(|other| *other == point).count();
                match (self.leaves)(self.grid, *point, tries) {
                    Some(state) => self.ends.insert(*point, state),
                    None => self.ends.remove(point),
                };
            }
            Ok(())
        }

        fn states(&mut self) -> Result<BTreeMap<usize, TaskState>, TasksError> {
            Ok(self.ends.clone())
        }

        fn ask_every(&self) -> Duration {
            Duration::ZERO
        }

        fn grace(&self) -> Duration {
            Duration::ZERO
        }

        fn log(&self, _: usize) -> Option<PathBuf> {
            None
        }

        fn leave(&mut self) {}
    }

    fn grid(folder: &Path) -> Grid {
        let text = format!(
            "hidden_size: [16, 32]\nlearning_rate: [0.1, 0.2]\noutput_dir: {}\ngenerate:\n  kind: stocks\n",
            folder.join("out").display()
        );
        Grid::of(Path::new("grid.yaml"), &text, &Values::new()).unwrap()
    }

    fn keep_result(grid: &Grid, number: usize, error: Option<&str>) {
        let point = &grid.points[number - 1];
        let configuration = point.configuration(&Values::new()).unwrap();
        let missing = TrainError::Missing { setting: "data" };
        let mut result = point.result(&configuration, Err(missing));
        result.error = error.map(str::to_owned);
        result.keep().unwrap();
    }

    fn run(
        leaves: fn(&Grid, usize, usize) -> Option<TaskState>,
    ) -> (Vec<usize>, Vec<(usize, Option<String>)>) {
        let folder = tempfile::tempdir().unwrap();
        let grid = grid(folder.path());
        let mut tasks = Fake {
            grid: &grid,
            started: Vec::new(),
            ends: BTreeMap::new(),
            leaves,
        };
        let mut ends = Vec::new();
        let results = run_by_tasks(&grid, &mut tasks, &AtomicBool::new(false), &mut |report| {
            if let GridReport::End { point, result, .. } = report {
                ends.push((*point, result.error.clone()));
            }
        });
        assert_eq!(results.unwrap().len(), 4);
        ends.sort();
        (tasks.started, ends)
    }

    #[test]
    fn what_ends_without_a_result_is_started_again() {
        let (started, ends) = run(|grid, number, tries| {
            // The second combination needs two tries.
            if number != 2 || tries == 2 {
                keep_result(grid, number, None);
            }
            Some(TaskState::Ended("NODE_FAIL".to_owned()))
        });
        assert_eq!(started, [1, 2, 3, 4, 2]);
        assert!(ends.iter().all(|(_, error)| error.is_none()), "{ends:?}");
    }

    #[test]
    fn what_never_ends_well_is_given_up() {
        let (started, ends) = run(|grid, number, _| {
            if number != 3 {
                keep_result(grid, number, None);
            }
            None
        });
        assert_eq!(started.iter().filter(|number| **number == 3).count(), 3);
        assert!(
            ends[2]
                .1
                .as_ref()
                .is_some_and(|error| error.contains("without a result")),
            "{ends:?}"
        );
    }

    #[test]
    fn failures_and_cancelled_tasks_are_results() {
        let (started, ends) = run(|grid, number, _| match number {
            1 => {
                keep_result(grid, 1, Some("the loss is not a number"));
                Some(TaskState::Ended("FAILED".to_owned()))
            }
            2 => Some(TaskState::Cancelled),
            _ => {
                keep_result(grid, number, None);
                None
            }
        });
        assert_eq!(started, [1, 2, 3, 4]);
        assert_eq!(ends[0].1.as_deref(), Some("the loss is not a number"));
        assert_eq!(ends[1].1.as_deref(), Some("its task was cancelled"));
    }

    #[test]
    fn what_an_earlier_call_started_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let grid = grid(folder.path());
        keep_result(&grid, 1, None);
        keep_result(&grid, 2, Some("an earlier failure"));
        let mut tasks = Fake {
            grid: &grid,
            started: Vec::new(),
            ends: BTreeMap::from([(3, TaskState::Running)]),
            leaves: |grid, number, _| {
                keep_result(grid, number, None);
                // Meanwhile the one that was running has ended as well.
                keep_result(grid, 3, None);
                None
            },
        };
        let results = run_by_tasks(&grid, &mut tasks, &AtomicBool::new(false), &mut |_| {}).unwrap();
        assert_eq!((results.len(), tasks.started), (4, vec![2, 4]));
        assert!(results.iter().all(|result| result.error.is_none()));
    }

    #[test]
    fn leaving_keeps_what_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let grid = grid(folder.path());
        keep_result(&grid, 4, None);
        let mut tasks = Fake {
            grid: &grid,
            started: Vec::new(),
            ends: BTreeMap::new(),
            leaves: |_, _, _| Some(TaskState::Waiting(Some("Resources".to_owned()))),
        };
        let results = run_by_tasks(&grid, &mut tasks, &AtomicBool::new(true), &mut |_| {}).unwrap();
        assert_eq!((results.len(), tasks.started), (1, vec![1, 2, 3]));
    }

    /// A scheduler that is away for some calls, also right after it took the tasks.
    struct Away<'a> {
        grid: &'a Grid,
        calls: usize,
        started: Vec<usize>,
    }

    impl Away<'_> {
        fn call(&mut self, away: &[usize]) -> Result<(), TasksError> {
            self.calls += 1;
            if away.contains(&self.calls) {
                let told = message!(en: "no answer", zh: "没有响应");
                return Err(TasksError::Away(Box::new(Failure::new(told))));
            }
            Ok(())
        }
    }

    impl Tasks for Away<'_> {
        fn start(&mut self, points: &[usize]) -> Result<(), TasksError> {
            self.call(&[3])?;
            self.started.extend(points);
            points
                .iter()
                .for_each(|point| keep_result(self.grid, *point, None));
            Ok(())
        }

        fn states(&mut self) -> Result<BTreeMap<usize, TaskState>, TasksError> {
            self.call(&[1, 6])?;
            Ok(BTreeMap::new())
        }

        fn ask_every(&self) -> Duration {
            Duration::ZERO
        }

        fn grace(&self) -> Duration {
            Duration::ZERO
        }

        fn log(&self, _: usize) -> Option<PathBuf> {
            None
        }

        fn leave(&mut self) {}
    }

    #[test]
    fn a_scheduler_that_is_away_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let grid = grid(folder.path());
        keep_result(&grid, 1, Some("an earlier failure"));
        let mut tasks = Away {
            grid: &grid,
            calls: 0,
            started: Vec::new(),
        };
        let mut notes = Vec::new();
        let results = run_by_tasks(&grid, &mut tasks, &AtomicBool::new(false), &mut |report| {
            if let GridReport::Note { told } = report {
                notes.push(told.en.clone());
            }
        })
        .unwrap();
        assert!(results.iter().all(|result| result.error.is_none()), "{results:?}");
        assert_eq!(tasks.started, [1, 2, 3, 4]);
        assert!(notes[0].starts_with("no answer; waiting"), "{notes:?}");
        assert!(notes.len() <= 3, "{notes:?}");
    }
}
