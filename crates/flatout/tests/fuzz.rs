//! Every reader against damaged input: seeds are mutated by a generator with a seed of its own, so a failure can be repeated.
//!
//! A few inputs per reader run with the tests; `cargo xtask fuzz --count N --seed S` runs more, in release mode.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use flatout_data::Policies;
use flatout_data::formats::image::{ImageShape, write_png};
use flatout_data::formats::parquet_write::{self, ColumnToWrite};
use flatout_data::generate::{Recipe, interactions::Interactions, stocks::Stocks};
use flatout_data::inspect::inspect;
use flatout_report::{digest::Digest, page};
use flatout_telemetry::Record;
use flatout_telemetry::import::{ImportOptions, Importer};
use flatout_telemetry::training_log::TrainingLog;
use flatout_train::Configuration;
use flatout_train::settings::Values;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Inputs per reader with the tests.
const COUNT: u64 = 200;
/// No input may take longer. Debug builds are about ten times slower, and the machine may be busy.
const LONGEST: Duration = Duration::from_secs(if cfg!(debug_assertions) { 30 } else { 2 });

fn number(name: &str, otherwise: u64) -> u64 {
    let given = std::env::var(name).ok().and_then(|text| text.parse().ok());
    given.unwrap_or(otherwise)
}

/// xorshift64*: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 11) as usize % limit.max(1)
    }
}

const WORDS: [&[u8]; 24] = [
    b"\xff",
    b"\0",
    b"\x1b[2J",
    b"1e999",
    b"-9223372036854775809",
    b"NaN",
    b"inf",
    b"\"",
    b"'",
    b"'''",
    b"(",
    b"[[[[",
    b"}",
    b"\n",
    b"\r\n",
    b",,,,",
    b"\t",
    b"- ",
    b": ",
    b"&a *a",
    b"null",
    b"{\"a\":",
    b"\xe2\x80\xae",
    b"lambda: ",
];

/// A few random edits.
fn mutated(seed: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(64)).min(bytes.len());
        match random.below(10) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            3 => {
                let from = random.below(other.len() + 1);
                let part = &other[from..(from + random.below(256)).min(other.len())];
                bytes.splice(at..end, part.iter().copied());
            }
            4 => {
                let word = WORDS[random.below(WORDS.len())];
                let times = if random.below(20) == 0 { 3_000 } else { 1 };
                bytes.splice(at..at, word.repeat(times));
            }
            5..=7 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            _ if at < bytes.len() => bytes[at] = random.next() as u8,
            _ => {}
        }
    }
    bytes
}

