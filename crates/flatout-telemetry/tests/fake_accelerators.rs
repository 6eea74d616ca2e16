//! The AMD and Ascend sources on the stand-in library, seen from outside: a process records, the test reads.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail as its tests do")]

use flatout_record::{EventKind, Record, RunData};
use std::path::PathBuf;
use std::process::Command;

const AMD: &str = "FLATOUT_AMDSMI_LIB";
const ASCEND: &str = "FLATOUT_DCMI_LIB";

/// The stand-in is next to the test, because it is a dev-dependency.
fn library() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let path = here.with_file_name("libflatout_fake_accelerators.so");
    assert!(path.exists(), "{} is missing", path.display());
    path
}

fn example(name: &str, variables: &[(&str, &str)]) -> Command {
    let here = std::env::current_exe().unwrap();
    let mut command = Command::new(here.parent().unwrap().with_file_name("examples").join(name));
    let own = [
        "HIP_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
        "ASCEND_RT_VISIBLE_DEVICES",
    ];
    for variable in flatout_telemetry::scope::SCOPE_VARIABLES.into_iter().chain(own) {
        command.env_remove(variable);
    }
    command
        .env_remove("FLATOUT_NVML_LIB")
        .envs(variables.iter().copied());
    command
}

fn record(vendor: &str, seconds: &str, variables: &[(&str, &str)]) -> RunData {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let output = example("record", variables)
        .env(vendor, library())
        .arg(&run)
        .args([seconds, "0.05"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    Record::open(&run).unwrap().load()
}

fn fault(script: &str) -> [(&str, &str); 1] {
    [("FLATOUT_FAKE_ACCELERATORS_FAULT", script)]
}

#[test]
fn an_amd_gpu_is_read() {
    let data = record(AMD, "0.4", &[]);
    assert_eq!(data.info.gpus.len(), 2);
    let gpu = &data.info.gpus[&0];
    assert_eq!(gpu.name.as_deref(), Some("AMD Instinct MI300X"));
    assert_eq!(gpu.uuid.as_deref(), Some("00ff74a1-0000-1000-80f5-000000000000"));
    assert_eq!(gpu.mem_total_bytes, Some(192 << 30));
    assert_eq!(
        (gpu.sm_clock_max_mhz, gpu.mem_clock_max_mhz),
        (Some(2104.0), Some(1300.0))
    );
    assert_eq!(
        (gpu.temp_slowdown_c, gpu.temp_shutdown_c),
        (Some(100.0), Some(105.0))
    );
    assert_eq!(data.info.versions["amdsmi"], "26.0.2");
    let last = &data.samples.last().unwrap().gpus[&1];
    assert_eq!((last.util, last.mem_util), (Some(0.87), Some(0.42)));
    assert_eq!(
        (last.mem_used_bytes, last.mem_free_bytes),
        (Some(48 << 30), Some(144 << 30))
    );
    assert_eq!((last.power_w, last.power_limit_w), (Some(612.0), Some(750.0)));
    assert_eq!(
        (last.temp_c, last.sm_clock_mhz, last.mem_clock_mhz),
        (Some(71.0), Some(2100.0), Some(1300.0))
    );
    let energies: Vec<f64> = data
        .samples
        .iter()
        .filter_map(|sample| sample.gpus.get(&0)?.energy_j)
        .collect();
    assert!(
        energies.len() > 2 && energies.windows(2).all(|pair| pair[1] > pair[0]),
        "{energies:?}"
    );
    // What AMD SMI does not tell stays unknown.
    assert_eq!(
        (last.sm_activity, last.throttle.as_ref(), last.processes.as_ref()),
        (None, None, None)
    );
    assert!(
        data.info
            .unknown
            .iter()
            .any(|note| note.contains("has not been run on hardware"))
    );
}

#[test]
fn the_structures_of_older_versions_are_read() {
    let data = record(AMD, "0.2", &fault("old"));
    let last = &data.samples.last().unwrap().gpus[&0];
    assert_eq!((last.power_w, last.util), (Some(612.0), Some(0.87)));
    assert_eq!(data.info.versions["amdsmi"], "24.6.2");
    let data = record(ASCEND, "0.2", &fault("old"));
    let last = &data.samples.last().unwrap().gpus[&0];
    assert_eq!(
        (last.mem_used_bytes, last.mem_free_bytes),
        (Some(16 << 30), Some(48 << 30))
    );
}

#[test]
fn an_ascend_npu_is_read() {
    let data = record(ASCEND, "0.3", &[]);
    assert_eq!(data.info.gpus.keys().copied().collect::<Vec<_>>(), [0, 1]);
    let npu = &data.info.gpus[&1];
    assert_eq!(npu.name.as_deref(), Some("Ascend 910B3"));
    assert_eq!(npu.mem_total_bytes, Some(64 << 30));
    assert_eq!(npu.sm_clock_max_mhz, Some(1800.0));
    assert_eq!(data.info.versions["driver"], "24.1.rc2");
    let last = &data.samples.last().unwrap().gpus[&1];
    assert_eq!((last.util, last.mem_util), (Some(0.63), Some(0.31)));
    assert_eq!(
        (last.mem_used_bytes, last.mem_free_bytes),
        (Some(16 << 30), Some(48 << 30))
    );
    assert_eq!((last.power_w, last.temp_c), (Some(312.4), Some(58.0)));
    assert_eq!(
        (last.sm_clock_mhz, last.mem_clock_mhz),
        (Some(1650.0), Some(1600.0))
    );
    assert!(
        data.info
            .unknown
            .iter()
            .any(|note| note.contains("has not been run on hardware"))
    );
}

#[test]
fn a_board_with_ddr_memory_is_read() {
    let data = record(ASCEND, "0.2", &fault("no-hbm"));
    let last = &data.samples.last().unwrap().gpus[&0];
    let total = 21_527_u64 << 20;
    assert_eq!(data.info.gpus[&0].mem_total_bytes, Some(total));
    assert_eq!((last.mem_used_bytes, last.mem_util), (Some(total / 2), None));
}

#[test]
fn what_is_not_supported_or_absurd_is_left_out() {
    for vendor in [AMD, ASCEND] {
        let data = record(vendor, "0.2", &fault("no-power"));
        assert_eq!(data.samples.last().unwrap().gpus[&0].power_w, None);
        let reasons = data.info.unknown.iter();
        let reasons = reasons.filter(|reason| reason.as_str() == "gpu 0 power: not supported by this GPU");
        assert_eq!(reasons.count(), 1, "{vendor}: {:?}", data.info.unknown);
        let data = record(vendor, "0.2", &fault("absurd"));
        let last = &data.samples.last().unwrap().gpus[&0];
        assert_eq!((last.util, last.power_w), (Some(1.0), None), "{vendor}");
        assert!(data.info.clamped["gpu 0 util"] >= 2);
    }
}

#[test]
fn a_scope_of_the_vendor_picks_devices() {
    let keys = |vendor, variables: &[(&str, &str)]| -> Vec<u32> {
        record(vendor, "0.1", variables).info.gpus.into_keys().collect()
    };
    assert_eq!(keys(AMD, &[("HIP_VISIBLE_DEVICES", "1")]), [1]);
    assert_eq!(
        keys(
            AMD,
            &[("ROCR_VISIBLE_DEVICES", "1"), ("HIP_VISIBLE_DEVICES", "0")]
        ),
        [1]
    );
    assert_eq!(keys(ASCEND, &[("ASCEND_RT_VISIBLE_DEVICES", "0")]), [0]);
}

#[test]
fn a_lost_device_is_an_event() {
    let data = record(ASCEND, "0.6", &fault("lost"));
    let lost = data.events.iter();
    let lost = lost.filter(|event| matches!(event.kind, EventKind::GpuLost { gpu: 1, .. }));
    assert_eq!(lost.count(), 1);
    let last = data.samples.last().unwrap();
    assert!(last.gpus.contains_key(&0) && !last.gpus.contains_key(&1));
}

#[test]
fn a_library_that_does_not_start_is_explained() {
    for (vendor, script, words) in [
        (
            AMD,
            "does-not-start",
            "the AMD library failed: amdsmi_init gives status 18",
        ),
        (AMD, "no-devices", "the AMD driver sees no device"),
        (
            ASCEND,
            "does-not-start",
            "the Ascend library failed: dcmi_init gives code -8005",
        ),
        (ASCEND, "no-devices", "the Ascend driver sees no device"),
    ] {
        let data = record(vendor, "0.2", &fault(script));
        let found = data.info.unknown.iter().any(|reason| reason.contains(words));
        assert!(found, "{vendor} {script}: {:?}", data.info.unknown);
        assert!(data.samples[0].gpus.is_empty() && data.samples[0].host.mem_total_bytes.is_some());
    }
}

#[test]
fn doctor_lists_the_devices_and_says_what_is_untested() {
    let examine = |vendor: &str, library: PathBuf| {
        let output = example("examine", &[]).env(vendor, library).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let text = examine(AMD, library());
    assert!(text.contains("driver Note AMD SMI 26.0.2 open"), "{text}");
    assert!(
        text.contains("gpu.1 Good GPU 1: AMD Instinct MI300X, memory 192"),
        "{text}"
    );
    let text = examine(ASCEND, library());
    assert!(text.contains("driver Note DCMI, driver 24.1.rc2 open"), "{text}");
    assert!(
        text.contains("gpu.0 Good GPU 0: Ascend 910B3, memory 64"),
        "{text}"
    );
    let text = examine(ASCEND, "/nonexistent.so".into());
    assert!(
        text.contains(
            "driver Missing the Ascend driver is loaded, but its library was not found (/nonexistent.so)"
        ),
        "{text}"
    );
}
