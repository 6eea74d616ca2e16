//! Programs that `run` and `tune` started. A call waits for one as long as it asks to; the program goes on after that, and `job` asks again.
//! One at a time: two programs that share a machine would measure each other.

use flatout_core::{Failure, Result, message};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

const POLL: Duration = Duration::from_millis(50);
/// A program that ignores SIGTERM this long is killed.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a waiting client hears that the program still runs.
const PROGRESS: Duration = Duration::from_secs(2);
/// How much of the program's last output an answer shows.
const TAIL_BYTES: u64 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Run,
    Tune,
}

#[derive(Clone, Debug)]
pub struct Job {
    pub id: String,
    pub kind: Kind,
    /// The program with its arguments, without flatout.
    pub command: Vec<String>,
    pub started_unix_ms: u64,
    pub seconds: f64,
    pub ended: Option<ExitStatus>,
    /// Where flatout writes its JSON.
    pub result: PathBuf,
    output: PathBuf,
}

impl Job {
    /// The end of what the program and flatout printed.
    pub fn output_tail(&self) -> String {
        let read = || -> std::io::Result<String> {
            let mut file = File::open(&self.output)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
            let mut bytes = Vec::new();
            file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        read().unwrap_or_default()
    }

    /// `0`, or `-15` for a program that a signal ended.
    pub fn exit_code(&self) -> Option<i32> {
        let status = self.ended?;
        status.code().or_else(|| status.signal().map(|signal| -signal))
    }
}

struct Entry {
    job: Job,
    child: Child,
    begun: Instant,
}

impl Entry {
    fn look(&mut self) -> Job {
        if self.job.ended.is_none() {
            self.job.seconds = self.begun.elapsed().as_secs_f64();
            self.job.ended = self.child.try_wait().ok().flatten();
        }
        self.job.clone()
    }

    fn signal(&mut self, signal: i32) {
        if self.look().ended.is_none()
            && let Ok(pid) = i32::try_from(self.child.id())
        {
            // SAFETY: the child was not waited for, so its id cannot belong to another process.
            unsafe { libc::kill(pid, signal) };
        }
    }
}

/// What a job is started with: flatout's own arguments before and after the file for its result.
pub struct Start<'a> {
    pub kind: Kind,
    pub flatout: &'a Path,
    pub home: &'a Path,
    /// The folder that the program runs in.
    pub folder: &'a Path,
    pub arguments: Vec<String>,
    pub command: Vec<String>,
}

#[derive(Default)]
pub struct Jobs {
    entries: Mutex<Vec<Entry>>,
    folder: Mutex<Option<PathBuf>>,
    /// The client has gone.
    ending: AtomicBool,
    spawner: OnceLock<Sender<Order>>,
}

/// A program to start, and where to say how that went.
type Order = (Command, Sender<io::Result<Child>>);

