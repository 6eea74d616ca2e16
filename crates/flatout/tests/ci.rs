//! Baselines and the gate of CI: the script of the GitHub Action, run as the action runs it, with real programs.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "run/support.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// One step takes this long, in seconds; the machine's load is small beside it.
const FAST: &str = "0.01";
const SLOW: &str = "0.08";
const PROGRAM: &str = "import sys, time, flatout
print('::error::forged by the program')
for _ in range(int(sys.argv[2])):
    time.sleep(float(sys.argv[1]))
    flatout.step(samples=8)
";

struct Checkout {
    folder: tempfile::TempDir,
    python: PathBuf,
}

impl Checkout {
    fn new() -> Option<Self> {
        let python = support::plain_python()?;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("train.py"), PROGRAM).unwrap();
        Some(Self { folder, python })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The action's script with these inputs, as a runner starts it.
    fn gate(&self, inputs: &[(&str, &str)]) -> Output {
        let program = Path::new(env!("CARGO_BIN_EXE_flatout")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../action/gate.sh");
        for file in ["summary.md", "outputs"] {
            let _ = std::fs::remove_file(self.path(file));
        }
        let mut command = Command::new("bash");
        command
            .arg(script)
            .current_dir(self.folder.path())
            .env("PATH", path)
            .env("PYTHONPATH", support::package())
            .env("LANG", "C")
            .env_remove("LC_ALL")
            .env_remove("FLATOUT_HOME")
            .env("GITHUB_STEP_SUMMARY", self.path("summary.md"))
            .env("GITHUB_OUTPUT", self.path("outputs"))
            .env("FLATOUT_GATE_RETRIES", "0");
        for (name, value) in inputs {
            command.env(format!("FLATOUT_GATE_{name}"), value);
        }
        command.output().unwrap()
    }

    fn command(&self, seconds: &str, steps: &str) -> String {
        format!("{} train.py {seconds} {steps}", self.python.display())
    }

    fn flatout(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_flatout"))
            .args(["--lang", "en"])
            .args(arguments)
            .current_dir(self.folder.path())
            .env_remove("FLATOUT_HOME")
            .output()
            .unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_gate_passes_fails_and_keeps_baselines() {
    let Some(checkout) = Checkout::new() else { return };
    let (fast, slow) = (checkout.command(FAST, "400"), checkout.command(SLOW, "100"));
    // The first run of a repository.
    let first = checkout.gate(&[("COMMAND", &fast)]);
    assert_eq!(
        first.status.code(),
        Some(0),
        "{} {}",
        text(&first.stdout),
        text(&first.stderr)
    );
    assert!(text(&first.stdout).contains("::notice title=flatout gate::there was no baseline main"));
    let outputs = checkout.read("outputs");
    assert!(
        outputs.contains("result=no-baseline\n") && outputs.contains("saved=true\n"),
        "{outputs}"
    );
    assert!(checkout.path(".flatout/baselines/main/run.json").is_file());
    let saved = checkout.read(".flatout/baselines/main/run.json");
    // What the program prints cannot command the runner.
    let log = text(&first.stdout);
    let (before, forged) = log.split_once("::error::forged").unwrap();
    let token = before
        .rsplit_once("::stop-commands::")
        .unwrap()
        .1
        .lines()
        .next()
        .unwrap();
    assert!(forged.contains(&format!("\n::{token}::\n")), "{log}");
    // The same again, with room for a loaded machine.
    let same = checkout.gate(&[("COMMAND", &fast), ("FAIL_IF", "slower=60%")]);
    assert_eq!(
        same.status.code(),
        Some(0),
        "{} {}",
        text(&same.stdout),
        text(&same.stderr)
    );
    assert!(checkout.read("outputs").contains("result=passed\n"));
    assert!(
        checkout
            .read("summary.md")
            .starts_with("## flatout: not slower than `main` (slower=60%)\n")
    );
    assert_eq!(
        checkout.read(".flatout/baselines/main/run.json"),
        saved,
        "kept only on the default branch"
    );
    // Eight times slower.
    let slower = checkout.gate(&[("COMMAND", &slow), ("FAIL_IF", "slower=50%"), ("RETRIES", "1")]);
    let log = text(&slower.stdout);
    assert_eq!(slower.status.code(), Some(1), "{log} {}", text(&slower.stderr));
    assert_eq!(
        log.matches("::group::flatout run").count(),
        2,
        "it is repeated before it fails: {log}"
    );
    assert!(
        log.contains("::error title=Slower than the baseline::B is "),
        "{log}"
    );
    let summary = checkout.read("summary.md");
    assert!(
        summary.starts_with("## flatout: slower than `main` (slower=50%)\n\n> B is "),
        "{summary}"
    );
    assert!(
        summary.contains("| --- |") && !summary.contains("::error"),
        "{summary}"
    );
    assert!(checkout.read("outputs").contains("result=failed\n"));
    // A pass on the default branch becomes the baseline.
    let main = checkout.gate(&[
        ("COMMAND", &fast),
        ("FAIL_IF", "slower=60%"),
        ("DEFAULT_BRANCH", "true"),
    ]);
    assert_eq!(main.status.code(), Some(0), "{}", text(&main.stdout));
    assert_ne!(checkout.read(".flatout/baselines/main/run.json"), saved);
}

#[test]
fn the_gate_names_what_is_wrong_with_its_inputs() {
    let Some(checkout) = Checkout::new() else { return };
    let fast = checkout.command(FAST, "5");
    let failing = format!("{} -c raise(SystemExit(3))", checkout.python.display());
    for (inputs, words) in [
        (vec![("COMMAND", "")], "`command` is empty"),
        (vec![("COMMAND", "no-such-program x")], "ended with status"),
        (vec![("COMMAND", failing.as_str())], "ended with status 3"),
        (
            vec![("COMMAND", fast.as_str()), ("RETRIES", "many")],
            "`retries` must be",
        ),
        (
            vec![("COMMAND", fast.as_str()), ("STEPS", "1;id")],
            "`steps` must be",
        ),
        (
            vec![("COMMAND", fast.as_str()), ("SAVE", "maybe")],
            "`save` must be",
        ),
        (
            vec![("COMMAND", fast.as_str()), ("BASELINE", "../up")],
            "could not be saved",
        ),
    ] {
        let output = checkout.gate(&inputs);
        let log = text(&output.stdout);
        assert_eq!(output.status.code(), Some(2), "{inputs:?}: {log}");
        let last = log
            .lines()
            .filter(|line| line.starts_with("::error title=flatout gate::"))
            .count();
        assert!(last == 1 && log.contains(words), "{inputs:?}: {log}");
    }
    // No shell reads the command.
    let output = checkout.gate(&[
        ("COMMAND", "echo $(touch made) ; touch made\n"),
        ("SAVE", "never"),
    ]);
    assert!(!checkout.path("made").exists(), "{}", text(&output.stdout));
}

#[test]
fn baselines_are_saved_listed_compared_and_deleted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/recordings");
    let Some(checkout) = Checkout::new() else { return };
    let steady = folder.join("h200-steady");
    let empty = checkout.flatout(&["baseline", "list"]);
    assert!(text(&empty.stderr).contains("no baselines"));
    let saved = checkout.flatout(&["baseline", "save", "main", steady.to_str().unwrap()]);
    assert!(saved.status.success(), "{}", text(&saved.stderr));
    let again = checkout.flatout(&["baseline", "save", "main", steady.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("--replace"));
    assert!(text(&checkout.flatout(&["baseline", "list"]).stdout).starts_with("main "));
    let starved = folder.join("h200-starved");
    let compared = checkout.flatout(&[
        "compare",
        "--baseline",
        "main",
        starved.to_str().unwrap(),
        "--json",
    ]);
    let compared: serde_json::Value = serde_json::from_slice(&compared.stdout).unwrap();
    assert_eq!(compared["runs"].as_array().unwrap().len(), 2);
    let missing = checkout.flatout(&["compare", "--baseline", "other"]);
    assert!(
        text(&missing.stderr).contains("available baselines: main"),
        "{}",
        text(&missing.stderr)
    );
    let one = checkout.flatout(&["compare", steady.to_str().unwrap()]);
    assert_eq!(one.status.code(), Some(2));
    assert!(text(&one.stderr).contains("--baseline NAME"));
    assert!(checkout.flatout(&["baseline", "delete", "main"]).status.success());
    assert_eq!(
        checkout.flatout(&["baseline", "delete", "main"]).status.code(),
        Some(2)
    );
}
