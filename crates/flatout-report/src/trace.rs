//! A record in the trace-event format that Perfetto and Chrome read: <https://ui.perfetto.dev>, chrome://tracing.
//!
//! Steps that the record keeps event by event become slices: the training thread's phases and stacks, the GPU's streams, a loader
//! worker. The whole run becomes counters (steps, phases, GPU utilization), slices (evaluations, checkpoints) and instants (epochs).

use crate::words;
use flatout_core::Language;
use flatout_record::{Event, EventKind, HostSlice, Phase, Record, StepTimeline};
use serde_json::{Map, Value, json};

/// Processes and threads of the trace.
const TRAINING: u32 = 1;
const GPU: u32 = 2;
const WORKER: u32 = 3;
const PHASES: u32 = 1;
const STACKS: u32 = 2;
const EVENTS: u32 = 3;

/// The whole record as one JSON document.
pub fn export(record: &Record) -> Value {
    let mut events = names();
    for timeline in record.timelines() {
        add_timeline(&timeline, &mut events);
    }
    for event in record
        .events()
        .filter(|event| event.t.is_finite() && event.t >= 0.0)
    {
        events.extend(happened(&event));
    }
    add_counters(record, &mut events);
    json!({
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {
            "run": record.info.id,
            "command": record.info.command.join(" "),
            "flatout": env!("CARGO_PKG_VERSION"),
        },
    })
}

fn names() -> Vec<Value> {
    let name = |what: &str, pid: u32, tid: u32, name: &str| json!({ "ph": "M", "name": what, "pid": pid, "tid": tid, "args": { "name": name } });
    vec![
        name("process_name", TRAINING, 0, "training process"),
        name("process_name", GPU, 0, "GPU"),
        name("process_name", WORKER, 0, "loader worker"),
        name("thread_name", TRAINING, PHASES, "phases"),
        name("thread_name", TRAINING, STACKS, "training thread (samples)"),
        name("thread_name", TRAINING, EVENTS, "evaluations and checkpoints"),
        name("thread_name", WORKER, STACKS, "worker (samples)"),
    ]
}

fn slice(pid: u32, tid: u32, name: &str, category: &str, at_us: f64, us: f64) -> Value {
    json!({
        "ph": "X",
        "name": name,
        "cat": category,
        "pid": pid,
        "tid": tid,
        "ts": round(at_us),
        "dur": round(us.max(0.0)),
    })
}

fn round(us: f64) -> f64 {
    (us * 1e3).round() / 1e3
}

fn add_timeline(timeline: &StepTimeline, events: &mut Vec<Value>) {
    let start_us = timeline.t * 1e6;
    let mut phase: Option<(Phase, f64, f64)> = None;
    for one in &timeline.host {
        let end = one.at + one.us;
        match (&mut phase, one.phase) {
            (Some((under_way, _, until)), Some(now)) if *under_way == now => *until = end,
            (found, now) => {
                let over = found.take();
                events.extend(over.map(|over| phase_slice(over, start_us)));
                *found = now.map(|now| (now, one.at, end));
            }
        }
    }
    events.extend(phase.map(|over| phase_slice(over, start_us)));
    add_stacks(TRAINING, timeline, &timeline.host, events);
    add_stacks(WORKER, timeline, &timeline.workers, events);
    for one in &timeline.gpu {
        let name = timeline.names.get(one.name).map_or("?", String::as_str);
        let category = one.kind.map_or("copy", words::kernel_class);
        let mut event = slice(GPU, one.stream, name, category, start_us + one.at, one.us);
        if let Some(bytes) = one.bytes {
            event["args"] = json!({ "bytes": bytes });
        }
        events.push(event);
    }
}

fn phase_slice((phase, from, until): (Phase, f64, f64), start_us: f64) -> Value {
    let name = words::phase(phase);
    let name = name.get(Language::English);
    slice(TRAINING, PHASES, name, "phase", start_us + from, until - from)
}

/// Frames that stay from one sample to the next are one slice; what they call lies inside of it.
fn add_stacks(pid: u32, timeline: &StepTimeline, slices: &[HostSlice], events: &mut Vec<Value>) {
    let start_us = timeline.t * 1e6;
    let mut open: Vec<(&str, f64)> = Vec::new();
    let mut end = 0.0;
    let mut close = |open: &mut Vec<(&str, f64)>, depth: usize, end: f64| {
        while open.len() > depth {
            if let Some((frame, from)) = open.pop() {
                let name = frame.split(" (").next().unwrap_or(frame);
                let mut event = slice(pid, STACKS, name, "stack", start_us + from, end - from);
                event["args"] = json!({ "frame": frame });
                events.push(event);
            }
        }
    };
    for one in slices {
        let frames = timeline.stacks.get(one.stack).map_or(&[][..], Vec::as_slice);
        let same = open.iter().zip(frames).take_while(|((a, _), b)| a == b).count();
        close(&mut open, same, one.at);
        open.extend(frames[same..].iter().map(|frame| (frame.as_str(), one.at)));
        end = one.at + one.us;
    }
    close(&mut open, 0, end);
}

fn happened(event: &Event) -> Option<Value> {
    let lasting = |name: &str, duration_ms: f64| {
        let us = (duration_ms * 1e3).max(0.0);
        slice(TRAINING, EVENTS, name, "event", (event.t * 1e6 - us).max(0.0), us)
    };
    match &event.kind {
        EventKind::Epoch { number, .. } => Some(json!({
            "ph": "i",
            "s": "g",
            "name": format!("epoch {number} ended"),
            "pid": TRAINING,
            "tid": EVENTS,
            "ts": round(event.t * 1e6),
        })),
        EventKind::Eval { duration_ms, .. } => Some(lasting("evaluation", *duration_ms)),
        EventKind::Checkpoint { duration_ms, .. } => Some(lasting("checkpoint", *duration_ms)),
        _ => None,
    }
}

