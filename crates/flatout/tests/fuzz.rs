//! Every reader against damaged input: seeds are mutated by a generator with a seed of its own, so a failure can be repeated.
//!
//! A few inputs per reader run with the tests; `cargo xtask fuzz` runs more, optimized. No input may end in a panic, take 2 s of CPU time or 500 MB
//! of memory.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "fuzz/limits.rs"]
mod limits;
#[path = "fuzz/mutate.rs"]
mod mutate;

use flatout_data::Policies;
use flatout_data::formats::image::{ImageShape, write_png};
use flatout_data::formats::parquet_write::{self, ColumnToWrite};
use flatout_data::generate::{Recipe, interactions::Interactions, stocks::Stocks};
use flatout_data::inspect::inspect;
use flatout_import::{ImportOptions, Importer, training_log::TrainingLog};
use flatout_record::Record;
use flatout_report::{analyze, digest::Digest, markdown, page};
use flatout_train::Configuration;
use flatout_train::settings::Values;
use limits::{MOST_BYTES, MOST_CPU, MOST_CPU_UNOPTIMIZED, Use};
use mutate::{Random, mutated};
use std::fs;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: limits::Counting = limits::Counting;

/// Inputs per reader with the tests.
const COUNT: u64 = 200;
/// Failures of a reader that are kept before it is given up.
const MOST_FAILURES: u64 = 10;
/// Time and memory are those of the process: one reader at a time.
static ONE: Mutex<()> = Mutex::new(());

fn number(name: &str, otherwise: u64) -> u64 {
    let given = std::env::var(name).ok().and_then(|text| text.parse().ok());
    given.unwrap_or(otherwise)
}

/// What a reader is: `times` inputs for each one of the slowest readers, so that all get about the same time.
struct Target<'a> {
    name: &'a str,
    times: u64,
    /// The name of the file, which says what it is; a folder may come before it.
    file: &'a str,
}

const fn target<'a>(name: &'a str, times: u64, file: &'a str) -> Target<'a> {
    Target { name, times, file }
}

/// What came of a reader's inputs.
#[derive(Default)]
struct Tally {
    inputs: u64,
    /// Those that the reader did not refuse.
    accepted: u64,
    cpu: Duration,
    failures: u64,
    longest: Duration,
    most_bytes: usize,
}

