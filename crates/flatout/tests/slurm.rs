//! `flatout slurm` and `flatout analyze --job-id` against a real Slurm with its accounting.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "slurm/cluster.rs"]
mod cluster;

use cluster::Cluster;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// What a training program prints, without needing anything installed.
const TRAINER: &str = "import sys, time
print('options', sys.argv[1:], flush=True)
for epoch in range(1, 4):
    began = time.time()
    memory = bytearray(60 << 20)
    while time.time() - began < 0.7:
        pass
    print(f'Epoch {epoch}/3 | loss {1 / epoch:.3f} | time {time.time() - began:.2f}s', flush=True)
print('WARNING: this is the end', flush=True)
";

/// Steps without a training library; the second rank needs more than twice as long for each.
const RANK: &str = "import os, time
import flatout
rank = int(os.environ['RANK'])
assert os.environ['WORLD_SIZE'] == '2'
for step in range(120):
    time.sleep(0.02 + 0.03 * rank)
    flatout.step(samples=8)
";

/// A launcher with torchrun's settings: two ranks per node.
const TORCHRUN: &str = "#!/usr/bin/env python3
import os, subprocess, sys
assert os.environ['PET_NNODES'] == '2' and os.environ['PET_MASTER_ADDR'] and int(os.environ['PET_MASTER_PORT'])
def start(local):
    rank = int(os.environ['PET_NODE_RANK']) * 2 + local
    ranks = {'RANK': str(rank), 'LOCAL_RANK': str(local), 'WORLD_SIZE': '4', 'LOCAL_WORLD_SIZE': '2'}
    return subprocess.Popen([sys.executable, *sys.argv[1:]], env={**os.environ, **ranks})
sys.exit(max([worker.wait() for worker in [start(0), start(1)]]))
";

/// Steps without a training library; the last of four ranks needs more than twice as long for each.
const WORKER: &str = "import os, time
import flatout
slow = os.environ['RANK'] == '3'
for step in range(120):
    time.sleep(0.05 if slow else 0.02)
    flatout.step(samples=8)
";

struct Home<'a> {
    cluster: &'a Cluster,
    folder: tempfile::TempDir,
}

impl Home<'_> {
    fn flatout(&self, arguments: &[&str]) -> Output {
        let output = Command::new(env!("CARGO_BIN_EXE_flatout"))
            .args(arguments)
            .current_dir(self.folder.path())
            .env("SLURM_CONF", self.cluster.conf())
            .env("FLATOUT_HOME", self.folder.path().join("home"))
            .env("LC_ALL", "C")
            .env("PYTHONPATH", concat!(env!("CARGO_MANIFEST_DIR"), "/../../python"))
            .env_remove("SLURM_JOB_ID")
            .output();
        output.expect("flatout runs")
    }

    fn good(&self, arguments: &[&str]) -> String {
        let output = self.flatout(arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            output.status.success(),
            "{arguments:?}\n{}\n{}\n{}",
            text(&output.stdout),
            text(&output.stderr),
            self.cluster.logs()
        );
        text(&output.stdout)
    }

    fn submit(&self, arguments: &[&str]) -> String {
        let id = self.good(
            &[
                &[
                    "slurm",
                    "submit",
                    "--mem",
                    "300M",
                    "--time",
                    "5",
                    "--cpus-per-gpu",
                    "1",
                ],
                arguments,
            ]
            .concat(),
        );
        id.trim().to_owned()
    }

    /// The analysis, once the accounting has heard of the end of all tasks.
    fn analyze(&self, id: &str, tasks: usize) -> Value {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let output = self.flatout(&["analyze", "--job-id", id, "--json"]);
            let value: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            let jobs = value["jobs"].as_array().map_or(&[][..], Vec::as_slice);
            let done = jobs.iter().filter(|job| job["state"] == "COMPLETED").count();
            if done == tasks {
                return value;
            }
            assert!(Instant::now() < deadline, "{output:?}\n{}", self.cluster.logs());
            std::thread::sleep(Duration::from_millis(300));
        }
    }
}

