//! `-v` and `--log-file`: the `log` crate's records to stderr, to a file, or both.

use flatout_core::Result;
use flatout_core::error::FileError;
use log::{Level, LevelFilter, Log, Metadata, Record};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
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
            File::create(path)
                .map(Mutex::new)
                .map_err(|e| FileError::writing(path, e))
        })
        .transpose()?;
    let logger = Logger {
        started: Instant::now(),
        stderr,
        file,
    };
    if log::set_boxed_logger(Box::new(logger)).is_ok() {
        log::set_max_level(most);
    }
    Ok(())
}

/// While something is drawn on the terminal: lines for stderr wait here. At most so many; the oldest stay.
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
        if record.level() <= self.stderr {
            let line = format!("{level}: {}", record.args());
            match HELD.lock() {
                Ok(mut held) if held.is_some() => held.iter_mut().for_each(|held| keep(held, &line)),
                _ => eprintln!("{line}"),
            }
        }
        if let Some(Ok(mut file)) = self.file.as_ref().map(Mutex::lock) {
            let seconds = self.started.elapsed().as_secs_f64();
            // A full disk must not stop the command that is being logged.
            let _ = writeln!(
                file,
                "{seconds:10.3} {level} {}: {}",
                record.target(),
                record.args()
            );
        }
    }

    fn flush(&self) {}
}
