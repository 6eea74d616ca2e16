//! The checklist before a start.

use super::super::Status;
use super::*;
use crate::check::state;
use flatout_record::GpuSample;

fn run(given: &[(&str, &str)], gpu: Option<GpuSample>) -> Vec<Item> {
    let machine = Machine::here().with_gpu("A100", 1).unwrap().with_cpus(8);
    let sample = Sample {
        gpus: gpu.map(|gpu| (0, gpu)).into_iter().collect(),
        ..Sample::default()
    };
    let known = Before {
        given: &Given::from_pairs(given),
        machine: &machine,
        sample: &sample,
        source: &[],
        script: false,
        data: None,
        folder: Path::new("/"),
        command: &[],
    };
    before(
        &known,
        &Limits {
            disk_free_gib_min: 0.0,
            ..Limits::default()
        },
    )
}

#[test]
fn the_seeds_checklist() {
    let bad = run(
        &[
            ("num_workers", "40"),
            ("batch_size", "16"),
            ("amp", "false"),
            ("pin_memory", "false"),
        ],
        None,
    );
    assert_eq!(state(&bad, "workers"), Status::Fail);
    assert_eq!(state(&bad, "amp"), Status::Fail);
    assert_eq!(
        (state(&bad, "batch"), state(&bad, "pinning")),
        (Status::Warn, Status::Warn)
    );
    assert_eq!(state(&bad, "gpu-free"), Status::Skipped);
    let good = run(
        &[
            ("num_workers", "8"),
            ("batch_size", "512"),
            ("amp", "bf16"),
            ("pin_memory", "true"),
        ],
        None,
    );
    assert!(
        good.iter()
            .all(|item| matches!(item.status, Status::Pass | Status::Skipped)),
        "{good:?}"
    );
}

#[test]
fn a_full_or_hot_gpu_fails() {
    let gpu = GpuSample {
        mem_used_bytes: Some(30 << 30),
        mem_free_bytes: Some(10 << 30),
        temp_c: Some(91.0),
        ..GpuSample::default()
    };
    let items = run(&[], Some(gpu));
    assert_eq!(
        (state(&items, "gpu-free"), state(&items, "gpu-cool")),
        (Status::Fail, Status::Fail)
    );
    assert_eq!(state(&items, "workers"), Status::Skipped);
}

#[test]
fn a_script_that_is_not_there_fails() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("train.py");
    std::fs::write(&there, "").unwrap();
    let missing = |words: &[&str]| {
        program::script(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).is_some()
    };
    assert!(
        missing(&["python", "no/such/train.py"])
            && missing(&["torchrun", "--nproc_per_node", "2", "nosuch.py"])
    );
    assert!(!missing(&["python", there.to_str().unwrap(), "configs/other.py"]));
    assert!(!missing(&["python", "-m", "pkg.train", "a.py"]) && !missing(&["./train"]) && !missing(&[]));
}

#[test]
fn a_program_that_is_not_there_fails() {
    for (name, status) in [
        ("sh", Status::Pass),
        ("/bin/sh", Status::Pass),
        ("no-such-program", Status::Fail),
        ("/etc/passwd", Status::Fail),
    ] {
        assert_eq!(program::there(name).status, status, "{name}");
    }
}
