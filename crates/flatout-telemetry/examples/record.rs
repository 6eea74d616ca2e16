//! The smallest recorder: GPUs, host and this process into a run record. `flatout monitor` is the comfortable one; tests use
//! this to see a recording process from outside.
//!
//! `record FOLDER SECONDS [INTERVAL_SECONDS]`

use flatout_core::Failure;
use flatout_record::RecordWriter;
use flatout_record::{ExitInfo, RunInfo};
use flatout_telemetry::sampler::interval_from_seconds;
use flatout_telemetry::{Sampler, SamplerOptions};
use std::path::PathBuf;
use std::time::Duration;

fn main() {
    if let Err(failure) = record() {
        eprint!("{}", failure.render(flatout_core::Language::English));
        std::process::exit(2);
    }
}

fn record() -> flatout_core::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().unwrap_or_default());
    let mut number = |default: f64| {
        arguments
            .next()
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let (seconds, interval) = (number(10.0), number(1.0));
    let options = SamplerOptions {
        interval: interval_from_seconds(interval)?,
        pid: Some(std::process::id()),
        ..SamplerOptions::default()
    };
    let mut sampler = Sampler::start(&options)?;
    let mut info = RunInfo {
        name: "record".into(),
        kind: "monitor".into(),
        ..RunInfo::default()
    };
    sampler.describe(&mut info);
    let mut writer = RecordWriter::create(&folder, info).map_err(Failure::from)?;
    println!("recording");
    while sampler.elapsed_s() < seconds {
        let tick = sampler.wait();
        writer.sample(&tick.sample);
        tick.events.iter().for_each(|event| writer.event(event));
        if tick.described {
            writer.update_info(|info| sampler.describe(info));
        }
    }
    // A driver that was slow to open is described after the first ticks.
    let _ = sampler.gpus(Duration::ZERO);
    writer.update_info(|info| sampler.describe(info));
    let t = sampler.elapsed_s();
    writer.finish(ExitInfo {
        t,
        code: Some(0),
        signal: None,
    });
    let lost = writer.lost();
    println!(
        "{} ticks, {} missed, {} lines lost {}",
        sampler.ticks(),
        sampler.missed(),
        lost.lines,
        lost.reason
    );
    Ok(())
}
