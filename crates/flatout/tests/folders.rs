//! Output folders: one training at a time, and no finished model is ever lost, whatever is started, refused or killed.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "folders/crashes.rs"]
mod crashes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn flatout(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flatout"));
    command
        .current_dir(folder)
        .env("FLATOUT_HOME", folder.join("home"))
        .env("FLATOUT_CACHE", folder.join("cache"))
        .env("LANG", "C")
        .env_remove("LC_ALL")
        .args(arguments);
    command
}

fn output(folder: &Path, line: &str) -> Output {
    let words: Vec<&str> = line.split_whitespace().collect();
    flatout(folder, &words).output().unwrap()
}

fn succeeds(folder: &Path, line: &str) -> String {
    let output = output(folder, line);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{line}: {text}");
    text
}

fn fails(folder: &Path, line: &str) -> String {
    let output = output(folder, line);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{line} succeeded: {text}");
    text
}

const TRAIN: &str = "train --data data --device cpu --hidden-size 8 --num-layers 1 --sequence-length 5 --batch-size 64 --threads 1 --epochs 1";

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    succeeds(place.path(), "generate stocks --out data --size 6 --days 120");
    place
}

/// Every file below a folder with its contents; records and locks come and go.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn a_start_that_fails_changes_nothing() {
    let place = place();
    let folder = place.path();
    for seed in [1, 2] {
        succeeds(folder, &format!("{TRAIN} --seed {seed} --output-dir keep"));
    }
    let before = files(&folder.join("keep"));
    assert!(before.contains_key(&folder.join("keep/before/best.safetensors")));
    for more in [
        "--device cuda:9",
        "--model-type mlp",
        "--memory-limit 1KiB",
        "--label nothing",
        "--data nowhere",
    ] {
        fails(folder, &format!("{TRAIN} {more} --output-dir keep"));
        let now = files(&folder.join("keep"));
        assert_eq!(
            now.keys().collect::<Vec<_>>(),
            before.keys().collect::<Vec<_>>(),
            "{more}"
        );
        assert!(now == before, "{more} changed a file");
    }
    fails(folder, &format!("{TRAIN} --label nothing --output-dir new/deep"));
    assert!(
        !folder.join("new").exists(),
        "a folder of a training that never began was left"
    );
}

#[test]
fn nothing_put_aside_is_overwritten() {
    let place = place();
    let folder = place.path();
    for seed in 1..=3 {
        succeeds(folder, &format!("{TRAIN} --seed {seed} --output-dir out"));
    }
    let models = ["out/before", "out/before-2", "out"].map(|name| {
        let config = std::fs::read_to_string(folder.join(name).join("config.yaml")).unwrap();
        assert!(folder.join(name).join("best.safetensors").exists());
        config
            .lines()
            .find(|line| line.starts_with("seed:"))
            .unwrap()
            .to_owned()
    });
    assert_eq!(models, ["seed: 1", "seed: 2", "seed: 3"]);
}

#[test]
fn a_resumed_training_stays_in_its_folder() {
    let place = place();
    let folder = place.path();
    let words = "hidden_size: 8\nnum_layers: 1\nsequence_length: 5\nbatch_size: 64\nthreads: 1\ndevice: cpu\ndata: data\nepochs: 1\n";
    std::fs::write(folder.join("ab.yaml"), format!("{words}output_dir: out/A\n")).unwrap();
    succeeds(folder, "train --config ab.yaml");
    succeeds(folder, "train --config ab.yaml --output-dir out/B --seed 7");
    let a = files(&folder.join("out/A"));
    let b = files(&folder.join("out/B"));
    succeeds(
        folder,
        "train --config ab.yaml --resume out/B --epochs 2 --seed 7",
    );
    assert!(
        files(&folder.join("out/A")) == a,
        "the other training was touched"
    );
    let metrics = std::fs::read_to_string(folder.join("out/B/metrics.csv")).unwrap();
    assert_eq!(metrics.lines().count(), 3, "{metrics}");
    assert_ne!(files(&folder.join("out/B")), b);
    // Sent elsewhere on purpose, it leaves its own folder alone and puts aside what is there.
    let b = files(&folder.join("out/B"));
    let text = succeeds(folder, "train --resume out/B --output-dir out/A --epochs 3");
    assert!(text.contains("out/A contained another training"), "{text}");
    assert!(files(&folder.join("out/B")) == b);
    let aside = folder.join("out/A/before/best.safetensors");
    assert_eq!(
        std::fs::read(aside).unwrap(),
        a[&folder.join("out/A/best.safetensors")]
    );
    let metrics = std::fs::read_to_string(folder.join("out/A/metrics.csv")).unwrap();
    assert_eq!(metrics.lines().count(), 4, "{metrics}");
}

