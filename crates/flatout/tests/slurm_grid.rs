//! `flatout grid --slurm` and `flatout fleet` against a real Slurm of three nodes, one of which is lost.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "slurm/cluster.rs"]
mod cluster;

use cluster::Cluster;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const NODES: [&str; 3] = ["one", "two", "three"];
/// 24 combinations.
const GRID: &str = "data: data\ndevice: cpu\nthreads: 1\nhidden_size: [4, 8]\nsequence_length: [5, 10]\nlearning_rate: [0.01, 0.003, 0.001]\nseed: [1, 2]\nbatch_size: 64\nepochs: 40\nnum_layers: 1\ncheckpoint_interval: 1\neval_interval: 1\noutput_dir: out\n";

struct Home {
    cluster: Cluster,
    folder: tempfile::TempDir,
}

impl Home {
    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flatout"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env("SLURM_CONF", self.cluster.conf())
            .env("FLATOUT_HOME", self.path().join("home"))
            .env("FLATOUT_CACHE", self.path().join("cache"))
            .env("LC_ALL", "C")
            .env_remove("SLURM_JOB_ID");
        command
    }

    fn flatout(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn good(&self, arguments: &[&str]) -> String {
        let output = self.flatout(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}\n{}\n{}\n{}",
            text(&output.stdout),
            text(&output.stderr),
            self.cluster.logs()
        );
        text(&output.stdout)
    }

    fn results(&self, folder: &str) -> BTreeMap<String, f64> {
        let entries = fs::read_dir(self.path().join(folder)).unwrap().flatten();
        let results = entries.filter_map(|entry| {
            let bytes = fs::read(entry.path().join("result.json")).ok()?;
            let value: Value = serde_json::from_slice(&bytes).ok()?;
            assert!(value["error"].is_null(), "{value}");
            Some((value["name"].as_str()?.to_owned(), value["best_loss"].as_f64()?))
        });
        results.collect()
    }

    fn wait_for(&self, what: &str, mut is_there: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while !is_there() {
            assert!(Instant::now() < deadline, "{what}\n{}", self.cluster.logs());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The arrays that were sent for a grid.
    fn arrays(&self, folder: &str) -> Vec<String> {
        let bytes = fs::read(self.path().join(folder).join("tasks/slurm.json")).unwrap_or_default();
        let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let arrays = value["arrays"].as_array().cloned().unwrap_or_default();
        let jobs = arrays
            .iter()
            .map(|array| array["job"].as_str().unwrap().to_owned());
        jobs.collect()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_grid_survives_a_lost_node() {
    let more = |_: &Path| "SlurmdTimeout=6\nJobRequeue=1\n".to_owned();
    let cluster = match cluster::start_with(&NODES, more) {
        Ok(cluster) => cluster,
        Err(reason) => {
            flatout_testing::require::<()>("slurm", &reason, None);
            return;
        }
    };
    let mut home = Home {
        cluster,
        folder: tempfile::tempdir().unwrap(),
    };
    home.good(&[
        "generate", "stocks", "--out", "data", "--size", "8", "--days", "260",
    ]);
    fs::write(home.path().join("grid.yaml"), GRID).unwrap();
    fs::write(
        home.path().join("flatout.toml"),
        "[slurm]\npartition = \"gpu\"\nmem = \"150M\"\ncpus-per-gpu = 1\nmax-running = 6\n",
    )
    .unwrap();
    what_is_wrong_is_refused(&home);
    leaving_lets_the_tasks_go_on(&home);
    the_lost_node(&mut home);
    a_cancelled_grid_is_over(&home);
    the_accounting_is_read(&home);
}

fn what_is_wrong_is_refused(home: &Home) {
    let refused = home.flatout(&["grid", "grid.yaml", "--partition", "gpu"]);
    assert_eq!(refused.status.code(), Some(2));
    let refused = home.flatout(&["grid", "grid.yaml", "--slurm", "--partition", "no-such"]);
    assert!(
        refused.status.code() == Some(2) && text(&refused.stderr).contains("Invalid partition"),
        "{refused:?}"
    );
    let refused = home.flatout(&["grid", "grid.yaml", "--slurm", "--time-limit", "$(id)"]);
    assert!(text(&refused.stderr).contains("--time"), "{refused:?}");
}

fn leaving_lets_the_tasks_go_on(home: &Home) {
    let child = home
        .command(&["grid", "grid.yaml", "--slurm", "--time-limit", "5m"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    home.wait_for("no result", || !home.results("out").is_empty());
    // SAFETY: the child has not been waited for, so its number is still its own.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    let arrays = home.arrays("out");
    assert_eq!(arrays.len(), 1);
    assert!(said.contains(&format!("scancel {}", arrays[0])), "{said}");
    // Other settings in the same folder would train the same combinations.
    let other = home.flatout(&[
        "grid",
        "grid.yaml",
        "--slurm",
        "--time-limit",
        "5m",
        "--epochs",
        "3",
    ]);
    assert!(
        other.status.code() == Some(2) && text(&other.stderr).contains("other settings"),
        "{other:?}"
    );
}

fn the_lost_node(home: &mut Home) {
    let child = home
        .command(&["grid", "grid.yaml", "--slurm", "--time-limit", "5m", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut busy = String::new();
    home.wait_for("nothing runs", || {
        let lines = home.cluster.tool("squeue", &["-h", "-r", "-t", "R", "-o", "%N"]);
        busy = lines.unwrap_or_default().lines().next().unwrap_or("").to_owned();
        !busy.is_empty()
    });
    home.cluster.lose(&busy);
    let output = child.wait_with_output().unwrap();
    let (out, said) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}\n{said}\n{}", home.cluster.logs());
    let events: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let last = events.last().unwrap();
    assert_eq!(last["results"].as_array().unwrap().len(), 24);
    let ends = events.iter().filter(|event| event["event"] == "end");
    let mut points: Vec<u64> = ends.map(|event| event["point"].as_u64().unwrap()).collect();
    points.sort_unstable();
    assert_eq!(points, (1..=24).collect::<Vec<u64>>());
    // Slurm queued the lost tasks again: nothing was sent twice.
    assert_eq!(home.arrays("out").len(), 1);
    assert_eq!(
        fs::read_to_string(home.path().join("out/grid.csv"))
            .unwrap()
            .lines()
            .count(),
        25
    );
    // No training began in the folder of another.
    let twice = fs::read_dir(home.path().join("out")).unwrap().flatten();
    assert!(
        twice
            .into_iter()
            .all(|entry| !entry.path().join("before").exists())
    );

    home.good(&["grid", "grid.yaml", "--output-dir", "local"]);
    assert_eq!(home.results("out"), home.results("local"));
    // The same command again has nothing to do.
    let again = home.good(&["grid", "grid.yaml", "--slurm", "--json"]);
    assert_eq!(again.matches("\"before\":true").count(), 24);
    assert_eq!(home.arrays("out").len(), 1);
}

fn a_cancelled_grid_is_over(home: &Home) {
    let long = GRID
        .replace("epochs: 40", "epochs: 100000")
        .replace("[1, 2]", "1")
        .replace("[0.01, 0.003, 0.001]", "0.01");
    fs::write(home.path().join("long.yaml"), long).unwrap();
    let child = home
        .command(&["grid", "long.yaml", "--slurm", "--output-dir", "long"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    home.wait_for("nothing was sent", || !home.arrays("long").is_empty());
    home.cluster.tool("scancel", &[&home.arrays("long")[0]]).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        text(&output.stderr).matches("was cancelled").count() == 4,
        "{output:?}"
    );
    assert_eq!(home.arrays("long").len(), 1);
}

/// `fleet` with the real `sacct`: a job with a GPU that nothing measured.
fn the_accounting_is_read(home: &Home) {
    let script = home.path().join("job.sh");
    fs::write(&script, "#!/bin/sh\nsleep 4\n").unwrap();
    let sent = Command::new("sbatch")
        .args([
            "--parsable",
            "--wait",
            "--gpus=1",
            "--mem=100M",
            "--output=/dev/null",
        ])
        .arg(&script)
        .current_dir(home.path())
        .env("SLURM_CONF", home.cluster.conf())
        .output()
        .unwrap();
    assert!(sent.status.success(), "{sent:?}");
    let fleet = || -> Value {
        let output = home.flatout(&["fleet", "--since", "1h", "--json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    };
    home.wait_for("the accounting has no GPU job", || {
        fleet()["hours"]["allocated"].as_f64() > Some(0.0)
    });
    let fleet = fleet();
    assert!(fleet["without_gpus"].as_u64() >= Some(24), "{fleet}");
    assert_eq!(fleet["hours"]["unknown"], fleet["hours"]["allocated"], "{fleet}");
    let shown = home.good(&["fleet", "--since", "1h"]);
    assert!(shown.contains("By user") && shown.contains("root"), "{shown}");
}
