//! `-v` and `--log-file`: the `log` crate's records to stderr, to a file, or both.

use flatout_core::Result;
use flatout_core::error::FileError;
use flatout_core::text::visible_without_colors;
use log::{Level, LevelFilter, Log, Metadata, Record};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

struct Logger {
    started: Instant,
    stderr: LevelFilter,
    file: Option<Mutex<File>>,
}

/// Starts logging. Warnings always reach stderr; the file gets everything down to debug.
pub fn start(verbose: u8, file: Option<&Path>) -> Result<()> {
    let stderr = match verbose {
        0 => LevelFilter::Warn,
        1 => LevelFilter::Info,
        _ => LevelFilter::Debug,
    };
    let most = if file.is_some() {
        LevelFilter::Debug
    } else {
        stderr
    };
    let file = file
        .map(|path| {
            File::options()
                .append(true)
                .create(true)
                .open(path)
                .and_then(|file| file.set_len(0).map(|()| file))
                .map(Mutex::new)
                .map_err(|e| FileError::writing(path, e))
        })
        .transpose()?;
    let started = Instant::now();
    if let Some(copy) = file.as_ref().and_then(|file| file.lock().ok()?.try_clone().ok()) {
        let _ = COPY.set((started, Mutex::new(copy)));
    }
    let logger = Logger {
        started,
        stderr,
        file,
    };
    if log::set_boxed_logger(Box::new(logger)).is_ok() {
        log::set_max_level(most);
    }
    Ok(())
}

/// What is printed to stderr, for the file as well.
static COPY: OnceLock<(Instant, Mutex<File>)> = OnceLock::new();

/// Copies what a command prints into the file of `--log-file`.
pub fn copy(text: &str) {
    let Some((started, file)) = COPY.get() else {
        return;
    };
    let seconds = started.elapsed().as_secs_f64();
    let text = visible_without_colors(text);
    let plain = text.lines().filter(|line| !line.trim().is_empty());
    if let Ok(mut file) = file.lock() {
        for line in plain {
            let _ = writeln!(file, "{seconds:10.3} printed {line}");
        }
    }
}

/// Set where a command must print nothing of its own next to the program's output.
static QUIET: AtomicBool = AtomicBool::new(false);

/// From now on warnings reach the file of `--log-file` only.
pub fn quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// While something is drawn on the terminal: lines for stderr wait here. The number is limited; the oldest are kept.
static HELD: Mutex<Option<Vec<String>>> = Mutex::new(None);
const MOST_HELD: usize = 50;

fn keep(held: &mut Vec<String>, line: &str) {
    if held.len() < MOST_HELD {
        held.push(line.to_owned());
    }
}

/// Until it is dropped, nothing is logged to stderr; then all of it.
pub struct Hold;

pub fn hold() -> Hold {
    if let Ok(mut held) = HELD.lock() {
        held.get_or_insert_default();
    }
    Hold
}

impl Drop for Hold {
    fn drop(&mut self) {
        let lines = HELD.lock().ok().and_then(|mut held| held.take());
        lines
            .unwrap_or_default()
            .iter()
            .for_each(|line| eprintln!("{line}"));
    }
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata) -> bool {
        metadata.target().starts_with("flatout")
    }

    fn log(&self, record: &Record) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let level = match record.level() {
            Level::Error => "error",
            Level::Warn => "warning",
            Level::Info => "info",
            Level::Debug => "debug",
            Level::Trace => "trace",
        };
        let is_shown = self.stderr > LevelFilter::Warn || !QUIET.load(Ordering::Relaxed);
        if record.level() <= self.stderr && (is_shown || record.level() == Level::Error) {
            let line = format!("{level}: {}", record.args());
            match HELD.lock() {
                Ok(mut held) if held.is_some() => held.iter_mut().for_each(|held| keep(held, &line)),
                _ => crate::output::write_stderr_only(&(line + "\n")),
            }
        }
        if let Some(Ok(mut file)) = self.file.as_ref().map(Mutex::lock) {
            let seconds = self.started.elapsed().as_secs_f64();
            // A full disk must not stop the command that is being logged.
            let line = format!("{level} {}: {}", record.target(), record.args());
            let _ = writeln!(file, "{seconds:10.3} {}", visible_without_colors(&line));
        }
    }

    fn flush(&self) {}
}