#[test]
fn another_label_model_or_data_set_is_refused_by_name() {
    let place = place();
    let folder = place.path();
    succeeds(folder, "generate interactions --out rows --size 500");
    let train = "train --device cpu --hidden-size 8 --threads 1 --batch-size 64 --epochs 1";
    succeeds(
        folder,
        &format!("{train} --data rows --label is_click --output-dir rows-out"),
    );
    let before = files(&folder.join("rows-out"));
    let text = fails(folder, "train --resume rows-out --label long_view --epochs 2");
    assert!(text.contains("label `is_click`, not `long_view`"), "{text}");
    assert!(text.contains("--init rows-out"), "{text}");
    assert!(files(&folder.join("rows-out")) == before);
    succeeds(folder, &format!("{TRAIN} --output-dir out"));
    let text = fails(
        folder,
        "train --resume out --model-type gru --sequence-length 7 --epochs 2",
    );
    assert!(
        text.contains("model_type `lstm`, not `gru`") && text.contains("sequence_length `5`, not `7`"),
        "{text}"
    );
    succeeds(folder, "generate stocks --out other --size 6 --days 120 --seed 9");
    let text = fails(folder, "train --resume out --data other --epochs 2");
    assert!(text.contains("data `data`, not `other`"), "{text}");
    // The same data elsewhere are the same data.
    std::fs::rename(folder.join("data"), folder.join("moved")).unwrap();
    succeeds(folder, "train --resume out --data moved --epochs 2");
}

/// A program that ends with the test, whatever becomes of that.
struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a training that goes on until it is killed, and waits until it trains.
fn endless(folder: &Path, out: &str) -> Killed {
    let line = format!("{TRAIN} --epochs 100000 --checkpoint-interval 1 --output-dir {out}");
    let words: Vec<&str> = line.split_whitespace().collect();
    let child = Killed(flatout(folder, &words).stderr(Stdio::null()).spawn().unwrap());
    for _ in 0..1200 {
        if folder.join(out).join("last.safetensors").exists() {
            return child;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("the training did not begin");
}

#[test]
fn refuses_a_second_training_but_ignores_a_dead_one() {
    let place = place();
    let folder = place.path();
    let child = endless(folder, "out");
    let pid = child.0.id();
    let text = fails(folder, &format!("{TRAIN} --output-dir out"));
    assert!(
        text.contains("`out` is in use") && text.contains(&format!("process {pid} ")),
        "{text}"
    );
    assert!(text.contains("--epochs 100000"), "{text}");
    let text = fails(folder, "train --resume out");
    assert!(text.contains(&format!("process {pid} ")), "{text}");
    drop(child);
    assert!(
        folder.join("out/.flatout-lock").exists(),
        "killed, it could not clean up"
    );
    succeeds(folder, &format!("{TRAIN} --output-dir out"));
    assert!(!folder.join("out/.flatout-lock").exists());
}

#[test]
fn tasks_of_an_array_have_folders_of_their_own() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("c.yaml"), "data: d\noutput_dir: runs/x\n").unwrap();
    let script = |line: &str| {
        let done = output(place.path(), line);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    let grid = "slurm script --grid hidden-size=128,256 --grid lr=1e-3,3e-4 --";
    let text = script(&format!("{grid} flatout train --data d"));
    for name in ["hidden-size-128_lr-1e-3", "hidden-size-256_lr-3e-4"] {
        assert!(text.contains(&format!("--output-dir=out/{name}")), "{text}");
    }
    let text = script(&format!("{grid} /opt/bin/flatout train --config c.yaml"));
    assert!(
        text.contains("--output-dir=runs/x/hidden-size-128_lr-3e-4"),
        "{text}"
    );
    let own = "slurm script --grid output-dir=a,b -- flatout train --data d";
    assert!(!script(own).contains("--output-dir=out"), "{}", script(own));
    assert!(!script(&format!("{grid} python train.py")).contains("output-dir"));
    // What the task runs is what the trainer accepts: the last of two folders counts.
    succeeds(place.path(), "generate stocks --out d --size 4 --days 60");
    let twice = "--output-dir first --output-dir second";
    succeeds(
        place.path(),
        &format!("{} {twice}", TRAIN.replace("data data", "data d")),
    );
    assert!(place.path().join("second/best.safetensors").exists() && !place.path().join("first").exists());
}

#[test]
fn a_grid_trains_what_fits_and_lists_the_rest() {
    let place = place();
    let folder = place.path();
    let text = "data: data\ndevice: cpu\nnum_layers: 1\nsequence_length: 5\nbatch_size: 64\nepochs: 1\nhidden_size: [4096, 8]\nlearning_rate: [0.001, 0.01]\nmemory_limit: 100MiB\noutput_dir: grid\n";
    std::fs::write(folder.join("g.yaml"), text).unwrap();
    let done = output(folder, "grid g.yaml --jobs 2");
    let (table, said) = (
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr),
    );
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert_eq!(table.matches("failed").count(), 2, "{table}{said}");
    for name in [
        "hidden_size-8_learning_rate-0.001",
        "hidden_size-8_learning_rate-0.01",
    ] {
        assert!(
            folder.join("grid").join(name).join("best.safetensors").exists(),
            "{said}"
        );
    }
}
