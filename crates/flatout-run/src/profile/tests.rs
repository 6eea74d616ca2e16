use super::*;
use std::io::{self, Read};

/// A trace that is made while it is read: steps of 1 ms, each with operators, launches and kernels.
struct Made {
    step: u64,
    steps: u64,
    buffer: Vec<u8>,
    at: usize,
}

const KERNELS: u64 = 20;

impl Made {
    fn new(steps: u64) -> Self {
        let buffer = br#"{"schemaVersion":1,"deviceProperties":[{"name":"made"}],"traceEvents":["#.to_vec();
        Self {
            step: 0,
            steps,
            buffer,
            at: 0,
        }
    }

    fn refill(&mut self) {
        use std::fmt::Write;
        self.buffer.clear();
        self.at = 0;
        if self.step > self.steps {
            return;
        }
        let mut text = String::new();
        if self.step == self.steps {
            text.push_str(r#"{"ph":"M","name":"end"}],"traceName":"made"}"#);
        } else {
            let start = self.step * 1000;
            let _ = write!(
                text,
                r#"{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{}","ts":{start}.000,"dur":999.0,"tid":1}},"#,
                self.step
            );
            for kernel in 0..KERNELS {
                let (at, id) = (start + kernel * 40, self.step * KERNELS + kernel + 1);
                let _ = write!(
                    text,
                    r#"{{"ph":"X","cat":"cpu_op","name":"aten::addmm","pid":7,"tid":1,"ts":{at}.5,"dur":20.25,"args":{{"External id":{id},"Sequence number":{id},"Fwd thread id":0}}}},
{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":7,"tid":1,"ts":{at}.75,"dur":5.0,"args":{{"cbid":211,"correlation":{id}}}}},
{{"ph":"s","id":{id},"pid":7,"tid":1,"ts":{at},"cat":"ac2g","name":"ac2g"}},
{{"ph":"X","cat":"kernel","name":"ampere_sgemm_128x64_nn","pid":0,"tid":7,"ts":{}.75,"dur":10.0,"args":{{"device":0,"stream":7,"correlation":{id},"grid":[1,2,3]}}}},
"#,
                    at + 8
                );
            }
        }
        self.buffer = text.into_bytes();
        self.step += 1;
    }
}

impl Read for Made {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.buffer.len() {
            self.refill();
        }
        let length = into.len().min(self.buffer.len() - self.at);
        into[..length].copy_from_slice(&self.buffer[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}

#[test]
fn kernels_gaps_and_operators_of_a_made_trace() {
    let profile = read(Made::new(50)).unwrap();
    assert_eq!(
        (profile.steps, profile.cut_short, profile.partial),
        (50, false, false)
    );
    let device = profile.device.as_ref().unwrap();
    assert_eq!(device.kernels, 50 * KERNELS);
    assert!((device.busy_ms - 10.0).abs() < 1e-6, "{device:?}");
    assert_eq!(device.tensor_core_share(), Some(0.0));
    // Every kernel was launched long after the one before had ended, and began 8 µs after its launch.
    assert!((device.idle.queued_ms - 8.0).abs() < 0.1, "{:?}", device.idle);
    assert!(device.idle.host_ms > 25.0 && device.idle.data_ms == 0.0 && device.idle.sync_ms == 0.0);
    let total = device.busy_ms + device.idle.host_ms + device.idle.queued_ms;
    assert!(
        total <= profile.span_ms && total > profile.span_ms * 0.95,
        "{total} of {}",
        profile.span_ms
    );
    assert_eq!(profile.operators[0].name, "aten::addmm");
    assert!((profile.operators[0].ms - 50.0 * KERNELS as f64 * 0.02025).abs() < 1e-3);
}

#[test]
fn a_large_trace_is_read_with_bounded_memory() {
    // 60 MB of text, 150 thousand kernels.
    let mut made = Made::new(7500);
    let mut bytes = 0;
    let mut tally = Tally::default();
    let counted = Counted {
        inner: &mut made,
        bytes: &mut bytes,
    };
    scan::events(counted, |event| tally.add(event)).unwrap();
    assert!(bytes > 60_000_000, "{bytes}");
    assert!(tally.held_bytes() < 20 << 20, "{}", tally.held_bytes());
    let profile = tally.finish();
    assert_eq!(profile.device.unwrap().kernels, 7500 * KERNELS);
}

struct Counted<'a> {
    inner: &'a mut Made,
    bytes: &'a mut u64,
}

impl Read for Counted<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(into)?;
        *self.bytes += length as u64;
        Ok(length)
    }
}

#[test]
fn reads_a_truncated_trace() {
    let mut text = Vec::new();
    Made::new(10).read_to_end(&mut text).unwrap();
    text.truncate(text.len() / 2);
    let profile = read(&text[..]).unwrap();
    assert!(profile.cut_short && profile.steps >= 4 && profile.device.is_some());
    let nothing = read(&b"not a trace"[..]).unwrap();
    assert!(nothing.cut_short && nothing.events == 0);
}

#[test]
fn reads_a_truncated_gpu_trace() {
    // The first 100 kB that PyTorch 2.11 wrote on an H200: the host's side comes first.
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/traces/h200-pageable-cut.json");
    let profile = read(std::fs::File::open(path).unwrap()).unwrap();
    assert!(profile.cut_short && profile.events > 200, "{profile:?}");
    assert!(
        profile
            .operators
            .iter()
            .any(|operator| operator.name == "aten::copy_")
    );
    assert!(profile.device.is_none());
}
