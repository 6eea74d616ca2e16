//! The user's source behind the samples: which statement a line is, and the loops around it. It is read while the program runs,
//! because the file may be another one when somebody looks at the record.

use flatout_diagnose::account::frame::Frame;
use flatout_lint::context::Context;
use flatout_record::{RecordWriter, SourceLine, SourceLoop, StackTick};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Larger files are not a person's.
const LARGEST_BYTES: u64 = 2 << 20;
/// Files and lines a record keeps.
const MOST_FILES: usize = 60;
const MOST_LINES: usize = 600;
/// A line with less of the samples' time is not worth a look.
const LEAST_SHARE: f64 = 0.002;

/// A class of a library whose methods have this share of the samples' time is looked for in the source.
const LEAST_CLASS_SHARE: f64 = 0.05;

/// Settings lines a file may have.
const MOST_SETTINGS: usize = 60;
/// What the lines that set something up mention.
const SETTINGS: [&str; 34] = [
    "set_num_threads",
    "OMP_NUM_THREADS",
    "set_detect_anomaly",
    "detect_anomaly",
    "use_deterministic_algorithms",
    "CUDA_LAUNCH_BLOCKING",
    "float64",
    ".double()",
    "set_default_dtype",
    "TrainingArguments(",
    "Trainer(",
    "Accelerator(",
    "deepspeed.initialize(",
    "create_loader(",
    "ModelCheckpoint(",
    "DataLoader(",
    "gradient_checkpointing",
    "checkpoint(",
    "eval_steps",
    "eval_strategy",
    "val_check_interval",
    "check_val_every_n_epoch",
    "save_steps",
    "every_n_train_steps",
    "logging_steps",
    "log_every_n_steps",
    "padding",
    "bf16",
    "fp16",
    "tf32",
    "precision",
    "optim=",
    "batch_size",
    "empty_cache",
];

/// A file of the user's, and what the lint reports of it by line.
struct File {
    context: Context,
    lint: BTreeMap<u32, Vec<String>>,
}

/// Knows which lines are written already.
pub struct Sources {
    /// Relative names in stacks are relative to this.
    folder: PathBuf,
    files: BTreeMap<String, Option<File>>,
    written: BTreeSet<(String, u32)>,
    /// Files read since the last write.
    fresh: Vec<String>,
    /// Classes whose constructions are written.
    made: BTreeSet<String>,
}