fn add_counters(record: &Record, events: &mut Vec<Value>) {
    let counter = |name: &str, pid: u32, t: f64, args: Map<String, Value>| json!({ "ph": "C", "name": name, "pid": pid, "tid": 0, "ts": round(t * 1e6), "args": args });
    for tick in record.steps().filter(|tick| tick.t >= 0.0 && tick.dt > 0.0) {
        let mut shares = Map::new();
        for (phase, time) in &tick.phases {
            let percent = time.ms / tick.dt / 10.0;
            shares.insert(phase.name().into(), json!((percent * 10.0).round() / 10.0));
        }
        let steps = Map::from_iter([("steps".to_owned(), json!(tick.steps as f64 / tick.dt))]);
        events.push(counter("percent of time", TRAINING, tick.t, shares));
        events.push(counter("steps per second", TRAINING, tick.t, steps));
    }
    for sample in record.samples().filter(|sample| sample.t >= 0.0) {
        for (index, gpu) in &sample.gpus {
            if let Some(util) = gpu.util {
                let value = Map::from_iter([("percent".to_owned(), json!((util * 1000.0).round() / 10.0))]);
                events.push(counter(&format!("GPU {index} utilization"), GPU, sample.t, value));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_record::{GpuSlice, KernelKind, RecordWriter, RunInfo, SCHEMA};
    use std::collections::BTreeMap;

    fn host(at: f64, us: f64, stack: usize, phase: Phase) -> HostSlice {
        HostSlice {
            at,
            us,
            stack,
            phase: Some(phase),
            ..HostSlice::default()
        }
    }

    fn recorded() -> Value {
        let folder = tempfile::tempdir().unwrap();
        let info = RunInfo {
            schema: SCHEMA,
            id: "run".into(),
            ..RunInfo::default()
        };
        let mut writer = RecordWriter::create(folder.path(), info).unwrap();
        writer.timeline(&StepTimeline {
            t: 2.0,
            us: 10_000.0,
            steps: 1,
            stacks: vec![
                vec!["main (a.py:9)".into(), "next (a.py:1)".into()],
                vec!["main (a.py:9)".into()],
            ],
            host: vec![
                host(0.0, 2000.0, 0, Phase::Data),
                host(2000.0, 3000.0, 1, Phase::Compute),
                host(5000.0, 5000.0, 0, Phase::Compute),
            ],
            workers: vec![host(0.0, 10_000.0, 0, Phase::Data)],
            names: vec!["gemm".into(), "copy HtoD, pageable".into()],
            gpu: vec![
                GpuSlice {
                    at: 3000.0,
                    us: 900.0,
                    stream: 7,
                    name: 0,
                    kind: Some(KernelKind::TensorCore),
                    bytes: None,
                },
                GpuSlice {
                    at: 1000.0,
                    us: 500.0,
                    stream: 7,
                    name: 1,
                    kind: None,
                    bytes: Some(64),
                },
            ],
            cut: false,
        });
        writer.event(&Event {
            t: 3.0,
            kind: EventKind::Checkpoint {
                duration_ms: 100.0,
                bytes: None,
                place: None,
            },
        });
        drop(writer);
        export(&Record::open(folder.path()).unwrap())
    }

    /// What the format asks of each kind of event; returns the slices by process and thread.
    fn checked(trace: &Value) -> BTreeMap<(u64, u64), Vec<(f64, f64)>> {
        let mut slices: BTreeMap<(u64, u64), Vec<(f64, f64)>> = BTreeMap::new();
        for event in trace["traceEvents"].as_array().unwrap() {
            let number = |key: &str| event[key].as_f64().unwrap_or_else(|| panic!("no {key}: {event}"));
            assert!(event["name"].is_string(), "{event}");
            let (pid, tid) = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
            match event["ph"].as_str().unwrap() {
                "X" => {
                    assert!(number("ts") >= 0.0 && number("dur") >= 0.0, "{event}");
                    let span = (number("ts"), number("ts") + number("dur"));
                    slices.entry((pid, tid)).or_default().push(span);
                }
                "M" => assert!(event["args"]["name"].is_string(), "{event}"),
                "C" => assert!(number("ts") >= 0.0 && event["args"].is_object(), "{event}"),
                "i" => assert!(number("ts") >= 0.0 && event["s"] == "g", "{event}"),
                other => panic!("{other}"),
            }
        }
        slices
    }

    #[test]
    fn slices_of_a_thread_are_inside_of_each_other_or_apart() {
        let trace = recorded();
        let slices = checked(&trace);
        assert_eq!(slices.len(), 5, "{slices:?}");
        for spans in slices.values() {
            for (index, a) in spans.iter().enumerate() {
                for b in &spans[index + 1..] {
                    let apart = a.1 <= b.0 || b.1 <= a.0;
                    let inside = a.0 >= b.0 && a.1 <= b.1 || b.0 >= a.0 && b.1 <= a.1;
                    assert!(apart || inside, "{a:?} {b:?}");
                }
            }
        }
        let main: Vec<&Value> = trace["traceEvents"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|event| event["name"] == "main" && event["pid"] == TRAINING)
            .collect();
        assert_eq!(main.len(), 1, "a frame that stays is one slice");
        assert_eq!(main[0]["dur"], 10_000.0);
    }

    #[test]
    fn committed_records_become_traces() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for name in [
            "faults/in_process_images/record",
            "tests/data/recordings/h200-dips",
        ] {
            let trace = export(&Record::open(&root.join(name)).unwrap());
            checked(&trace);
            assert!(trace["traceEvents"].as_array().unwrap().len() > 20, "{name}");
        }
    }
}