/// It would become the program that the job runs.
#[test]
fn an_unknown_option_is_refused() {
    for command in [["slurm", "script"], ["slurm", "submit"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_flatout"))
            .args(command)
            .args(["--cpus", "4", "--", "python3", "train.py"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(2) && said.contains("--cpus"),
            "{said}"
        );
    }
}

#[test]
fn jobs_are_sent_followed_and_analysed() {
    let cluster = match cluster::start() {
        Ok(cluster) => cluster,
        Err(reason) => {
            flatout_testing::require::<()>("slurm", &reason, None);
            return;
        }
    };
    let home = Home {
        cluster: &cluster,
        folder: tempfile::tempdir().unwrap(),
    };
    fs::write(home.folder.path().join("my trainer.py"), TRAINER).unwrap();
    the_script_asks_for_a_fair_share(&home);
    one_job(&home);
    an_array(&home);
    two_ranks(&home);
    a_straggler_on_another_node(&home);
    a_torchrun_on_each_node(&home);
    unknown_jobs(&home);
}

fn the_script_asks_for_a_fair_share(home: &Home) {
    let script = home.good(&["slurm", "script", "--", "python3", "my trainer.py"]);
    // Two GPUs share four CPUs.
    assert!(
        script.contains("#SBATCH --cpus-per-task=2\n") && script.contains("#SBATCH --mem=950M\n"),
        "{script}"
    );
    assert!(script.contains("'my trainer.py'"), "{script}");
}

fn one_job(home: &Home) {
    let id = home.submit(&[
        "--gpus",
        "1",
        "--logs",
        "logs",
        "--",
        "python3",
        "my trainer.py",
        "$(touch never)",
        "it's",
    ]);
    let followed = home.good(&["slurm", "status", &id, "--follow"]);
    assert!(
        followed.contains("COMPLETED") && followed.contains("record in"),
        "{followed}"
    );
    let analysis = home.analyze(&id, 1);
    let job = &analysis["jobs"][0];
    assert_eq!(
        (
            job["limit_s"].as_f64(),
            job["gpus"].as_u64(),
            job["memory_bytes"].as_f64()
        ),
        (Some(300.0), Some(1), Some(300.0 * 1048576.0))
    );
    assert!(
        job["memory_peak_bytes"].as_f64() > Some(50e6) && job["cpu_s"].as_f64() > Some(0.5),
        "{job}"
    );
    let sections = analysis["sections"].as_array().unwrap();
    let of_kind = |kind: &str| sections.iter().find(|section| section["kind"] == kind);
    assert!(
        of_kind("record")
            .is_some_and(|record| record["title"].as_str().unwrap().ends_with(&format!("-job{id}"))),
        "{sections:?}"
    );
    let log = of_kind("training-log").unwrap();
    assert_eq!(log["epochs"]["seconds"]["count"], 3, "{log}");
    assert_eq!(log["training"]["problems"]["list"][0]["kind"], "warning");
    let printed = fs::read_to_string(log["path"].as_str().unwrap()).unwrap();
    assert!(printed.contains(r#"['$(touch never)', "it's"]"#), "{printed}");
    assert!(!home.folder.path().join("never").exists());
    let text = home.good(&["analyze", "--job-id", &id]);
    assert!(
        text.contains(&format!("Slurm job {id}"))
            && text.contains("of 5 min 00 s")
            && text.contains("3 epochs"),
        "{text}"
    );
    let chinese = home.good(&["analyze", "--job-id", &id, "--lang", "zh"]);
    assert!(
        chinese.contains("Slurm 作业") && chinese.contains("个 epoch"),
        "{chinese}"
    );
}

fn an_array(home: &Home) {
    let id = home.submit(&[
        "--gpus",
        "1",
        "--name",
        "grid",
        "--grid",
        "lr=1e-3,3e-4",
        "--",
        "python3",
        "my trainer.py",
    ]);
    let analysis = home.analyze(&id, 2);
    let options: Vec<String> = analysis["sections"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|section| section["kind"] == "training-log")
        .map(|section| {
            fs::read_to_string(
                home.folder
                    .path()
                    .join(Path::new(section["path"].as_str().unwrap())),
            )
            .unwrap_or_default()
        })
        .collect();
    assert!(
        options.iter().any(|log| log.contains("['--lr=1e-3']"))
            && options.iter().any(|log| log.contains("['--lr=3e-4']")),
        "{options:?}"
    );
}

fn two_ranks(home: &Home) {
    let id = home.submit(&["--gpus", "2", "--ranks", "--", "python3", "my trainer.py"]);
    let analysis = home.analyze(&id, 1);
    let ranks: Vec<u64> = analysis["ranks"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| row["rank"].as_u64())
        .collect();
    assert_eq!(ranks, [0, 1], "{analysis}");
}

fn a_straggler_on_another_node(home: &Home) {
    fs::write(home.folder.path().join("rank.py"), RANK).unwrap();
    let id = home.submit(&[
        "--gpus", "1", "--nodes", "2", "--ranks", "--", "python3", "rank.py",
    ]);
    let analysis = home.analyze(&id, 1);
    let nodes = analysis["jobs"][0]["node_list"].as_str().unwrap();
    assert!(cluster::NODES.iter().all(|node| nodes.contains(node)), "{nodes}");
    let stragglers = |rows: &Value| -> Vec<bool> {
        rows.as_array()
            .unwrap()
            .iter()
            .map(|row| row["straggler"] == true)
            .collect()
    };
    assert_eq!(stragglers(&analysis["ranks"]), [false, true], "{analysis}");
    let text = home.good(&["analyze", "--job-id", &id]);
    assert!(text.contains("slows the others down"), "{text}");
    let report: Value = serde_json::from_str(&home.good(&["report", "--job-id", &id, "--json"])).unwrap();
    assert_eq!(
        stragglers(&report["ranks"]["rows"]),
        [false, true],
        "{}",
        report["ranks"]
    );
    let page = home.good(&["report", "--job-id", &id, "--html", "-"]);
    assert!(page.contains("slows the others down") && page.contains("Ranks"));
    let markdown = home.good(&["report", "--job-id", &id, "--md"]);
    assert!(markdown.contains("**slows the others down**"), "{markdown}");
}

fn a_torchrun_on_each_node(home: &Home) {
    let path = home.folder.path().join("torchrun");
    fs::write(&path, TORCHRUN).unwrap();
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fs::write(home.folder.path().join("worker.py"), WORKER).unwrap();
    let id = home.submit(&["--gpus", "2", "--nodes", "2", "--", "./torchrun", "worker.py"]);
    let analysis = home.analyze(&id, 1);
    let ranks: Vec<(u64, bool)> = analysis["ranks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["rank"].as_u64().unwrap(), row["straggler"] == true))
        .collect();
    assert_eq!(
        ranks,
        [(0, false), (1, false), (2, false), (3, true)],
        "{analysis}"
    );
}

fn unknown_jobs(home: &Home) {
    let unknown = home.flatout(&["analyze", "--job-id", "999999"]);
    let words = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        words.contains("no information about job 999999") && words.contains("hint:"),
        "{words}"
    );
    let hostile = home.flatout(&["analyze", "--job-id", "1; touch never"]);
    assert!(String::from_utf8_lossy(&hostile.stderr).contains("is not a Slurm job id"));
    let report = home.flatout(&["report", "--job-id", "999999"]);
    assert_eq!(report.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&report.stderr).contains("no record of job 999999"),
        "{report:?}"
    );
    let status = home.flatout(&["slurm", "status", "999999"]);
    assert!(
        String::from_utf8_lossy(&status.stderr).contains("Slurm has no job 999999"),
        "{status:?}"
    );
}