/// Feeds a reader with mutants of the seeds. The reader gets a file of its own in a folder of its own, and says whether it accepts it; it must
/// accept the first seed.
fn fuzz(target: &Target<'_>, seeds: &[Vec<u8>], read: impl Fn(&Path) -> bool) {
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    limits::watch();
    let name = target.name;
    assert!(!seeds.is_empty(), "{name} has no seeds");
    let (count, most_cpu) = match number("FLATOUT_FUZZ_COUNT", 0) {
        0 => (COUNT, MOST_CPU_UNOPTIMIZED),
        count => (count * target.times, MOST_CPU),
    };
    let seed = number("FLATOUT_FUZZ_SEED", 1);
    // Not removed by a crash, which is then told by what is in it.
    let folder = tempfile::Builder::new()
        .prefix(&format!("flatout-fuzz-{name}-{seed}-"))
        .tempdir()
        .unwrap();
    let path = folder.path().join(target.file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut tally = Tally::default();
    for index in 0..count {
        let mut random = Random::new(seed, index);
        let (one, other) = (random.below(seeds.len()), random.below(seeds.len()));
        // The first ones are the seeds themselves.
        let bytes = match seeds.get(index as usize) {
            Some(seed) => seed.clone(),
            None => mutated(&seeds[one], &seeds[other], &mut random),
        };
        fs::write(&path, &bytes).unwrap();
        let used = Use::begin();
        let result = catch_unwind(AssertUnwindSafe(|| read(&path)));
        let (cpu, most) = used.end();
        let accepted = result.as_ref().is_ok_and(|accepted| *accepted);
        assert!(accepted || index > 0, "{name} refuses its first seed");
        tally.inputs += 1;
        tally.accepted += u64::from(accepted);
        tally.cpu += cpu;
        tally.longest = tally.longest.max(cpu);
        tally.most_bytes = tally.most_bytes.max(most);
        if result.is_err() || cpu > most_cpu || most > MOST_BYTES {
            let kept = std::env::temp_dir().join(format!("flatout-fuzz-{name}-{seed}-{index}.kept"));
            fs::write(&kept, &bytes).unwrap();
            eprintln!(
                "{name}: input {index} of seed {seed}: {}, {cpu:?}, {} MB, kept as {}",
                if result.is_err() { "panic" } else { "too much" },
                most / 1_000_000,
                kept.display()
            );
            tally.failures += 1;
            if tally.failures == MOST_FAILURES {
                break;
            }
        }
    }
    told(name, seed, &tally);
    assert_eq!(tally.failures, 0, "{name}: see above");
}

/// One line per reader for `cargo xtask fuzz`.
fn told(name: &str, seed: u64, tally: &Tally) {
    let Some(file) = std::env::var_os("FLATOUT_FUZZ_RESULTS") else {
        return;
    };
    let line = serde_json::json!({
        "reader": name,
        "seed": seed,
        "inputs": tally.inputs,
        "accepted": tally.accepted,
        "cpu_s": tally.cpu.as_secs_f64(),
        "failures": tally.failures,
        "longest_ms": tally.longest.as_secs_f64() * 1e3,
        "most_mb": tally.most_bytes as f64 / 1e6,
    });
    let mut file = fs::File::options().append(true).create(true).open(file).unwrap();
    writeln!(file, "{line}").unwrap();
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

fn look(path: &Path) -> bool {
    inspect(path, None, &Policies::default()).is_ok()
}

fn lint(path: &Path) -> bool {
    let settings = flatout_lint::Settings::default();
    let outcome = flatout_lint::lint(&[path.to_owned()], &settings);
    outcome.is_ok_and(|outcome| {
        let _ = flatout_lint::fix::preview(&outcome, true);
        outcome.file_count() > 0
    })
}

#[test]
fn python() {
    fuzz(
        &target("python", 2, "train.py"),
        &texts("faults", "train.py", 12),
        lint,
    );
}

#[test]
fn configurations_for_lint() {
    let yaml = texts("examples", ".yaml", 10);
    fuzz(&target("lint-yaml", 2, "config.yaml"), &yaml, lint);
    let toml = texts("faults", "label.toml", 10);
    fuzz(&target("lint-toml", 2, "config.toml"), &toml, lint);
    let json = texts("faults", "run.json", 10);
    fuzz(&target("lint-json", 2, "config.json"), &json, lint);
    fuzz(&target("settings", 60, "flatout.toml"), &toml, |path| {
        flatout_lint::Settings::read(path).is_ok()
    });
}

#[test]
fn configurations_for_training() {
    let yaml = texts("examples", ".yaml", 10);
    fuzz(&target("configuration", 20, "a.yaml"), &yaml, |path| {
        Configuration::read(Some(path), &Values::new()).is_ok()
    });
    let toml = b"seed = 1\n[train]\nbatch_size = 32 # samples\nlr = 1e-3\n".to_vec();
    let json = br#"{"train": {"batch_size": 32, "lr": 0.001}, "data": ["a", null]}"#.to_vec();
    for (name, seeds) in [
        ("a.yaml", &yaml),
        ("a.toml", &vec![toml]),
        ("a.json", &vec![json]),
    ] {
        fuzz(&target("tune-configuration", 50, name), seeds, |path| {
            let file = flatout_tune::config_file::ConfigFile::read(path);
            file.is_ok_and(|file| {
                let _ = file.with(&[("train.batch_size".into(), "8".into())]);
                true
            })
        });
    }
}

#[test]
fn limits_and_grids() {
    let limits = b"[lint]\ncpus = 4\n[check]\ngpu-utilization-min = 0.8\nepoch_seconds_max = 20\n".to_vec();
    fuzz(&target("check-limits", 60, "flatout.toml"), &[limits], |path| {
        flatout_tune::check::Limits::read(path).is_ok()
    });
    let grid = b"model:\n  hidden_size: [16, 32]\nsequence_length: [30, 60]\nepochs: 3\noutput_dir: out/grid\ngenerate:\n  kind: stocks\n".to_vec();
    fuzz(&target("grid", 40, "grid.yaml"), &[grid], |path| {
        flatout_train::grid::Grid::read(path, &Values::new()).is_ok()
    });
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
    fuzz(&target("csv", 4, "a.csv"), &csv, look);
    let path = folder.path().join("a.parquet");
    let (whole, real) = ([1, 2, 3], [0.5, 1.5, -1.0]);
    let words = ["a".to_owned(), "b".to_owned(), "a".to_owned()];
    let columns = [
        ("n", ColumnToWrite::Whole(&whole)),
        ("x", ColumnToWrite::Float(&real)),
        ("t", ColumnToWrite::Text(&words)),
    ];
    parquet_write::write(&path, &columns).unwrap();
    fuzz(
        &target("parquet", 8, "a.parquet"),
        &[fs::read(&path).unwrap()],
        look,
    );
    let mut npy = b"\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2), }".to_vec();
    npy.resize(127, b' ');
    npy.push(b'\n');
    npy.extend([0u8; 32]);
    fuzz(&target("npy", 20, "features.npy"), &[npy], look);
    let formats = "crates/flatout-data/tests/formats";
    let npz = texts(formats, ".npz", 10);
    fuzz(&target("npz", 10, "a.npz"), &npz, look);
    let mut arrow = texts(formats, ".feather", 10);
    arrow.extend(texts(formats, ".arrow", 10));
    fuzz(&target("arrow", 5, "a.arrow"), &arrow, look);
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
        fuzz(&target("joined", 1, name), std::slice::from_ref(&seed), |path| {
            fs::copy(path, folder.path().join(name)).unwrap();
            look(folder.path())
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
    fuzz(&target("png", 5, "class/a.png"), std::slice::from_ref(&png), read);
    let mut jpeg = Vec::new();
    let encoder = jpeg_encoder::Encoder::new(&mut jpeg, 80);
    encoder
        .encode(&pixels, 5, 6, jpeg_encoder::ColorType::Rgb)
        .unwrap();
    fuzz(&target("jpeg", 5, "class/a.jpg"), &[jpeg], read);
}

/// The first lines of a file: a whole record is read a hundred times slower.
fn beginning(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .take(40)
        .flatten()
        .copied()
        .collect()
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
            fs::write(folder.path().join(entry.file_name()), beginning(&entry.path())).unwrap();
        }
        fuzz(&target("record", 2, name), &[beginning(&seed)], |path| {
            fs::copy(path, folder.path().join(name)).unwrap();
            let Ok(record) = Record::open(folder.path()) else {
                return false;
            };
            let options = page::Options {
                language: flatout_core::Language::English,
                pdf_ready: false,
            };
            let digest = Digest::read(&record);
            let _ = page::html(&digest, options);
            let _ = markdown::report(&digest, flatout_core::Language::English);
            true
        });
    }
}

/// What the probe and the tracer write while the program runs; a program can write anything there.
#[test]
fn files_of_a_running_program() {
    let mut ring = vec![0u8; 128 * 1024];
    ring[..8].copy_from_slice(b"FLATOUT1");
    ring[8] = 1;
    let message = br#"{"at":5,"event":{"kind":"note","source":"probe","text":"hello"}}"#;
    let need = (8 + message.len() + 7) & !7;
    ring[32..40].copy_from_slice(&(need as u64).to_le_bytes());
    ring[32768..32772].copy_from_slice(&(message.len() as u32).to_le_bytes());
    ring[32776..32776 + message.len()].copy_from_slice(message);
    fuzz(&target("ring", 80, "1-2.ring"), &[ring], |path| {
        flatout_run::ring::Ring::open(path).is_some_and(|mut ring| {
            let _ = (ring.counters(), ring.phase(), ring.steps(), ring.drain());
            true
        })
    });
    let event =
        r#"{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1.5,"dur":3,"args":{"stream":7}}"#;
    let trace = format!(r#"{{"schemaVersion":1,"traceEvents":[{event},{event}]}}"#);
    fuzz(
        &target("profiler-trace", 80, "trace.json"),
        &[trace.into_bytes()],
        |path| {
            flatout_run::profile::read(fs::File::open(path).unwrap()).is_ok_and(|profile| profile.events > 0)
        },
    );
    let mut trace = flatout_tracer::Header::default().encode().to_vec();
    trace.extend(flatout_tracer::format::encode_name(0, b"_Z4gemmPf"));
    for _ in 0..3 {
        trace.extend(flatout_tracer::Record::new(flatout_tracer::Activity::Kernel).encode());
    }
    fuzz(&target("gpu-trace", 150, "a.trace"), &[trace], |path| {
        flatout_tracer::read(path).is_ok_and(|trace| !trace.records.is_empty())
    });
}

/// Words on the command line, lines of other programs.
#[test]
fn words() {
    let seeds: Vec<Vec<u8>> = [
        "data/**/[a-z]?*.{csv,parquet}",
        "0,2-5",
        "slower=3%",
        "2024-01-01T10:00:00.123+02:00",
        "forward (model.py:12)",
        "--api-key=SECRET https://user:password@host/path",
        r#"curl -H "Authorization: Bearer abc" -d '{"apiKey": "x", "lr": 1}' https://ghp_x@h; A=b c=$d"#,
        "11:memory:/slurm/uid_1000/job_52098/step_0",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    fuzz(&target("words", 60, "words"), &seeds, |path| {
        let bytes = fs::read(path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let accepted = flatout_data::glob::Glob::parse(&text).is_ok();
        let _ = flatout_telemetry::GpuScope::parse(&text);
        let _ = (
            flatout_compare::Limit::slower(&text),
            flatout_compare::Limit::faster(&text),
        );
        let _ = flatout_data::time::parse_any_us(&bytes);
        let _ = flatout_core::secrets::redact(&[&text, "--token", &text]);
        let _ = flatout_core::text::visible(&flatout_core::text::shortened(&text, 40));
        let _ = flatout_core::shell::word(&text);
        accepted
    });
}

#[test]
fn logs() {
    let training: Vec<Vec<u8>> = vec![
        b"Epoch 1/3\n100%|####| 10/10 [00:02<00:00, 4.1it/s, loss=0.5]\nepoch 2 loss: 0.4 time: 3.2s\n".to_vec(),
        b"[2024-01-01 10:00:00] step 10 loss 1.5 lr 1e-3 120 samples/s\nTraceback (most recent call last):\nRuntimeError: CUDA out of memory\n".to_vec(),
    ];
    fuzz(&target("training-log", 2, "train.log"), &training, |path| {
        TrainingLog::read(path).is_ok()
    });
    fuzz(&target("analyze", 2, "train.log"), &training, |path| {
        analyze::log(path, &analyze::Options::default()).is_ok()
    });
    let gpu: Vec<Vec<u8>> = vec![
        b"timestamp, name, utilization.gpu [%], memory.used [MiB]\n2024/01/01 10:00:00.000, H100, 55 %, 1000 MiB\n".to_vec(),
        b"# gpu   pwr gtemp    sm   mem\n# Idx     W     C     %     %\n    0    70    40    99    50\n".to_vec(),
        b"host  Mon Jan  1 10:00:00 2024  535.1\n[0] NVIDIA H100 | 40'C,  99 % |  1000 / 81559 MB | a(900M)\n".to_vec(),
    ];
    fuzz(&target("gpu-log", 6, "gpu.log"), &gpu, |path| {
        let import = Importer::open(path, &ImportOptions::default());
        import.is_ok_and(|import| {
            import.each(|_| ());
            true
        })
    });
}

#[test]
fn checkpoints() {
    // Of a model with one hidden unit.
    let file = include_bytes!("fuzz/last.safetensors").to_vec();
    fuzz(&target("checkpoint", 20, "last.safetensors"), &[file], |path| {
        flatout_train::checkpoint::describe(path).is_ok()
    });
}
