use super::*;
use crate::stacks::Key;
use flatout_tracer::format::Header;

fn record(activity: Activity, start: u64, end: u64) -> Record {
    Record {
        start,
        end,
        ..Record::new(activity)
    }
}

pub fn trace(records: Vec<Record>) -> Trace {
    let mut bytes = Vec::new();
    let header = Header {
        start: 1_000_000,
        stop: 11_000_000,
        records: records.len() as u64,
        flags: flatout_tracer::format::CLOSED | flatout_tracer::format::OWN_CLOCK,
        ..Header::default()
    };
    bytes.extend(header.encode());
    bytes.extend(flatout_tracer::format::encode_name(0, b"ampere_sgemm_128x64_nn"));
    for record in records {
        bytes.extend(record.encode());
    }
    Trace::parse(&bytes).unwrap()
}

fn sample(at_ns: u64, line: &str) -> TimedStack {
    TimedStack {
        at_ns,
        ms: 1.0,
        steps: 0,
        key: Key {
            frames: vec![line.into()],
            phase: None,
            gil: true,
            blocked: None,
        },
    }
}

#[test]
fn every_instant_belongs_to_one_state() {
    let trace = trace(vec![
        record(Activity::Kernel, 1_000_000, 4_000_000),
        record(Activity::Copy, 3_000_000, 5_000_000),
        record(Activity::Kernel, 10_500_000, 12_000_000),
    ]);
    let window = join(&trace, &[], 3, 2.0);
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    close(window.wall_ms, 10.0);
    close(window.computing_ms, 3.5);
    close(window.copying_ms, 1.0);
    close(window.idle_ms, 5.5);
    close(
        window.computing_ms + window.copying_ms + window.communicating_ms + window.idle_ms,
        window.wall_ms,
    );
    assert_eq!(
        (window.kernels, window.kinds[0].kind),
        (2, KernelKind::MatrixFp32)
    );
}

#[test]
fn samples_carry_what_the_gpu_did() {
    let trace = trace(vec![record(Activity::Kernel, 1_000_000, 4_000_000)]);
    let samples = [
        sample(500_000, "before (a.py:1)"),
        sample(2_000_000, "launch (a.py:2)"),
        sample(3_000_000, "launch (a.py:2)"),
        sample(6_000_000, "score (a.py:3)"),
    ];
    let mut stacks = join(&trace, &samples, 1, 2.0).stacks;
    stacks.sort_by_key(|stack| stack.frames.clone());
    assert_eq!(stacks.len(), 2);
    assert_eq!((stacks[0].count, stacks[0].gpu), (2, Some(GpuState::Computing)));
    assert_eq!((stacks[1].count, stacks[1].gpu), (1, Some(GpuState::Idle)));
}

#[test]
fn kernels_belong_to_the_line_that_launched_them() {
    let call = |correlation, start| Record {
        correlation,
        ..record(Activity::Runtime, start, start + 5_000)
    };
    let kernel = |correlation, start, end| Record {
        correlation,
        ..record(Activity::Kernel, start, end)
    };
    // Both run while the host waits at line 3.
    let trace = trace(vec![
        call(1, 2_000_000),
        call(2, 3_000_000),
        kernel(1, 5_000_000, 8_000_000),
        kernel(2, 8_000_000, 9_000_000),
        kernel(3, 9_000_000, 9_500_000),
    ]);
    let samples = [
        sample(1_900_000, "attend (a.py:1)"),
        sample(3_100_000, "score (a.py:2)"),
        sample(6_000_000, "wait (a.py:3)"),
    ];
    let launches = join(&trace, &samples, 1, 2.0).launches;
    let of = |text: &str| {
        let found = launches
            .iter()
            .find(|stack| stack.frames.iter().any(|frame| frame == text));
        found.map_or(0.0, flatout_record::LaunchStack::ms)
    };
    assert!((of("attend (a.py:1)") - 3.0).abs() < 1e-9);
    assert!((of("score (a.py:2)") - 1.0).abs() < 1e-9);
    assert!(of("wait (a.py:3)").abs() < 1e-9);
    let unknown = launches.iter().find(|stack| stack.frames.is_empty()).unwrap();
    assert!((unknown.ms() - 0.5).abs() < 1e-9, "launched before the window");
}

#[test]
fn without_recorded_launches_nothing_is_credited() {
    let trace = trace(vec![record(Activity::Kernel, 1_000_000, 4_000_000)]);
    let samples = [sample(2_000_000, "launch (a.py:2)")];
    assert!(join(&trace, &samples, 1, 2.0).launches.is_empty());
}
