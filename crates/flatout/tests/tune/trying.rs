//! A folder of its own for each test, with records, lock and temporary files inside.

use std::process::{Command, Output};

pub struct Try {
    pub folder: tempfile::TempDir,
}

/// A program without PyTorch that tells its steps itself: 2 ms a step and a little a sample.
pub const STEPS: &str = "import sys, time, flatout
batch = int(sys.argv[1])
for step in range(200000):
    time.sleep(0.002 + 0.00002 * batch)
    flatout.step(samples=batch)
";

impl Try {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn script(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flatout"));
        command
            .args(["--lang", "en"])
            .args(arguments)
            .current_dir(self.folder.path());
        command.env("FLATOUT_HOME", self.folder.path().join("home"));
        command.env("PYTHONPATH", crate::support::package());
        // The lock lies among the temporary files: tests must not wait for each other.
        command.env("TMPDIR", self.folder.path());
        // Several threads that wait for each other come to a stand beside other tests.
        command.env("OMP_NUM_THREADS", "1");
        command
    }

    pub fn tune(&self, options: &[&str], program: &[&str]) -> Output {
        let quick = ["tune", "--trial-seconds", "0.4"];
        let arguments: Vec<&str> = quick
            .iter()
            .chain(options)
            .copied()
            .chain(["--"])
            .chain(program.iter().copied())
            .collect();
        self.command(&arguments).output().unwrap()
    }

    /// Processes whose command names this test's folder or a file in it.
    pub fn left_behind(&self) -> Vec<String> {
        let here = self.folder.path().to_string_lossy().into_owned();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let folder = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            if folder.starts_with(&here) {
                let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                found.push(String::from_utf8_lossy(&command).replace('\0', " "));
            }
        }
        found
    }
}

pub fn words(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

pub fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", words(output)))
}

/// Whether the search changed nothing: these programs sleep in every step, which no setting helps.
pub fn kept(text: &str) -> bool {
    text.contains("Keep your settings") || text.contains("No setting makes this program faster")
}
