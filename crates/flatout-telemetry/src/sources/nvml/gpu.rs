//! Reading one GPU at one tick.

use super::details;
use super::gpm::Gpm;
use super::pcie::Pcie;
use super::processes::Processes;
use super::select::Chosen;
use crate::sources::fields::Fields;
use crate::sources::gpus;
use flatout_record::{EventKind, GpuInfo, GpuSample};
use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::{Clock, Sampling, TemperatureSensor};
use nvml_wrapper::enums::device::SampleValue;
use std::time::{Duration, Instant};

/// What changes slowly or costs the driver more (processes, limits, the link) is asked at most this often.
const SLOW_EVERY: Duration = Duration::from_millis(950);
/// Above these a value is the driver's error, not a measurement.
const MOST_WATTS: f64 = 20_000.0;
const MOST_DEGREES: f64 = 250.0;
const MOST_MEGAHERTZ: f64 = 100_000.0;

pub struct Gpu<'nvml> {
    chosen: Chosen<'nvml>,
    fields: Fields,
    gpm: Option<Gpm<'nvml>>,
    pcie: Pcie,
    processes: Processes,
    /// The driver's clock at the newest buffered utilisation reading, in microseconds.
    fine_seen: u64,
    slow_read: Option<Instant>,
    slow: GpuSample,
}

impl<'nvml> Gpu<'nvml> {
    pub fn new(chosen: Chosen<'nvml>, interval: Duration) -> Self {
        let mut fields = Fields::new(chosen.index);
        let gpm = Gpm::start(&chosen, &mut fields);
        Self {
            gpm,
            fields,
            pcie: Pcie::default(),
            processes: Processes::default(),
            fine_seen: driver_time_before(interval),
            slow_read: None,
            slow: GpuSample::default(),
            chosen,
        }
    }
}

impl gpus::Gpu for Gpu<'_> {
    fn index(&self) -> u32 {
        self.chosen.index
    }

    fn details(&mut self) -> GpuInfo {
        details::read(&self.chosen, &mut self.fields)
    }

    fn fields(&mut self) -> &mut Fields {
        &mut self.fields
    }

    fn read(&mut self, now: Instant, events: &mut Vec<EventKind>) -> Option<GpuSample> {
        let mut sample = GpuSample::default();
        if self.fields.lost().is_none() {
            self.read_slow(now);
            sample.clone_from(&self.slow);
            self.read_fast(&mut sample);
            match &mut self.gpm {
                Some(gpm) => gpm.read(&self.chosen, now, &mut self.fields, &mut sample),
                None => self
                    .pcie
                    .read(&self.chosen.device, now, &mut self.fields, &mut sample),
            }
            if self.gpm.as_ref().is_some_and(|gpm| !gpm.has_pcie()) {
                self.pcie
                    .read(&self.chosen.device, now, &mut self.fields, &mut sample);
            }
        }
        events.extend(self.fields.take_loss());
        self.fields.lost().is_none().then_some(sample)
    }
}

impl Gpu<'_> {
    fn read_fast(&mut self, sample: &mut GpuSample) {
        let Self { chosen, fields, .. } = self;
        let device = &chosen.device;
        let board = chosen.whole.as_ref().unwrap_or(device);
        if let Some(rates) = fields.ask("util", || device.utilization_rates()) {
            sample.util = fields.share("util", f64::from(rates.gpu));
            sample.mem_util = fields.share("mem_util", f64::from(rates.memory));
        }
        if let Some(memory) = fields.ask("memory", || device.memory_info()) {
            sample.mem_used_bytes = Some(memory.used);
            sample.mem_free_bytes = Some(memory.free);
        }
        sample.power_w = fields
            .ask("power", || board.power_usage())
            .and_then(|milliwatts| fields.within("power", f64::from(milliwatts) / 1e3, MOST_WATTS));
        sample.energy_j = fields
            .ask("energy", || board.total_energy_consumption())
            .map(|millijoules| millijoules as f64 / 1e3);
        sample.temp_c = fields
            .ask("temp", || board.temperature(TemperatureSensor::Gpu))
            .and_then(|degrees| fields.within("temp", f64::from(degrees), MOST_DEGREES));
        let clock = |kind: Clock| move || board.clock_info(kind);
        sample.sm_clock_mhz = fields
            .ask("sm_clock", clock(Clock::SM))
            .and_then(|megahertz| fields.within("sm_clock", f64::from(megahertz), MOST_MEGAHERTZ));
        sample.mem_clock_mhz = fields
            .ask("mem_clock", clock(Clock::Memory))
            .and_then(|megahertz| fields.within("mem_clock", f64::from(megahertz), MOST_MEGAHERTZ));
        sample.throttle = fields
            .ask("throttle", || board.current_throttle_reasons())
            .map(|reasons| flatout_record::throttle_names(reasons.bits()));
        sample.util_fine = fine(board, &mut self.fine_seen, fields);
    }

    fn read_slow(&mut self, now: Instant) {
        let fresh = |at: Instant| now.saturating_duration_since(at) < SLOW_EVERY;
        if self.slow_read.is_some_and(fresh) {
            return;
        }
        self.slow_read = Some(now);
        let Self { chosen, fields, .. } = self;
        let board = chosen.whole.as_ref().unwrap_or(&chosen.device);
        self.slow.power_limit_w = fields
            .ask("power_limit", || board.enforced_power_limit())
            .and_then(|milliwatts| fields.within("power_limit", f64::from(milliwatts) / 1e3, MOST_WATTS));
        self.slow.pcie_generation = fields.ask("pcie_generation", || board.current_pcie_link_gen());
        self.slow.pcie_width = fields.ask("pcie_width", || board.current_pcie_link_width());
        self.slow.processes = self.processes.read(&chosen.device, fields);
    }
}

/// The utilisation readings the driver took since the last tick, oldest first; `None` when there are none.
fn fine(board: &Device<'_>, seen: &mut u64, fields: &mut Fields) -> Option<Vec<f64>> {
    let since = *seen;
    let mut samples = fields.ask("util_fine", || board.samples(Sampling::GpuUtilization, since))?;
    samples.retain(|sample| sample.timestamp > since);
    samples.sort_by_key(|sample| sample.timestamp);
    *seen = samples.last()?.timestamp;
    let percent = |value: &SampleValue| match value {
        SampleValue::F64(value) => *value,
        SampleValue::U32(value) => f64::from(*value),
        SampleValue::U64(value) => *value as f64,
        SampleValue::I64(value) => *value as f64,
    };
    Some(
        samples
            .iter()
            .filter_map(|sample| fields.share("util_fine", percent(&sample.value)))
            .collect(),
    )
}

/// The driver stamps its readings with the wall clock; the first tick takes those of one interval only.
fn driver_time_before(interval: Duration) -> u64 {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(now.saturating_sub(interval).as_micros()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use nvml_wrapper::bitmasks::device::ThrottleReasons;

    #[test]
    fn the_record_names_every_throttle_reason_of_nvml() {
        let all = ThrottleReasons::all().bits();
        assert_eq!(
            flatout_record::throttle_bits(&flatout_record::throttle_names(u64::MAX)),
            all
        );
        for (reason, name) in [
            (ThrottleReasons::SW_POWER_CAP, "power-cap"),
            (ThrottleReasons::HW_THERMAL_SLOWDOWN, "thermal-hw"),
            (ThrottleReasons::GPU_IDLE, "idle"),
        ] {
            assert_eq!(flatout_record::throttle_names(reason.bits()), [name]);
        }
    }
}
