//! GPM, on Hopper and newer: what the SMs really did between two ticks, where "utilisation" only says that some kernel ran.

use super::select::Chosen;
use crate::sources::fields::Fields;
use flatout_record::GpuSample;
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::{GpmSample, gpm_metrics_get};
use std::time::{Duration, Instant};

const FIELD: &str = "gpm";
/// Closer together than this, two samples are mostly noise.
const SHORTEST: Duration = Duration::from_millis(45);
const MEBIBYTE: f64 = 1024.0 * 1024.0;
/// 10 TB/s: more than any link there is.
const MOST_BYTES_S: f64 = 1e13;

const METRICS: [GpmMetricId; 10] = [
    GpmMetricId::SmUtil,
    GpmMetricId::SmOccupancy,
    GpmMetricId::AnyTensorUtil,
    GpmMetricId::DramBwUtil,
    GpmMetricId::Fp16Util,
    GpmMetricId::Fp32Util,
    GpmMetricId::PcieRxPerSec,
    GpmMetricId::PcieTxPerSec,
    GpmMetricId::NvlinkTotalRxPerSec,
    GpmMetricId::NvlinkTotalTxPerSec,
];

pub struct Gpm<'nvml> {
    before: Option<(GpmSample<'nvml>, Instant)>,
    /// The metrics this GPU answers.
    metrics: Vec<GpmMetricId>,
    instance: Option<u32>,
    last: GpuSample,
}

impl<'nvml> Gpm<'nvml> {
    /// `None` when the GPU has no GPM; the reason is kept.
    pub fn start(chosen: &Chosen<'nvml>, fields: &mut Fields) -> Option<Self> {
        let board = chosen.whole.as_ref().unwrap_or(&chosen.device);
        match fields.ask(FIELD, || board.gpm_support()) {
            Some(true) => {}
            Some(false) => {
                fields.give_up(
                    FIELD,
                    "not supported by this GPU (it needs Hopper or newer)".into(),
                );
                return None;
            }
            None => return None,
        }
        let instance = chosen.whole.is_some().then(|| gpu_instance(chosen)).flatten();
        if chosen.whole.is_some() && instance.is_none() {
            fields.give_up(FIELD, "the MIG slice's instance could not be read".into());
            return None;
        }
        Some(Self {
            before: None,
            metrics: METRICS.to_vec(),
            instance,
            last: GpuSample::default(),
        })
    }

    /// Whether GPM tells the PCIe traffic, so that the slow way of asking for it is not needed.
    pub fn has_pcie(&self) -> bool {
        self.metrics.contains(&GpmMetricId::PcieRxPerSec)
    }

    pub fn read(&mut self, chosen: &Chosen<'nvml>, now: Instant, fields: &mut Fields, into: &mut GpuSample) {
        let early = self
            .before
            .as_ref()
            .is_some_and(|(_, at)| now.saturating_duration_since(*at) < SHORTEST);
        if !early {
            let sample = fields.ask(FIELD, || match self.instance {
                Some(instance) => chosen
                    .whole
                    .as_ref()
                    .unwrap_or(&chosen.device)
                    .gpm_mig_sample(instance),
                None => chosen.device.gpm_sample(),
            });
            let before = sample.and_then(|sample| self.before.replace((sample, now)));
            if let (Some((before, _)), Some((after, _))) = (&before, &self.before) {
                let metrics = &self.metrics;
                let results = fields.ask(FIELD, || {
                    gpm_metrics_get(chosen.device.nvml(), before, after, metrics)
                });
                self.last = GpuSample::default();
                self.take(results.unwrap_or_default(), fields);
            }
        }
        let last = &self.last;
        into.sm_activity = last.sm_activity;
        into.sm_occupancy = last.sm_occupancy;
        into.tensor_activity = last.tensor_activity;
        into.dram_activity = last.dram_activity;
        into.fp16_activity = last.fp16_activity;
        into.fp32_activity = last.fp32_activity;
        into.pcie_rx_bytes_s = last.pcie_rx_bytes_s;
        into.pcie_tx_bytes_s = last.pcie_tx_bytes_s;
        into.nvlink_rx_bytes_s = last.nvlink_rx_bytes_s;
        into.nvlink_tx_bytes_s = last.nvlink_tx_bytes_s;
    }

    fn take(
        &mut self,
        results: Vec<Result<nvml_wrapper::struct_wrappers::gpm::GpmMetricResult, NvmlError>>,
        fields: &mut Fields,
    ) {
        let mut unsupported = Vec::new();
        for (metric, result) in self.metrics.iter().zip(results) {
            match result {
                Ok(result) => set(&mut self.last, *metric, result.value, fields),
                Err(NvmlError::NotSupported | NvmlError::InvalidArg) => unsupported.push(*metric),
                // No data between these two samples; the next two may have some.
                Err(_) => {}
            }
        }
        for metric in unsupported {
            fields.give_up(name(metric), "not supported by this GPU".into());
            self.metrics.retain(|known| *known != metric);
        }
    }
}

fn name(metric: GpmMetricId) -> &'static str {
    match metric {
        GpmMetricId::SmUtil => "sm_activity",
        GpmMetricId::SmOccupancy => "sm_occupancy",
        GpmMetricId::AnyTensorUtil => "tensor_activity",
        GpmMetricId::DramBwUtil => "dram_activity",
        GpmMetricId::Fp16Util => "fp16_activity",
        GpmMetricId::Fp32Util => "fp32_activity",
        GpmMetricId::PcieRxPerSec => "gpm_pcie_rx",
        GpmMetricId::PcieTxPerSec => "gpm_pcie_tx",
        GpmMetricId::NvlinkTotalRxPerSec => "nvlink_rx",
        _ => "nvlink_tx",
    }
}

/// Shares come in per cent, traffic in MiB a second.
fn set(sample: &mut GpuSample, metric: GpmMetricId, value: f64, fields: &mut Fields) {
    let name = name(metric);
    let slot = match metric {
        GpmMetricId::SmUtil => &mut sample.sm_activity,
        GpmMetricId::SmOccupancy => &mut sample.sm_occupancy,
        GpmMetricId::AnyTensorUtil => &mut sample.tensor_activity,
        GpmMetricId::DramBwUtil => &mut sample.dram_activity,
        GpmMetricId::Fp16Util => &mut sample.fp16_activity,
        GpmMetricId::Fp32Util => &mut sample.fp32_activity,
        traffic => {
            let bytes = fields.within(name, (value * MEBIBYTE).round(), MOST_BYTES_S);
            match traffic {
                GpmMetricId::PcieRxPerSec => sample.pcie_rx_bytes_s = bytes,
                GpmMetricId::PcieTxPerSec => sample.pcie_tx_bytes_s = bytes,
                GpmMetricId::NvlinkTotalRxPerSec => sample.nvlink_rx_bytes_s = bytes,
                _ => sample.nvlink_tx_bytes_s = bytes,
            }
            return;
        }
    };
    *slot = fields.share(name, value);
}

/// The number of a slice's GPU instance, which the wrapper does not ask for.
fn gpu_instance(chosen: &Chosen<'_>) -> Option<u32> {
    let mut id = 0;
    let lib = chosen.device.nvml().lib();
    let call = lib.nvmlDeviceGetGpuInstanceId.as_ref().ok()?;
    // SAFETY: the handle is a live device of this library, and `id` is where the driver writes one integer.
    let code = unsafe { call(chosen.device.handle(), &mut id) };
    (code == 0).then_some(id)
}
