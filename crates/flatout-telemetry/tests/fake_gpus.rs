//! The NVML source through the real wrapper, on the stand-in library, seen from outside: a process records, the test reads.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail as its tests do")]

use flatout_record::{EventKind, Record, RunData};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The stand-in lies beside the test, because it is a dev-dependency.
fn library() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let path = here.with_file_name("libflatout_fake_nvml.so");
    assert!(path.exists(), "{} is missing", path.display());
    path
}

fn recorder() -> Command {
    let here = std::env::current_exe().unwrap();
    let mut command = Command::new(here.parent().unwrap().with_file_name("examples").join("record"));
    for variable in flatout_telemetry::scope::SCOPE_VARIABLES {
        command.env_remove(variable);
    }
    command.env("FLATOUT_NVML_LIB", library());
    command
}

fn record(seconds: &str, interval: &str, variables: &[(&str, &str)]) -> RunData {
    let (data, output) = try_record(seconds, interval, variables);
    assert!(output.status.success(), "{output:?}");
    data
}

fn try_record(seconds: &str, interval: &str, variables: &[(&str, &str)]) -> (RunData, Output) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = recorder();
    let output = command
        .arg(folder.path().join("run"))
        .args([seconds, interval])
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    (load(&folder.path().join("run")), output)
}

fn load(folder: &Path) -> RunData {
    Record::open(folder).unwrap().load()
}

#[test]
fn the_built_in_trace_is_read_in_full() {
    let data = record("0.5", "0.1", &[]);
    assert_eq!(data.info.gpus.len(), 2);
    let gpu = &data.info.gpus[&0];
    assert!(gpu.name.as_ref().unwrap().contains("H200") && gpu.gpm == Some(true));
    assert_eq!(gpu.compute_capability, Some((9, 0)));
    assert_eq!(
        (gpu.temp_slowdown_c, gpu.temp_shutdown_c),
        (Some(90.0), Some(95.0))
    );
    assert_eq!((gpu.pcie_generation_max, gpu.pcie_width_max), (Some(5), Some(16)));
    assert_eq!(data.info.versions["driver"], "580.95.05");
    assert_eq!(data.info.versions["cuda"], "13.0");
    let last = &data.samples.last().unwrap().gpus[&0];
    assert!((0.9..=1.0).contains(&last.util.unwrap()));
    assert!((0.75..0.9).contains(&last.sm_activity.unwrap()), "{last:?}");
    assert!(last.tensor_activity.unwrap() > 0.3 && last.dram_activity.unwrap() > 0.4);
    assert!((2.5e9..3.5e9).contains(&last.pcie_rx_bytes_s.unwrap()));
    assert_eq!(last.power_limit_w, Some(700.0));
    assert!(last.power_w.unwrap() > 600.0 && last.temp_c.unwrap() > 60.0);
    assert_eq!(last.mem_used_bytes, Some(61_440 << 20));
    assert_eq!((last.pcie_generation, last.pcie_width), (Some(5), Some(16)));
    let process = &last.processes.as_ref().unwrap()[0];
    assert_eq!(process.mem_bytes, Some(61_440 << 20));
    assert!(process.sm_util.unwrap() > 0.9 && process.command.as_ref().unwrap().contains("record"));
    let energy = |sample: &flatout_record::Sample| sample.gpus[&0].energy_j.unwrap();
    let (first, last) = (energy(&data.samples[0]), energy(data.samples.last().unwrap()));
    assert!(last > first, "{first} {last}");
    let fine: usize = data
        .samples
        .iter()
        .filter_map(|sample| sample.gpus[&0].util_fine.as_ref().map(Vec::len))
        .sum();
    assert!((1..=6).contains(&fine), "{fine} readings in half a second");
    assert!(data.info.clamped.is_empty());
}

#[test]
fn eight_gpus_and_a_scope() {
    let eight = [("FLATOUT_FAKE_NVML_GPUS", "8")];
    assert_eq!(record("0.2", "0.1", &eight).info.gpus.len(), 8);
    let gpus = |variable: &str, value: &str| -> Vec<u32> {
        let data = record("0.1", "0.05", &[eight[0], (variable, value)]);
        assert_eq!(
            data.samples.last().unwrap().gpus.keys().collect::<Vec<_>>(),
            data.info.gpus.keys().collect::<Vec<_>>()
        );
        data.info.gpus.into_keys().collect()
    };
    assert_eq!(gpus("CUDA_VISIBLE_DEVICES", "3,5"), [3, 5]);
    assert_eq!(gpus("CUDA_VISIBLE_DEVICES", "GPU-00000001,3"), [1, 3]);
    assert_eq!(gpus("CUDA_VISIBLE_DEVICES", ""), Vec::<u32>::new());
    assert_eq!(gpus("SLURM_JOB_GPUS", "2"), [2]);
    // A container shows its own eight under other numbers than the host's.
    assert_eq!(
        gpus("NVIDIA_VISIBLE_DEVICES", "8,9,10,11,12,13,14,15"),
        [0, 1, 2, 3, 4, 5, 6, 7]
    );
}

