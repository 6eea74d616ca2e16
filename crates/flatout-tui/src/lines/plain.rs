//! Plain lines: one a GPU and one for the host at every tick, columns in fixed places so that the eye can run down.

use super::Format;
use crate::watch::Moment;
use flatout_core::{Language, message, units};
use flatout_diagnose::verdict::utilisation_of_tick;
use flatout_record::{Event, EventKind, GpuInfo, GpuSample, HostSample};
use flatout_report::text::throttle_name;
use flatout_report::text::width::{pad, pad_left};

pub struct Plain {
    pub language: Language,
}

impl Format for Plain {
    fn tick(&mut self, moment: &Moment) -> String {
        let sample = &moment.tick.sample;
        let time = pad_left(&format!("{:.1} s", sample.t), 9);
        let mut text = String::new();
        for event in &moment.tick.events {
            if let Some(said) = self.event(event) {
                text += &format!("{time}  {said}\n");
            }
        }
        for (index, gpu) in &sample.gpus {
            text += &format!("{time}  {}\n", self.gpu(*index, gpu, moment.info.gpus.get(index)));
        }
        if !sample.host.is_empty() {
            text += &format!("{time}  {}\n", self.host(&sample.host));
        }
        text
    }
}

impl Plain {
    fn gpu(&self, index: u32, gpu: &GpuSample, info: Option<&GpuInfo>) -> String {
        let percent = |value: Option<f64>| {
            pad_left(
                &value.map_or_else(|| "–".into(), |value| format!("{:.0}%", value * 100.0)),
                4,
            )
        };
        let mut parts = vec![format!("GPU {index:<2} {}", percent(utilisation_of_tick(gpu)))];
        for (name, value) in [
            ("SM", gpu.sm_activity),
            ("TC", gpu.tensor_activity),
            ("DRAM", gpu.dram_activity),
        ] {
            if value.is_some() {
                parts.push(format!("{name}{}", percent(value)));
            }
        }
        parts.push(pad_left(&memory(gpu, info), 13));
        parts.push(pad_left(&power(gpu), 9));
        if let (Some(power), Some(limit)) = (gpu.power_w, gpu.power_limit_w.filter(|limit| *limit > 0.0)) {
            parts.push(percent(Some(power / limit)));
        }
        parts.push(pad_left(
            &gpu.temp_c
                .map_or_else(|| "–".into(), |celsius| format!("{celsius:.0}°C")),
            5,
        ));
        parts.push(pad_left(
            &gpu.sm_clock_mhz
                .map_or_else(|| "–".into(), |clock| format!("{clock:.0}MHz")),
            7,
        ));
        if let Some(clock) = gpu.mem_clock_mhz {
            let clock = pad_left(&format!("{clock:.0}MHz"), 7);
            parts.push(
                message!(en: "memory {clock}", zh: "显存 {clock}")
                    .get(self.language)
                    .to_owned(),
            );
        }
        let reasons = gpu.throttle.as_deref().unwrap_or_default().iter();
        let reasons: Vec<String> = reasons
            .map(|reason| throttle_name(reason).get(self.language).to_owned())
            .collect();
        parts.push(reasons.join("+"));
        parts.join("  ").trim_end().to_owned()
    }

    fn host(&self, host: &HostSample) -> String {
        let title = pad(message!(en: "host", zh: "主机").get(self.language), 6);
        let mut parts = Vec::new();
        let percent = |value: f64| format!("{:.0}%", value * 100.0);
        if let Some(busy) = host.cpu_util.map(percent) {
            parts.push(format!("CPU {}", pad_left(&busy, 4)));
        }
        if let Some(wait) = host.iowait.map(percent) {
            parts.push(
                message!(en: "I/O wait {wait}", zh: "I/O 等待 {wait}")
                    .get(self.language)
                    .to_owned(),
            );
        }
        if let (Some(total), Some(available)) = (host.mem_total_bytes, host.mem_available_bytes) {
            let (used, total) = (gib(total.saturating_sub(available)), gib(total));
            parts.push(
                message!(en: "memory {used}/{total} GiB", zh: "内存 {used}/{total} GiB")
                    .get(self.language)
                    .to_owned(),
            );
        }
        if let (Some(read), Some(write)) = (host.disk_read_bytes_s, host.disk_write_bytes_s) {
            let (read, write) = (units::bytes(read), units::bytes(write));
            parts.push(
                message!(en: "disk read {read}/s, write {write}/s", zh: "磁盘读 {read}/s，写 {write}/s")
                    .get(self.language)
                    .to_owned(),
            );
        }
        format!("{title} {}", parts.join("  "))
    }

    fn event(&self, event: &Event) -> Option<String> {
        let said = match &event.kind {
            EventKind::GpuLost { gpu, message } => {
                message!(en: "lost contact with GPU {gpu}: {message}", zh: "GPU {gpu} 已掉线：{message}")
            }
            EventKind::Lost { lines, message } => {
                message!(en: "{lines} lines of the record were lost: {message}", zh: "记录丢失 {lines} 行：{message}")
            }
            EventKind::OutOfMemory { message, .. } => {
                message!(en: "out of memory: {message}", zh: "显存不足：{message}")
            }
            EventKind::Note { source, text } => message!(en: "{source}: {text}", zh: "{source}：{text}"),
            _ => return None,
        };
        Some(flatout_report::text::width::printable(said.get(self.language)))
    }
}

/// `61.2`, `141`.
pub fn gib(bytes: u64) -> String {
    units::significant(bytes as f64 / f64::from(1 << 30))
}

/// `61.2/141 GiB`; the total from the description, else from what is free.
pub fn memory(gpu: &GpuSample, info: Option<&GpuInfo>) -> String {
    let Some(used) = gpu.mem_used_bytes else {
        return "–".into();
    };
    match memory_total(gpu, info) {
        Some(total) => format!("{}/{} GiB", gib(used), gib(total)),
        None => format!("{} GiB", gib(used)),
    }
}

/// `598/700W`.
pub fn power(gpu: &GpuSample) -> String {
    match (gpu.power_w, gpu.power_limit_w) {
        (Some(power), Some(limit)) => format!("{power:.0}/{limit:.0}W"),
        (Some(power), None) => format!("{power:.0}W"),
        _ => "–".into(),
    }
}

/// From the description, else from what is free.
pub fn memory_total(gpu: &GpuSample, info: Option<&GpuInfo>) -> Option<u64> {
    let described = info.and_then(|info| info.mem_total_bytes);
    described.or_else(|| Some(gpu.mem_used_bytes?.saturating_add(gpu.mem_free_bytes?)))
}