impl Jobs {
    /// Whoever waits for a job stops it.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    pub fn start(&self, start: Start<'_>) -> Result<String> {
        let mut entries = lock(&self.entries);
        if let Some(busy) = entries
            .iter_mut()
            .map(Entry::look)
            .find(|job| job.ended.is_none())
        {
            let id = busy.id;
            return Err(Failure::new(
                message!(en: "{id} is still running; two programs at once would disturb each other's \
                measurements", zh: "{id} 仍在运行；同时运行两个程序会互相干扰测量"),
            )
            .with_hint(message!(en: "wait for it with `job`, or stop it with `job` and `stop: true`", zh: "用 `job` 等待它结束，或用 `job` 加 `stop: true` 停止它")));
        }
        let id = format!("job{}", entries.len() + 1);
        let folder = self.folder()?;
        let (output, result) = (
            folder.join(format!("{id}.log")),
            folder.join(format!("{id}.json")),
        );
        let log = private(&output)?;
        let errors = log.try_clone().map_err(|error| failed(&output, &error))?;
        let mut command = Command::new(start.flatout);
        command.args(&start.arguments);
        match start.kind {
            Kind::Run => {
                command.arg("--json").arg(&result).stdout(log);
            }
            Kind::Tune => {
                command.arg("--json").stdout(private(&result)?);
            }
        }
        command
            .arg("--")
            .args(&start.command)
            .current_dir(start.folder)
            .env("FLATOUT_HOME", start.home)
            // Ours is the protocol's.
            .stdin(Stdio::null())
            .stderr(errors)
            // A Ctrl-C at the server's terminal is not for the program.
            .process_group(0);
        let child = self
            .spawned(command)
            .map_err(|error| failed(start.flatout, &error))?;
        let started_unix_ms = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| since.as_millis() as u64);
        entries.push(Entry {
            job: Job {
                id: id.clone(),
                kind: start.kind,
                command: start.command,
                started_unix_ms,
                seconds: 0.0,
                ended: None,
                result,
                output,
            },
            child,
            begun: Instant::now(),
        });
        Ok(id)
    }

    /// Starts a program that is told to end when this process dies, however that happens. The kernel ties that to the thread that started
    /// it, so one thread starts all of them and lives as long as the server.
    fn spawned(&self, mut command: Command) -> io::Result<Child> {
        // SAFETY: between fork and exec it only makes one system call, without memory of its own.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            });
        }
        let spawner = self.spawner.get_or_init(|| {
            let (sender, orders) = channel::<Order>();
            std::thread::spawn(move || {
                for (mut command, answer) in orders {
                    let _ = answer.send(command.spawn());
                }
            });
            sender
        });
        let gone = || io::Error::other("the thread that starts programs is gone");
        let (sender, answer) = channel();
        spawner.send((command, sender)).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }

    pub fn look(&self, id: &str) -> Result<Job> {
        let mut entries = lock(&self.entries);
        let known: Vec<String> = entries.iter().map(|entry| entry.job.id.clone()).collect();
        let entry = entries.iter_mut().find(|entry| entry.job.id == id);
        entry.map(Entry::look).ok_or_else(|| {
            let failure = Failure::new(message!(en: "there is no job `{id}`", zh: "没有任务 `{id}`"));
            let known = known.join(", ");
            if known.is_empty() {
                return failure.with_hint(
                    message!(en: "this server has not started any yet; `run` and `tune` start them", zh: "此服务器尚未启动任务；`run` 和 `tune` 会启动"),
                );
            }
            failure.with_hint(message!(en: "jobs of this server: {known}", zh: "此服务器的任务：{known}"))
        })
    }

    /// Waits until the job has ended, the time is up, or the call was cancelled. A cancelled call leaves its job alone: clients cancel calls
    /// that take them too long, and hours of training are not theirs to throw away. The job goes with the client itself.
    pub fn wait(
        &self,
        id: &str,
        longest: Duration,
        cancelled: &AtomicBool,
        progress: &dyn Fn(f64, &str),
    ) -> Result<Job> {
        let begun = Instant::now();
        let mut reported = begun;
        loop {
            let job = self.look(id)?;
            if job.ended.is_some() {
                return Ok(job);
            }
            if self.ending.load(Ordering::Relaxed) {
                return self.stop(id);
            }
            if cancelled.load(Ordering::Relaxed) || begun.elapsed() >= longest {
                return Ok(job);
            }
            if reported.elapsed() >= PROGRESS {
                reported = Instant::now();
                progress(job.seconds, &format!("{id} has run for {:.0} s", job.seconds));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Asks it to end, as Ctrl-C at a terminal would; kills it where that does not help.
    pub fn stop(&self, id: &str) -> Result<Job> {
        self.look(id)?;
        self.signal(id, libc::SIGTERM);
        let begun = Instant::now();
        loop {
            let job = self.look(id)?;
            if job.ended.is_some() {
                return Ok(job);
            }
            if begun.elapsed() > PATIENCE {
                self.signal(id, libc::SIGKILL);
            }
            std::thread::sleep(POLL);
        }
    }

    fn signal(&self, id: &str, signal: i32) {
        let mut entries = lock(&self.entries);
        if let Some(entry) = entries.iter_mut().find(|entry| entry.job.id == id) {
            entry.signal(signal);
        }
    }

    /// Nothing that the client started goes on after it.
    pub fn close(&self) {
        let running: Vec<String> = lock(&self.entries)
            .iter_mut()
            .map(Entry::look)
            .filter(|job| job.ended.is_none())
            .map(|job| job.id)
            .collect();
        for id in running {
            let _ = self.stop(&id);
        }
        if let Some(folder) = lock(&self.folder).take() {
            let _ = std::fs::remove_dir_all(folder);
        }
    }

    /// For outputs; only for the user's own eyes, as a program may print anything.
    fn folder(&self) -> Result<PathBuf> {
        let mut folder = lock(&self.folder);
        if let Some(folder) = &*folder {
            return Ok(folder.clone());
        }
        let base = std::env::temp_dir();
        let process = std::process::id();
        let mut number = 0u32;
        loop {
            let path = base.join(format!("flatout-mcp-{process}-{number}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    *folder = Some(path.clone());
                    return Ok(path);
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && number < 1000 => {
                    number += 1
                }
                Err(error) => return Err(failed(&path, &error)),
            }
        }
    }
}

fn private(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.create_new(true).append(true).mode(0o600);
    options.open(path).map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    let path = path.display();
    Failure::new(message!(en: "failed to start or write `{path}`", zh: "无法启动或写入 `{path}`"))
        .caused_by(error)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell stands in for flatout: `sh -c SCRIPT --json … -- …` ignores the rest.
    fn start(jobs: &Jobs, script: &str) -> Result<String> {
        let here = std::env::temp_dir();
        jobs.start(Start {
            kind: Kind::Tune,
            flatout: Path::new("/bin/sh"),
            home: &here,
            folder: &here,
            arguments: vec!["-c".into(), script.into()],
            command: vec!["program".into()],
        })
    }

    fn wait(jobs: &Jobs, id: &str, seconds: u64, cancelled: bool) -> Job {
        let cancelled = AtomicBool::new(cancelled);
        jobs.wait(id, Duration::from_secs(seconds), &cancelled, &|_, _| ())
            .unwrap()
    }

    #[test]
    fn a_job_ends_with_its_status_and_output() {
        let jobs = Jobs::default();
        let id = start(&jobs, "echo words >&2; exit 3").unwrap();
        let job = wait(&jobs, &id, 60, false);
        assert_eq!(
            (job.exit_code(), job.output_tail().as_str()),
            (Some(3), "words\n")
        );
        jobs.close();
    }

    #[test]
    fn one_job_at_a_time_and_a_cancelled_call_leaves_it_alone() {
        let jobs = Jobs::default();
        let id = start(&jobs, "exec sleep 600").unwrap();
        assert!(wait(&jobs, &id, 0, false).ended.is_none());
        assert!(start(&jobs, "true").is_err());
        assert!(wait(&jobs, &id, 600, true).ended.is_none());
        assert_eq!(jobs.stop(&id).unwrap().exit_code(), Some(-libc::SIGTERM));
        let second = start(&jobs, "true").unwrap();
        assert_ne!(second, id);
        jobs.close();
        assert!(jobs.look("job9").is_err());
    }
}