impl Sources {
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            files: BTreeMap::new(),
            written: BTreeSet::new(),
            fresh: Vec::new(),
            made: BTreeSet::new(),
        }
    }

    /// Writes the lines of these stacks that are new.
    pub fn write(&mut self, tick: &StackTick, writer: &mut RecordWriter) {
        let all: f64 = tick.stacks.iter().map(|stack| stack.ms).sum();
        let mut lines: BTreeMap<(String, u32), f64> = BTreeMap::new();
        for stack in &tick.stacks {
            let frames = stack.frames.iter().filter_map(|text| Frame::parse(text));
            for frame in frames.filter(Frame::is_users) {
                *lines.entry((frame.file, frame.line)).or_default() += stack.ms;
            }
        }
        for ((file, line), ms) in lines {
            let known = self.written.contains(&(file.clone(), line));
            if known || ms < all * LEAST_SHARE || self.written.len() >= MOST_LINES {
                continue;
            }
            if let Some(found) = self.line(&file, line) {
                writer.source_line(&found);
            }
            self.written.insert((file, line));
        }
        for file in std::mem::take(&mut self.fresh) {
            self.write_settings(&file, writer);
        }
        self.write_constructions(tick, all, writer);
    }

    /// Writes the lines that make the library objects whose methods take time: a transform is changed where it is made.
    fn write_constructions(&mut self, tick: &StackTick, all: f64, writer: &mut RecordWriter) {
        let mut classes: BTreeMap<String, f64> = BTreeMap::new();
        for stack in &tick.stacks {
            let frames = stack.frames.iter().filter_map(|text| Frame::parse(text));
            let found: BTreeSet<String> = frames
                .filter_map(|frame| frame.library_class().map(str::to_owned))
                .collect();
            for class in found {
                *classes.entry(class).or_default() += stack.ms;
            }
        }
        for (class, ms) in classes {
            if ms < all * LEAST_CLASS_SHARE
                || self.made.len() >= MOST_SETTINGS
                || !self.made.insert(class.clone())
            {
                continue;
            }
            let call = format!("{class}(");
            let files: Vec<String> = self.files.keys().cloned().collect();
            for file in files {
                let Some(Some(known)) = self.files.get(&file) else {
                    continue;
                };
                for line in known.context.lines_with(&[&call]).into_iter().take(4) {
                    if let Some(found) = self.line(&file, line) {
                        writer.source_line(&SourceLine {
                            makes: vec![class.clone()],
                            ..found
                        });
                    }
                }
            }
        }
    }

    /// Writes the lines of a file that set something up, whether or not samples fell on them: findings name them.
    fn write_settings(&mut self, file: &str, writer: &mut RecordWriter) {
        let Some(Some(found)) = self.files.get(file) else {
            return;
        };
        let lines = found.context.lines_with(&SETTINGS);
        for line in lines.into_iter().take(MOST_SETTINGS) {
            if self.written.contains(&(file.to_owned(), line)) {
                continue;
            }
            if let Some(found) = self.line(file, line) {
                writer.source_line(&found);
            }
            self.written.insert((file.to_owned(), line));
        }
    }

    fn line(&mut self, file: &str, line: u32) -> Option<SourceLine> {
        if !self.files.contains_key(file) {
            if self.files.len() >= MOST_FILES {
                return None;
            }
            self.files.insert(file.to_owned(), read(&self.folder.join(file)));
            self.fresh.push(file.to_owned());
        }
        let read = self.files.get(file)?.as_ref()?;
        let found = read.context.line(line)?;
        let loops = found.loops.into_iter();
        Some(SourceLine {
            file: file.to_owned(),
            line,
            text: found.text,
            loops: loops.map(|(line, text)| SourceLoop { line, text }).collect(),
            lint: read.lint.get(&line).cloned().unwrap_or_default(),
            makes: Vec::new(),
        })
    }
}

fn read(path: &Path) -> Option<File> {
    let size = std::fs::metadata(path)
        .ok()
        .filter(|found| found.is_file())?
        .len();
    if size > LARGEST_BYTES {
        return None;
    }
    let text = std::fs::read_to_string(path).ok()?;
    Some(File {
        context: Context::new(path.to_owned(), text),
        lint: flatout_lint::by_line(path),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_record::{Record, RunInfo, SCHEMA, StackCount};

    #[test]
    fn writes_each_line_once_with_its_loops() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join("train.py"),
            "for x in data:\n    for t in x:\n        work(t)\nimport torch\nfrom torch.utils.data import Dataset\nclass Rows(Dataset):\n    def __getitem__(self, index):\n        return torch.load(self.path)[index]\n",
        )
        .unwrap();
        let record = folder.path().join("record");
        let info = RunInfo {
            schema: SCHEMA,
            ..RunInfo::default()
        };
        let mut writer = RecordWriter::create(&record, info).unwrap();
        let stack = |frame: &str| StackCount {
            frames: vec![frame.into(), "f (/lib/python3.11/json/x.py:3)".into()],
            count: 10,
            ms: 100.0,
            ..StackCount::default()
        };
        let tick = StackTick {
            t: 1.0,
            stacks: vec![
                stack("<module> (train.py:3)"),
                stack("<module> (train.py:8)"),
                stack("<module> (gone.py:3)"),
            ],
            descheduled_ms: None,
        };
        let mut sources = Sources::new(folder.path().to_owned());
        sources.write(&tick, &mut writer);
        sources.write(&tick, &mut writer);
        let lines = Record::open(&record).unwrap().load().lines;
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1].lint, ["file-reopened-in-getitem"]);
        assert_eq!(lines[0].text, "work(t)");
        assert_eq!(lines[0].loops.len(), 2);
    }
}
