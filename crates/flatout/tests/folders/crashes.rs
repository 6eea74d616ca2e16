//! Random kills and concurrent starts. After every one of them each model that was ever finished is on the disk, whole: where its training
//! left it, or put aside, or continued by a `--resume`.

use super::{TRAIN, files, flatout, place};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Good enough to choose what happens next, and the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// What is known of a finished model: which training it is of (its seed), its steps and its best loss.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    seed: u64,
    step: u64,
    best: f64,
}

/// The models in all checkpoints of this name below a folder. One that cannot be read is none.
fn models(folder: &Path, name: &str) -> Vec<(PathBuf, Model)> {
    let all = files(folder).into_iter();
    let named = all.filter(|(path, _)| path.file_name().is_some_and(|own| own == name));
    named
        .filter_map(|(path, bytes)| Some((path, model(&bytes)?)))
        .collect()
}

fn model(bytes: &[u8]) -> Option<Model> {
    let tensors = safetensors::SafeTensors::deserialize(bytes).ok()?;
    assert!(!tensors.is_empty());
    let (_, header) = safetensors::SafeTensors::read_metadata(bytes).ok()?;
    let ours = header.metadata().as_ref()?.get("flatout")?;
    let value: Value = serde_json::from_str(ours).ok()?;
    let configuration = value["configuration"].as_str()?;
    let seed = configuration
        .lines()
        .find_map(|line| line.strip_prefix("seed: "))?;
    Some(Model {
        seed: seed.parse().ok()?,
        step: value["progress"]["step"].as_u64()?,
        best: value["progress"]["best"].as_str()?.parse().ok()?,
    })
}

#[derive(Default)]
struct Count {
    kills: u32,
    finished: u32,
    refused: u32,
    concurrent: u32,
    resumed: u32,
    failed_starts: u32,
}

struct Crashes {
    place: tempfile::TempDir,
    dice: Dice,
    next_seed: u64,
    /// The best there is of each finished training, by its seed.
    finished: BTreeMap<u64, Model>,
    count: Count,
    longest: Duration,
}

impl Crashes {
    fn start(&self, line: &str) -> Child {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut command = flatout(self.place.path(), &words);
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// A new training, one that continues, or one that cannot begin.
    fn line(&mut self) -> String {
        match self.dice.below(10) {
            0..=5 => {
                self.next_seed += 1;
                let (seed, epochs) = (self.next_seed, 2 + self.dice.below(4));
                format!(
                    "{TRAIN} --epochs {epochs} --eval-interval 1 --checkpoint-interval 1 --seed {seed} --output-dir out"
                )
            }
            6 | 7 => {
                self.count.resumed += 1;
                let epochs = 4 + self.dice.below(6);
                format!("train --resume out --epochs {epochs}")
            }
            _ => {
                self.count.failed_starts += 1;
                format!("{TRAIN} --device cuda:9 --output-dir out")
            }
        }
    }

    fn round(&mut self) {
        let mut children = vec![{
            let line = self.line();
            self.start(&line)
        }];
        if self.dice.below(3) == 0 {
            self.count.concurrent += 1;
            std::thread::sleep(Duration::from_millis(self.dice.below(60)));
            let line = self.line();
            children.push(self.start(&line));
        }
        // One in four may end by itself.
        let patience = match self.dice.below(4) {
            0 => Duration::from_secs(60),
            _ => Duration::from_millis(self.dice.below(self.longest.as_millis() as u64)),
        };
        let began = Instant::now();
        while began.elapsed() < patience
            && children
                .iter_mut()
                .any(|child| child.try_wait().unwrap().is_none())
        {
            std::thread::sleep(Duration::from_millis(2));
        }
        for mut child in children {
            let ended = child.try_wait().unwrap();
            if ended.is_none() {
                child.kill().unwrap();
                self.count.kills += 1;
            } else {
                self.longest = self.longest.max(began.elapsed().min(Duration::from_secs(5)));
            }
            match child.wait().unwrap().code() {
                Some(0) => self.count.finished += 1,
                Some(_) => self.count.refused += 1,
                None => {}
            }
        }
        self.check();
    }

    fn check(&mut self) {
        let out = self.place.path().join("out");
        let (best, last) = (models(&out, "best.safetensors"), models(&out, "last.safetensors"));
        for known in self.finished.values() {
            let kept = best
                .iter()
                .any(|(_, model)| model.seed == known.seed && model.best <= known.best);
            assert!(kept, "the best of {known:?} is lost; there are {best:?}");
            let kept = last
                .iter()
                .any(|(_, model)| model.seed == known.seed && model.step >= known.step);
            assert!(kept, "the last of {known:?} is lost; there are {last:?}");
        }
        // Best and last of a folder are of one training.
        for (path, model) in &last {
            let beside = best.iter().find(|(other, _)| other.parent() == path.parent());
            if let Some((_, other)) = beside {
                assert_eq!(model.seed, other.seed, "two trainings in {}", path.display());
            }
        }
        // Whatever checkpoint has been written must stay, finished or not.
        for (_, model) in last {
            let known = self.finished.entry(model.seed).or_insert_with(|| model.clone());
            known.step = known.step.max(model.step);
        }
    }
}

fn crash(rounds: u32, seed: u64) {
    let place = place();
    let mut crashes = Crashes {
        place,
        dice: Dice(seed),
        next_seed: 0,
        finished: BTreeMap::new(),
        count: Count::default(),
        longest: Duration::from_millis(400),
    };
    while crashes.count.kills < rounds {
        crashes.round();
    }
    let Count {
        kills,
        finished,
        refused,
        concurrent,
        resumed,
        failed_starts,
    } = crashes.count;
    let models = crashes.finished.len();
    println!(
        "{kills} kills, {concurrent} concurrent starts, {resumed} resumes, {failed_starts} starts that cannot begin; {finished} trainings finished, {refused} refused; {models} models on the disk, none lost"
    );
    assert!(finished > 0 && models > 0);
}

#[test]
fn no_model_is_lost_in_twelve_kills() {
    crash(12, 0x5eed_0001);
}

#[test]
#[ignore = "takes minutes: cargo nextest run -p flatout --run-ignored all no_model_is_lost_in_two_hundred_kills"]
fn no_model_is_lost_in_two_hundred_kills() {
    let seed = std::env::var("FLATOUT_CRASH_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    crash(200, seed.unwrap_or(0x5eed_0002));
}
