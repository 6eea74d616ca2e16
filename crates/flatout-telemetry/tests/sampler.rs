//! The sampler on this machine's host, without a GPU.

use flatout_record::RunInfo;
use flatout_telemetry::sampler::{SamplerError, interval_from_seconds};
use flatout_telemetry::sources::gpus::GpuState;
use flatout_telemetry::{Sampler, SamplerOptions};
use std::process::Command;
use std::time::Duration;

fn host_only(pid: Option<u32>) -> SamplerOptions {
    SamplerOptions {
        interval: Duration::from_millis(50),
        gpus: None,
        host: true,
        pid,
    }
}

#[test]
fn ticks_come_with_the_host_and_a_description() {
    let mut sampler = Sampler::start(&host_only(None)).unwrap();
    let first = sampler.wait();
    assert!(first.sample.host.mem_total_bytes.is_some());
    let second = sampler.wait();
    assert!(second.sample.t > first.sample.t && second.sample.t >= 0.05);
    assert!(matches!(sampler.gpus(Duration::ZERO), GpuState::NotAsked));
    let mut info = RunInfo::default();
    sampler.describe(&mut info);
    let host = info.host.unwrap();
    assert!(!host.name.is_empty() && host.cpus.count() >= 1);
    assert_eq!(info.interval_s, Some(0.05));
    assert!(info.versions.contains_key("flatout"));
}

#[test]
fn intervals_that_make_no_sense_are_refused() {
    for seconds in [0.0, 0.049, -1.0, f64::NAN, f64::INFINITY, 1e9] {
        let error = interval_from_seconds(seconds).unwrap_err();
        assert!(matches!(error, SamplerError::Interval { .. }));
    }
    assert_eq!(interval_from_seconds(0.05).unwrap(), Duration::from_millis(50));
}

#[test]
fn the_end_of_the_watched_process_is_seen() {
    let mut child = Command::new("sleep").arg("0.2").spawn().unwrap();
    let mut sampler = Sampler::start(&host_only(Some(child.id()))).unwrap();
    let mut seen = false;
    for _ in 0..2000 {
        let tick = sampler.wait();
        seen |= tick.sample.processes.contains_key(&child.id());
        let _ = child.try_wait();
        if tick.ended {
            assert!(seen);
            return;
        }
    }
    panic!("the end of the process was not seen");
}

#[test]
fn a_process_that_is_not_there_is_refused() {
    let error = Sampler::start(&host_only(Some(u32::MAX))).err().unwrap();
    assert!(error.to_string().contains("no process 4294967295"));
}
