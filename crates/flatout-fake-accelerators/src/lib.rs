//! A stand-in for `libamd_smi.so` and `libdcmi.so`: the parts of both C interfaces that flatout calls, for two devices.
//!
//! ```text
//! FLATOUT_AMDSMI_LIB=target/debug/libflatout_fake_accelerators.so flatout monitor
//! FLATOUT_DCMI_LIB=target/debug/libflatout_fake_accelerators.so flatout monitor
//! ```
//!
//! `FLATOUT_FAKE_ACCELERATORS_FAULT` is a list of faults:
//!
//! | fault | |
//! | --- | --- |
//! | `old` | the structures of ROCm 6.0 to 6.3; DCMI sizes in KB, as drivers of the first Ascend 910 gave them |
//! | `no-hbm` | a board whose memory is DDR |
//! | `no-power` | power is not supported |
//! | `absurd` | utilization of 40000%, power of four thousand million |
//! | `lost` | the second device is gone after a quarter of a second (DCMI) |
//! | `no-devices`, `does-not-start` | |
//!
//! The structures are written down here a second time, from the vendors' headers, so that a test notices when the reader's differ.

mod amdsmi;
mod dcmi;

use std::sync::OnceLock;
use std::time::{Duration, Instant};

const DEVICES: usize = 2;

/// Whether a fault is in force.
fn fault(name: &str) -> bool {
    static FAULTS: OnceLock<Vec<String>> = OnceLock::new();
    FAULTS
        .get_or_init(|| {
            let text = std::env::var("FLATOUT_FAKE_ACCELERATORS_FAULT").unwrap_or_default();
            text.split(',').map(|word| word.trim().to_owned()).collect()
        })
        .iter()
        .any(|known| known == name)
}

/// Whether the second device is gone by now.
fn lost() -> bool {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    let began = *BEGAN.get_or_init(Instant::now);
    fault("lost") && began.elapsed() > Duration::from_millis(250)
}

/// Writes a text and zeros after it.
fn fill(into: &mut [u8], text: &str) {
    into.fill(0);
    let room = into.len().saturating_sub(1);
    for (slot, byte) in into.iter_mut().take(room).zip(text.bytes()) {
        *slot = byte;
    }
}