#[test]
fn a_recording_is_played_back() {
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("first");
    let output = recorder().arg(&first).args(["1", "0.1"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let again = record("0.5", "0.1", &[("FLATOUT_FAKE_NVML", first.to_str().unwrap())]);
    let first = load(&first);
    assert_eq!(again.info.gpus, first.info.gpus);
    let last = &again.samples.last().unwrap().gpus[&0];
    assert!(last.util.unwrap() > 0.9 && last.sm_activity.unwrap() > 0.7 && last.energy_j.is_some());
    let process = &last.processes.as_ref().unwrap()[0];
    assert!(process.pid > 4_194_304 && process.command.as_ref().unwrap().contains("record"));
}

#[test]
fn reports_unsupported_values_once_and_continues() {
    let script = "not-supported:gpm,not-supported:power,not-supported:throttle,not-supported:samples";
    let data = record("0.4", "0.1", &[("FLATOUT_FAKE_NVML_FAULT", script)]);
    let last = &data.samples.last().unwrap().gpus[&1];
    assert_eq!(
        (last.power_w, last.sm_activity, last.throttle.as_ref()),
        (None, None, None)
    );
    assert!(last.util.is_some() && last.mem_used_bytes.is_some());
    // Without GPM the traffic comes from the driver's own measurement.
    assert!(last.pcie_rx_bytes_s.is_some());
    for reason in [
        "gpu 0 gpm: not supported",
        "gpu 1 power: not supported",
        "gpu 1 throttle: not",
    ] {
        let found = data.info.unknown.iter().filter(|known| known.starts_with(reason));
        assert_eq!(found.count(), 1, "{reason} in {:?}", data.info.unknown);
    }
}

#[test]
fn a_gpu_that_falls_off_the_bus_is_an_event() {
    let data = record("0.6", "0.1", &[("FLATOUT_FAKE_NVML_FAULT", "lost:1@0.25")]);
    let lost: Vec<_> = data
        .events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::GpuLost { gpu: 1, .. }))
        .collect();
    assert_eq!(lost.len(), 1);
    assert!(data.samples[0].gpus.contains_key(&1));
    let last = data.samples.last().unwrap();
    assert!(last.gpus.contains_key(&0) && !last.gpus.contains_key(&1));
}

#[test]
fn absurd_values_are_clamped_and_counted() {
    let data = record("0.3", "0.1", &[("FLATOUT_FAKE_NVML_FAULT", "absurd")]);
    let gpu = &data.samples.last().unwrap().gpus[&0];
    assert_eq!(gpu.util, Some(1.0));
    assert_eq!((gpu.power_w, gpu.sm_clock_mhz), (None, None));
    assert_eq!(gpu.processes.as_ref().unwrap()[0].sm_util, Some(1.0));
    assert!(data.info.clamped["gpu 0 util"] >= 2);
}

#[test]
fn a_driver_that_takes_two_seconds_does_not_stall_the_ticks() {
    let data = record("1.6", "0.1", &[("FLATOUT_FAKE_NVML_FAULT", "slow:2@0.3")]);
    // The two GPUs are asked one after the other: from 0.3 s on no answer comes within this recording.
    let late: Vec<_> = data.samples.iter().filter(|sample| sample.t > 0.6).collect();
    assert!(
        late.len() >= 8,
        "{} ticks while the driver did not answer",
        late.len()
    );
    assert!(late.iter().all(|sample| sample.host.mem_total_bytes.is_some()));
    assert!(late.iter().all(|sample| sample.gpus[&0].age_s.is_some()));
    assert!(data.samples.iter().any(|sample| sample.gpus[&0].age_s.is_none()));
}

#[test]
fn a_driver_that_does_not_start_is_explained() {
    for (fault, words) in [
        ("mismatch", "does not match the loaded kernel module"),
        ("no-driver", "driver is not loaded"),
        ("no-permission", "no permission"),
        ("no-gpus", "reports no GPU"),
    ] {
        let data = record("0.4", "0.05", &[("FLATOUT_FAKE_NVML_FAULT", fault)]);
        assert!(
            data.info.unknown.iter().any(|reason| reason.contains(words)),
            "{fault}: {:?}",
            data.info.unknown
        );
        assert!(data.samples[0].gpus.is_empty() && data.samples[0].host.mem_total_bytes.is_some());
    }
    let data = record("0.1", "0.05", &[("FLATOUT_NVML_LIB", "/nonexistent.so")]);
    assert!(data.info.unknown[0].contains("no NVIDIA driver library was found (/nonexistent.so)"));
}
