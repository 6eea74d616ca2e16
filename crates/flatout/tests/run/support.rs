//! Running programs with and without flatout.

use flatout_record::{Record, RunData, StepTimeline};
#[allow(unused_imports, reason = "each test binary uses its part")]
pub use flatout_testing::{python as plain_python, torch_python};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of its own for each test, with the records inside.
pub struct Place {
    pub folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// `flatout run` with these arguments, in this folder.
    pub fn flatout(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flatout"));
        command
            .args(["--lang", "en", "run"])
            .args(arguments)
            .current_dir(self.folder.path());
        command.env("FLATOUT_HOME", self.folder.path().join("home"));
        command
    }

    /// Runs a script under flatout and gives its output and its record.
    pub fn run(&self, python: &Path, options: &[&str], program: &[&str]) -> (Output, RunData) {
        let mut arguments = options.to_vec();
        arguments.extend(["--", python.to_str().unwrap()]);
        arguments.extend(program);
        let output = self
            .flatout(&arguments)
            .env("PYTHONPATH", package())
            .output()
            .unwrap();
        (output, self.record())
    }

    /// The steps that the last record keeps event by event.
    pub fn timelines(&self) -> Vec<StepTimeline> {
        let all = flatout_record::list(&self.folder.path().join("home/runs"));
        let last = all.last().expect("a record");
        Record::open(&last.folder).unwrap().timelines().collect()
    }

    pub fn record(&self) -> RunData {
        let runs = self.folder.path().join("home/runs");
        let all = flatout_record::list(&runs);
        let last = all.last().expect("a record");
        Record::open(&last.folder).unwrap().load()
    }
}

/// The folder with the public `flatout` package, as if pip had installed it.
pub fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python")
}
