//! PCIe traffic without GPM: the driver's byte counters where it has them, else its 20 ms measurement, which holds the
//! caller up for that time twice a GPU and is therefore made rarely.

use crate::sources::fields::Fields;
use flatout_record::GpuSample;
use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::PcieUtilCounter;
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::sys_exports::field_id::{NVML_FI_DEV_PCIE_COUNT_RX_BYTES, NVML_FI_DEV_PCIE_COUNT_TX_BYTES};
use std::time::{Duration, Instant};

/// The slow way is asked at most this often.
const SLOW_EVERY: Duration = Duration::from_secs(1);
const COUNTERS: &str = "pcie_counters";
const MEASURED: &str = "pcie_throughput";
const MOST_BYTES_S: f64 = 1e12;

#[derive(Default)]
pub struct Pcie {
    before: Option<(u64, u64, Instant)>,
    measured: Option<Instant>,
    last: (Option<f64>, Option<f64>),
}

impl Pcie {
    pub fn read(&mut self, device: &Device<'_>, now: Instant, fields: &mut Fields, into: &mut GpuSample) {
        if !fields.is_off(COUNTERS) {
            self.count(device, now, fields);
        } else if self
            .measured
            .is_none_or(|at| now.saturating_duration_since(at) >= SLOW_EVERY)
        {
            self.measured = Some(now);
            let mut measure = |counter| {
                let kilobytes = fields.ask(MEASURED, || device.pcie_throughput(counter))?;
                fields.within(MEASURED, f64::from(kilobytes) * 1024.0, MOST_BYTES_S)
            };
            self.last = (measure(PcieUtilCounter::Receive), measure(PcieUtilCounter::Send));
        }
        (into.pcie_rx_bytes_s, into.pcie_tx_bytes_s) = self.last;
    }

    fn count(&mut self, device: &Device<'_>, now: Instant, fields: &mut Fields) {
        let counters = fields.ask(COUNTERS, || {
            let ids = [
                FieldId(NVML_FI_DEV_PCIE_COUNT_RX_BYTES),
                FieldId(NVML_FI_DEV_PCIE_COUNT_TX_BYTES),
            ];
            let mut values = device.field_values_for(&ids)?.into_iter();
            let mut next = || -> Result<u64, NvmlError> {
                match values.next().ok_or(NvmlError::NotSupported)??.value? {
                    SampleValue::U64(value) => Ok(value),
                    SampleValue::U32(value) => Ok(value.into()),
                    _ => Err(NvmlError::NotSupported),
                }
            };
            Ok::<_, NvmlError>((next()?, next()?))
        });
        let Some((received, sent)) = counters else {
            return;
        };
        let before = self.before.replace((received, sent, now));
        let Some((received_before, sent_before, at)) = before else {
            return;
        };
        let seconds = now.saturating_duration_since(at).as_secs_f64();
        let mut rate = |before: u64, now: u64| {
            let grown = now.checked_sub(before).filter(|_| seconds > 0.0)?;
            fields.within(COUNTERS, (grown as f64 / seconds).round(), MOST_BYTES_S)
        };
        self.last = (rate(received_before, received), rate(sent_before, sent));
    }
}
