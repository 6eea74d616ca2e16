//! Records for tests: a training of known numbers.

use flatout_record::{
    Event, EventKind, ExitInfo, Fact, GpuSample, HostSample, Phase, PhaseTime, ProcessSample, RunData,
    Sample, StepTick,
};
use serde_json::json;
use std::collections::BTreeMap;

/// So many seconds with ten steps of 32 samples each, of which `data_share` waits for data; a GPU that is busy half of the time.
pub fn training(seconds: u32, data_share: f64) -> RunData {
    let mut data = RunData::default();
    data.info.schema = flatout_record::SCHEMA;
    data.info.id = "20261115-031200-train".into();
    data.info.name = "train".into();
    data.info.kind = "run".into();
    data.info.interval_s = Some(1.0);
    let time = |ms| PhaseTime {
        ms,
        ..PhaseTime::default()
    };
    for second in 0..seconds {
        let t = 3.0 + f64::from(second);
        let mut tick = StepTick {
            t,
            dt: 1.0,
            steps: 10,
            samples: Some(320),
            phases: BTreeMap::from([
                (Phase::Data, time(data_share * 1e3)),
                (Phase::Compute, time((1.0 - data_share) * 1e3)),
            ]),
            loss: Some(2.0 / f64::from(second + 1)),
            ..StepTick::default()
        };
        for _ in 0..10 {
            tick.step_hist.add_ms(100.0);
        }
        data.steps.push(tick);
        let gpu = GpuSample {
            util: Some(if second % 2 == 0 { 0.4 } else { 0.6 }),
            power_w: Some(300.0),
            power_limit_w: Some(700.0),
            ..GpuSample::default()
        };
        data.samples.push(Sample {
            t,
            gpus: BTreeMap::from([(0, gpu)]),
            host: HostSample {
                cpu_util: Some(0.3),
                ..HostSample::default()
            },
            processes: BTreeMap::from([(
                7,
                ProcessSample {
                    command: Some("python train.py".into()),
                    cpus: Some(1.0),
                    ..ProcessSample::default()
                },
            )]),
        });
        if second % 10 == 9 {
            data.events.push(Event {
                t,
                kind: EventKind::Epoch {
                    number: u64::from(second / 10 + 1),
                    duration_ms: Some(10_000.0),
                },
            });
        }
    }
    data.facts.push(Fact {
        t: 1.0,
        key: "loader.batch_size".into(),
        value: json!(32),
        scope: Some("loader.0".into()),
        place: None,
    });
    data.info.exit = Some(ExitInfo {
        t: 3.0 + f64::from(seconds),
        code: Some(0),
        signal: None,
    });
    data
}
