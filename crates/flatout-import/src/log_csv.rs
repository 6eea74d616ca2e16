//! Our own CSV: one row a GPU and tick, for spreadsheets and other tools. The columns bear the record's names and units;
//! an empty field is unknown, never 0. The importers read it back.

use flatout_record::{GpuSample, HostSample, Sample};
use std::fmt::Write;

/// How one column is filled.
type Field<T> = (&'static str, fn(&T) -> Option<f64>);

/// Names and order of the GPU's columns, as in [`GpuSample`].
const GPU: &[Field<GpuSample>] = &[
    ("util", |gpu| gpu.util),
    ("mem_util", |gpu| gpu.mem_util),
    ("sm_activity", |gpu| gpu.sm_activity),
    ("sm_occupancy", |gpu| gpu.sm_occupancy),
    ("tensor_activity", |gpu| gpu.tensor_activity),
    ("dram_activity", |gpu| gpu.dram_activity),
    ("mem_used_bytes", |gpu| {
        gpu.mem_used_bytes.map(|bytes| bytes as f64)
    }),
    ("mem_free_bytes", |gpu| {
        gpu.mem_free_bytes.map(|bytes| bytes as f64)
    }),
    ("power_w", |gpu| gpu.power_w),
    ("power_limit_w", |gpu| gpu.power_limit_w),
    ("energy_j", |gpu| gpu.energy_j),
    ("temp_c", |gpu| gpu.temp_c),
    ("sm_clock_mhz", |gpu| gpu.sm_clock_mhz),
    ("mem_clock_mhz", |gpu| gpu.mem_clock_mhz),
    ("pcie_rx_bytes_s", |gpu| gpu.pcie_rx_bytes_s),
    ("pcie_tx_bytes_s", |gpu| gpu.pcie_tx_bytes_s),
    ("nvlink_rx_bytes_s", |gpu| gpu.nvlink_rx_bytes_s),
    ("nvlink_tx_bytes_s", |gpu| gpu.nvlink_tx_bytes_s),
];

/// The machine's columns, the same in all rows of a tick. `host_` keeps them apart from the GPU's.
const HOST: &[Field<HostSample>] = &[
    ("host_cpu_util", |host| host.cpu_util),
    ("host_iowait", |host| host.iowait),
    ("host_run_queue", |host| host.run_queue),
    ("host_mem_available_bytes", |host| {
        host.mem_available_bytes.map(|bytes| bytes as f64)
    }),
    ("host_psi_io", |host| host.psi_io),
    ("host_disk_read_bytes_s", |host| host.disk_read_bytes_s),
    ("host_disk_write_bytes_s", |host| host.disk_write_bytes_s),
    ("host_disk_busy", |host| host.disk_busy),
];

/// `t,unix_ms,gpu,util,…,throttle,host_cpu_util,…` with a newline.
pub fn header() -> String {
    let mut text = String::from("t,unix_ms,gpu");
    for name in GPU
        .iter()
        .map(|(name, _)| *name)
        .chain(["throttle"])
        .chain(HOST.iter().map(|(name, _)| *name))
    {
        let _ = write!(text, ",{name}");
    }
    text + "\n"
}

/// A GPU that says that nothing holds its clocks down; one that says nothing has an empty field.
pub(crate) const NOT_THROTTLED: &str = "none";

/// The rows of a tick. Without a GPU there is one row with an empty `gpu`. Several throttle reasons are joined by `+`.
pub fn rows(started_unix_ms: u64, sample: &Sample) -> String {
    let mut text = String::new();
    let unix_ms = started_unix_ms as f64 + sample.t * 1000.0;
    let blank = GpuSample::default();
    let mut row = |index: Option<u32>, gpu: &GpuSample| {
        let _ = write!(text, "{:.3},{unix_ms:.0},", sample.t);
        let _ = index.map(|index| write!(text, "{index}"));
        GPU.iter().for_each(|(_, get)| number(&mut text, get(gpu)));
        let reasons = match gpu.throttle.as_deref() {
            None => String::new(),
            Some([]) => NOT_THROTTLED.into(),
            Some(reasons) => reasons.join("+"),
        };
        let _ = write!(text, ",{}", reasons.replace([',', '\n', '\r', '"'], "_"));
        HOST.iter()
            .for_each(|(_, get)| number(&mut text, get(&sample.host)));
        text.push('\n');
    };
    for (index, gpu) in &sample.gpus {
        row(Some(*index), gpu);
    }
    if sample.gpus.is_empty() {
        row(None, &blank);
    }
    text
}

fn number(text: &mut String, value: Option<f64>) {
    text.push(',');
    if let Some(value) = value.filter(|value| value.is_finite()) {
        let rounded = (value * 1e4).round() / 1e4;
        let _ = write!(text, "{rounded}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_headers_columns_and_leaves_the_unknown_empty() {
        let gpu = GpuSample {
            util: Some(0.97),
            mem_used_bytes: Some(1 << 40),
            throttle: Some(vec!["idle".into(), "a,b".into()]),
            ..GpuSample::default()
        };
        let free = GpuSample {
            throttle: Some(Vec::new()),
            ..GpuSample::default()
        };
        let sample = Sample {
            t: 1.5,
            gpus: [(0, gpu), (3, GpuSample::default()), (4, free)].into(),
            ..Sample::default()
        };
        let text = header() + &rows(1000, &sample);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
        let column = |name: &str| lines[0].iter().position(|known| *known == name).unwrap();
        assert_eq!(lines[1][..3], ["1.500", "2500", "0"]);
        assert_eq!(lines[1][column("util")], "0.97");
        assert_eq!(lines[1][column("mem_used_bytes")], "1099511627776");
        assert_eq!(lines[1][column("throttle")], "idle+a_b");
        assert_eq!((lines[2][column("util")], lines[2][column("throttle")]), ("", ""));
        assert_eq!(lines[3][column("throttle")], "none");
        assert_eq!(rows(0, &Sample::default()).lines().count(), 1);
    }
}
