//! What a training leaves for other programs to plot: `metrics.jsonl`, `metrics.csv` and TensorBoard's event files. A write that
//! fails (a full disk) is the caller's to say; what it would have held stays here and is written with the next one.

mod event_file;
mod rows;

use crate::trainer::Report;
use event_file::EventFile;
use flatout_core::error::FileError;
use flatout_core::files::write_atomically;
use rows::Row;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub struct MetricFiles {
    output: PathBuf,
    rows: Vec<Row>,
    events: EventFile,
    /// When the files were last written, and whether rows have come since.
    written: Option<Instant>,
    unwritten: bool,
}

/// The lines of a training up to the step that another one continues from.
#[derive(Default)]
pub struct Earlier(Vec<Row>);

impl Earlier {
    /// Of the training in a folder.
    pub fn read(folder: &Path, last_step: u64) -> Self {
        Self(rows::read(&folder.join("metrics.jsonl"), last_step))
    }
}

/// The files are written whole, so not more often than this: epochs may be shorter than a write.
const EVERY: Duration = Duration::from_secs(1);

impl MetricFiles {
    /// Begins with the lines of what was trained before. `resumed_at`: the step from which on a training in this folder continues;
    /// one that begins anew keeps none of its events.
    pub fn open(output: &Path, earlier: Earlier, resumed_at: Option<u64>) -> Result<Self, FileError> {
        Ok(Self {
            events: EventFile::open(&output.join("tensorboard"), resumed_at)?,
            output: output.to_owned(),
            rows: earlier.0,
            written: None,
            unwritten: false,
        })
    }

    /// The line of an epoch goes into every file, at the latest with [`MetricFiles::finish`].
    pub fn epoch(&mut self, report: &Report) -> Result<(), FileError> {
        let Some(row) = serde_json::to_string(report)
            .ok()
            .and_then(|line| Row::parse(&line))
        else {
            return Ok(());
        };
        for (name, value) in row.numbers() {
            if let Some(tag) = tag(&name) {
                self.events.scalar(&tag, row.step(), value);
            }
        }
        self.rows.push(row);
        self.unwritten = true;
        match self.written {
            Some(written) if written.elapsed() < EVERY => Ok(()),
            _ => self.write(),
        }
    }

    /// Writes what is not yet written.
    pub fn finish(&mut self) -> Result<(), FileError> {
        if self.unwritten { self.write() } else { Ok(()) }
    }

    /// The mean loss since the last line of progress, for TensorBoard alone.
    pub fn step_loss(&mut self, step: u64, loss: f64) {
        self.events.scalar("steps/loss", step, loss);
    }

    fn write(&mut self) -> Result<(), FileError> {
        write_atomically(
            &self.output.join("metrics.jsonl"),
            rows::jsonl(&self.rows).as_bytes(),
        )?;
        write_atomically(&self.output.join("metrics.csv"), rows::csv(&self.rows).as_bytes())?;
        self.events.flush()?;
        (self.written, self.unwritten) = (Some(Instant::now()), false);
        Ok(())
    }
}

/// TensorBoard's name of a column; none for a column that only counts.
fn tag(column: &str) -> Option<String> {
    match column {
        "epoch" | "epochs" | "step" | "validation_samples" => None,
        "loss" => Some("train/loss".to_owned()),
        "rate" => Some("train/learning_rate".to_owned()),
        "samples_s" => Some("train/samples_per_second".to_owned()),
        "seconds" => Some("train/epoch_seconds".to_owned()),
        other => Some(match other.strip_prefix("validation_") {
            Some(score) => format!("validation/{score}"),
            None => format!("train/{other}"),
        }),
    }
}
