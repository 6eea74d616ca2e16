//! Each GPU in a row.

use super::{Markup, Writer, markup};
use crate::text::throttle_name;
use flatout_core::{Message, message, units};
use flatout_diagnose::verdict::{GpuVerdict, Verdict};

impl Writer {
    pub(crate) fn gpus(&self, verdict: &Verdict) -> Markup {
        if verdict.gpus.is_empty() {
            return Markup::default();
        }
        let head = [
            Message::verbatim("GPU"),
            message!(en: "busy", zh: "忙碌"),
            message!(en: "SM active", zh: "SM 活跃"),
            message!(en: "tensor cores", zh: "Tensor Core 活跃"),
            message!(en: "power", zh: "功耗"),
            message!(en: "peak temperature", zh: "最高温度"),
            message!(en: "peak memory", zh: "显存峰值"),
            message!(en: "energy", zh: "能耗"),
            message!(en: "throttled by", zh: "降频原因"),
        ];
        let mut rows = self.header_row(&head, 1);
        for (index, gpu) in &verdict.gpus {
            let name = gpu.name.as_deref().unwrap_or("");
            rows += markup!("<tr><td>{} {}</td>", *index, name.trim_start_matches("NVIDIA "));
            for cell in numbers(gpu) {
                rows += markup!("<td class=\"number\">{}</td>", cell);
            }
            rows += markup!("<td>{}</td></tr>\n", self.throttled(gpu));
        }
        self.section(&message!(en: "GPUs", zh: "各 GPU"), self.table(rows))
    }

    /// Titles; all but the first `left` and the last are above numbers.
    pub(crate) fn header_row(&self, titles: &[Message], left: usize) -> Markup {
        let cells: Markup = titles
            .iter()
            .enumerate()
            .map(|(index, title)| {
                let number = index >= left && index + 1 < titles.len();
                if number {
                    markup!("<th class=\"number\">{}</th>", self.say(title))
                } else {
                    markup!("<th>{}</th>", self.say(title))
                }
            })
            .collect();
        markup!("<tr>{}</tr>\n", cells)
    }

    fn throttled(&self, gpu: &GpuVerdict) -> String {
        if !gpu.throttle_known {
            return "?".to_owned();
        }
        let reasons: Vec<String> = gpu
            .throttle_s
            .iter()
            .map(|(reason, seconds)| {
                format!(
                    "{} {}",
                    self.say(&throttle_name(reason)),
                    units::duration(*seconds)
                )
            })
            .collect();
        if reasons.is_empty() {
            return "–".to_owned();
        }
        reasons.join(", ")
    }
}

/// What could not be read is `?`.
fn numbers(gpu: &GpuVerdict) -> [String; 7] {
    let unknown = || "?".to_owned();
    let share = |value: Option<f64>| value.map_or_else(unknown, units::percent);
    [
        gpu.utilisation.as_ref().map_or_else(unknown, |utilisation| {
            let spread = &utilisation.spread;
            format!("{} ± {}", units::percent(spread.mean), units::percent(spread.std))
        }),
        share(gpu.sm_activity),
        share(gpu.tensor_activity),
        gpu.power.map_or_else(unknown, |power| {
            let limit = power
                .limit_w
                .map_or_else(String::new, |limit| format!(" / {limit:.0} W"));
            format!("{:.0} W{limit}", power.mean_w)
        }),
        gpu.temperature
            .map_or_else(unknown, |temperature| format!("{:.0} °C", temperature.max_c)),
        gpu.memory.map_or_else(unknown, |memory| {
            let peak = units::bytes(memory.peak_bytes as f64);
            let total = memory.total_bytes.map(|total| units::bytes(total as f64));
            total.map_or(peak.clone(), |total| format!("{peak} / {total}"))
        }),
        gpu.energy.map_or_else(unknown, |energy| {
            format!("{} Wh", units::significant(energy.joules / 3600.0))
        }),
    ]
}