/// Feeds a reader with mutants of the seeds. The reader gets a file of its own in a folder of its own.
fn fuzz(target: &str, name: &str, seeds: &[Vec<u8>], read: impl Fn(&Path)) {
    let (count, seed) = (
        number("FLATOUT_FUZZ_COUNT", COUNT),
        number("FLATOUT_FUZZ_SEED", 1),
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(!seeds.is_empty(), "{target} has no seeds");
    for index in 0..count {
        let mut random = Random((seed << 32 | index).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let (one, other) = (random.below(seeds.len()), random.below(seeds.len()));
        // The first ones are the seeds themselves.
        let bytes = match seeds.get(index as usize) {
            Some(seed) => seed.clone(),
            None => mutated(&seeds[one], &seeds[other], &mut random),
        };
        fs::write(&path, &bytes).unwrap();
        let begun = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| read(&path)));
        let took = begun.elapsed();
        if result.is_err() || took > LONGEST {
            let kept = std::env::temp_dir().join(format!("flatout-fuzz-{target}-{seed}-{index}"));
            fs::write(&kept, &bytes).unwrap();
            panic!(
                "{target}: input {index} of seed {seed} took {took:?}, kept as {}",
                kept.display()
            );
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below a folder of the repository that end like this, in order; not more than are needed.
fn files(folder: &str, ending: &str, most: usize) -> Vec<PathBuf> {
    let mut folders = vec![root().join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found.truncate(most);
    found
}

fn texts(folder: &str, ending: &str, most: usize) -> Vec<Vec<u8>> {
    let files = files(folder, ending, most);
    files.into_iter().map(|path| fs::read(path).unwrap()).collect()
}

fn look(path: &Path) {
    let _ = inspect(path, None, &Policies::default());
}

fn lint(path: &Path) {
    let settings = flatout_lint::Settings::default();
    if let Ok(outcome) = flatout_lint::lint(&[path.to_owned()], &settings) {
        let _ = flatout_lint::fix::preview(&outcome, true);
    }
}

#[test]
fn python() {
    fuzz("python", "train.py", &texts("faults", "train.py", 12), lint);
}

#[test]
fn configurations_for_lint() {
    let yaml = texts("examples", ".yaml", 10);
    fuzz("lint-yaml", "config.yaml", &yaml, lint);
    let toml = texts("faults", "label.toml", 10);
    fuzz("lint-toml", "config.toml", &toml, lint);
    let json = texts("faults", "run.json", 10);
    fuzz("lint-json", "config.json", &json, lint);
    fuzz("settings", "flatout.toml", &toml, |path| {
        let _ = flatout_lint::Settings::read(path);
    });
}

#[test]
fn configurations_for_training() {
    let yaml = texts("examples", ".yaml", 10);
    fuzz("configuration", "a.yaml", &yaml, |path| {
        let _ = Configuration::read(Some(path), &Values::new());
    });
    for name in ["a.yaml", "a.toml", "a.json"] {
        fuzz("tune-configuration", name, &yaml, |path| {
            if let Ok(file) = flatout_tune::config_file::ConfigFile::read(path) {
                let _ = file.with(&[("train.batch_size".into(), "8".into())]);
            }
        });
    }
}

#[test]
fn tables() {
    let folder = tempfile::tempdir().unwrap();
    let stocks = Stocks {
        stocks: 2,
        days: 40,
        ..Stocks::default()
    };
    Recipe::Stocks(stocks)
        .generate(&folder.path().join("s"), Some(1))
        .unwrap();
    let csv: Vec<Vec<u8>> = vec![
        b"date,a,b,y\n2024-01-01,1,x,0\n2024-01-02,2.5,\"y,z\",1\n2024-01-03,,x,0\n".to_vec(),
        b"a;b\n1;2\n3;4\n".to_vec(),
    ];
    fuzz("csv", "a.csv", &csv, look);
    let path = folder.path().join("a.parquet");
    let (whole, real) = ([1, 2, 3], [0.5, 1.5, -1.0]);
    let words = ["a".to_owned(), "b".to_owned(), "a".to_owned()];
    let columns = [
        ("n", ColumnToWrite::Whole(&whole)),
        ("x", ColumnToWrite::Float(&real)),
        ("t", ColumnToWrite::Text(&words)),
    ];
    parquet_write::write(&path, &columns).unwrap();
    fuzz("parquet", "a.parquet", &[fs::read(&path).unwrap()], look);
    let mut npy = b"\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2), }".to_vec();
    npy.resize(127, b' ');
    npy.push(b'\n');
    npy.extend([0u8; 32]);
    fuzz("npy", "features.npy", &[npy], look);
}

#[test]
fn joined_tables() {
    let folder = tempfile::tempdir().unwrap();
    let recipe = Recipe::Interactions(Interactions::of_size(60, 1));
    recipe.generate(folder.path(), None).unwrap();
    for name in [
        "video_features.csv",
        "user_features.csv",
        "log_standard_part1.csv",
        "dataset.json",
        "recipe.json",
    ] {
        let seed = fs::read(folder.path().join(name)).unwrap();
        fuzz("joined", name, std::slice::from_ref(&seed), |path| {
            fs::copy(path, folder.path().join(name)).unwrap();
            look(folder.path());
        });
        fs::write(folder.path().join(name), seed).unwrap();
    }
}

#[test]
fn images() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.png");
    let shape = ImageShape {
        height: 6,
        width: 5,
        channels: 3,
    };
    let pixels: Vec<u8> = (0..90).map(|value| value * 2).collect();
    write_png(&path, &pixels, shape).unwrap();
    let png = fs::read(&path).unwrap();
    let read = |path: &Path| look(path.parent().unwrap().parent().unwrap());
    fuzz("png", "class/a.png", std::slice::from_ref(&png), read);
    // Quantization and Huffman tables that are cut short, and nothing else a decoder could be happy with.
    let jpeg = [
        b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xdb\0\x43\0".to_vec(),
        vec![1; 64],
        b"\xff\xc0\0\x0b\x08\0\x08\0\x08\x01\x01\x11\0\xff\xc4\0\x14\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\xda\0\x08\x01\x01\0\0\x3f\0\x7f\xff\xd9".to_vec(),
    ]
    .concat();
    fuzz("jpeg", "class/a.jpg", &[jpeg], read);
}

#[test]
fn records() {
    for name in [
        "run.json",
        "samples.jsonl",
        "steps.jsonl",
        "facts.jsonl",
        "events.jsonl",
    ] {
        let Some(seed) = files("faults", &format!("record/{name}"), 1).pop() else {
            continue;
        };
        let source = seed.parent().unwrap().to_owned();
        let folder = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(source).unwrap().flatten() {
            fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
        fuzz("record", name, &[fs::read(&seed).unwrap()], |path| {
            fs::copy(path, folder.path().join(name)).unwrap();
            let Ok(record) = Record::open(folder.path()) else {
                return;
            };
            let options = page::Options {
                language: flatout_core::Language::English,
                pdf_ready: false,
            };
            let _ = page::html(&Digest::read(&record), options);
        });
    }
}

#[test]
fn logs() {
    let training: Vec<Vec<u8>> = vec![
        b"Epoch 1/3\n100%|####| 10/10 [00:02<00:00, 4.1it/s, loss=0.5]\nepoch 2 loss: 0.4 time: 3.2s\n".to_vec(),
        b"[2024-01-01 10:00:00] step 10 loss 1.5 lr 1e-3 120 samples/s\nTraceback (most recent call last):\nRuntimeError: CUDA out of memory\n".to_vec(),
    ];
    fuzz("training-log", "train.log", &training, |path| {
        let _ = TrainingLog::read(path);
    });
    let gpu: Vec<Vec<u8>> = vec![
        b"timestamp, name, utilization.gpu [%], memory.used [MiB]\n2024/01/01 10:00:00.000, H100, 55 %, 1000 MiB\n".to_vec(),
        b"# gpu   pwr gtemp    sm   mem\n# Idx     W     C     %     %\n    0    70    40    99    50\n".to_vec(),
        b"host  Mon Jan  1 10:00:00 2024  535.1\n[0] NVIDIA H100 | 40'C,  99 % |  1000 / 81559 MB | a(900M)\n".to_vec(),
    ];
    fuzz("gpu-log", "gpu.log", &gpu, |path| {
        if let Ok(import) = Importer::open(path, &ImportOptions::default()) {
            import.each(|_| ());
        }
    });
}

#[test]
fn checkpoints() {
    let header = br#"{"__metadata__":{"flatout":"{}","format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header);
    file.extend([0u8; 8]);
    fuzz("checkpoint", "last.safetensors", &[file], |path| {
        let _ = flatout_train::checkpoint::describe(path);
    });
}
