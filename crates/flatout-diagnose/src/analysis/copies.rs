//! Copies to the device that wait for it. `.to(device)` comes back once the work queued before it is done, so in a loop that keeps its
//! device busy most of that time is no copying: it belongs to waiting for the device.

use super::{Analysis, Device};
use flatout_record::Phase;
use std::collections::BTreeMap;

/// No slower does ordinary memory go to a device, nor the few copies of a batch, whatever they hold.
const SLOWEST_BYTES_S: f64 = 1e9;
const LONGEST_TO_BEGIN_S: f64 = 0.2e-3;

/// The share of the copying time that waits for the device: what is beyond the bytes of the batches, and no more than the device was
/// busy. 0 where bytes or device are unknown.
pub fn waiting_share(analysis: &Analysis) -> f64 {
    let known = || {
        let window = analysis
            .window
            .as_ref()
            .filter(|_| analysis.device() == Device::Cuda)?;
        let batches =
            window.steps as f64 * analysis.facts.number("step.accumulation").unwrap_or(1.0).max(1.0);
        let bytes = analysis.of_the_input("input.bytes")?.value.as_f64()?.max(0.0);
        let each_s = bytes / SLOWEST_BYTES_S + LONGEST_TO_BEGIN_S;
        let busy_s = analysis.device_busy_share()? * window.wall_s() - window.seconds(Phase::Sync);
        let copying_s = window.seconds(Phase::Transfer);
        let waiting_s = (copying_s - batches * each_s).min(busy_s).max(0.0);
        (copying_s > 0.0).then(|| waiting_s / copying_s)
    };
    known().unwrap_or(0.0)
}

/// Moves that share of the copying to the waiting for the device.
pub fn tell_apart(seconds: &mut BTreeMap<Phase, f64>, waiting: f64) {
    if let Some(copying) = seconds.get_mut(&Phase::Transfer).filter(|_| waiting > 0.0) {
        let moved = *copying * waiting;
        *copying -= moved;
        *seconds.entry(Phase::Sync).or_default() += moved;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Build;

    /// A hundred steps a second that copy most of the time.
    fn copying(bytes: f64, busy: f64) -> Build {
        Build::steady(20)
            .phase(Phase::Transfer, 0.8)
            .phase(Phase::Compute, 0.2)
            .busy(busy)
            .gpu(move |gpu| gpu.util = Some(busy))
            .fact("input.bytes", bytes)
            .fact("device", "cuda")
    }

    fn shares(build: Build) -> (f64, f64) {
        let data = build.done();
        let analysis = Analysis::new(&data);
        let copying = analysis.copying_share();
        (copying, analysis.share(Phase::Transfer) - copying)
    }

    #[test]
    fn small_copies_wait_for_a_busy_device() {
        let (copies, waits) = shares(copying(128e3, 0.98));
        assert!(copies < 0.05 && waits > 0.75, "{copies} {waits}");
        let data = copying(128e3, 0.98).done();
        let time = Analysis::new(&data).time;
        assert!(
            time.share("transfer") < 0.05 && time.share("sync") > 0.65,
            "{time:?}"
        );
    }

    #[test]
    fn large_copies_copy() {
        let (copies, waits) = shares(copying(65e6, 0.98));
        assert!(copies > 0.75 && waits < 0.05, "{copies} {waits}");
    }

    #[test]
    fn nothing_waits_for_an_idle_device() {
        let (copies, waits) = shares(copying(128e3, 0.1));
        // The device may have been busy in the copies, and no longer than that.
        assert!(copies > 0.65 && waits <= 0.1 + 1e-9, "{copies} {waits}");
    }

    #[test]
    fn bytes_that_cannot_be_are_none() {
        let (copies, waits) = shares(copying(-1e12, 1.0));
        assert!(copies >= 0.0 && waits <= 0.8, "{copies} {waits}");
    }

    #[test]
    fn unknown_bytes_stay_copies() {
        let data = Build::steady(20)
            .phase(Phase::Transfer, 0.8)
            .busy(0.98)
            .fact("device", "cuda")
            .done();
        assert_eq!(waiting_share(&Analysis::new(&data)), 0.0);
    }
}
