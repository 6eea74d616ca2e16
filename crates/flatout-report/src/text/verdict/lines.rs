//! The numbers of one GPU, one topic a line.

use super::Page;
use crate::text::width::{pad, wrap};
use crate::text::{Tone, throttle_name};
use flatout_core::{Message, message, units};
use flatout_diagnose::verdict::{Dips, GpuVerdict, Utilisation};

const LABEL_CELLS: usize = 13;

impl Page {
    pub(super) fn numbers(&self, gpu: &GpuVerdict) -> String {
        let mut text = String::new();
        if let Some(utilisation) = &gpu.utilisation {
            text += &self.line(message!(en: "utilization", zh: "利用率"), spread(utilisation));
            text += &self.line(Message::default(), shares(utilisation));
            text += &self.line(message!(en: "dips", zh: "下跌"), dips(&utilisation.dips));
        }
        if let Some(activity) = activity(gpu) {
            text += &self.line(message!(en: "activity", zh: "活跃度"), activity);
        }
        if let Some(power) = gpu.power {
            let (mean, peak) = (units::significant(power.mean_w), units::significant(power.max_w));
            let said = match (
                power.limit_w.map(units::significant),
                power.of_limit.map(units::percent),
            ) {
                (Some(limit), Some(share)) => {
                    message!(en: "mean {mean} W of {limit} W ({share}), peak {peak} W", zh: "平均 {mean} W / {limit} W（{share}），峰值 {peak} W")
                }
                _ => {
                    message!(en: "mean {mean} W, peak {peak} W, limit unknown", zh: "平均 {mean} W，峰值 {peak} W，上限未知")
                }
            };
            text += &self.line(message!(en: "power", zh: "功耗"), said);
        }
        if let Some(memory) = gpu.memory {
            let peak = units::bytes(memory.peak_bytes as f64);
            let said = match memory.total_bytes.filter(|total| *total > 0) {
                Some(total) => {
                    let share = units::percent(memory.peak_bytes as f64 / total as f64);
                    let total = units::bytes(total as f64);
                    message!(en: "peak {peak} of {total} ({share})", zh: "峰值 {peak} / {total}（{share}）")
                }
                None => message!(en: "peak {peak}", zh: "峰值 {peak}"),
            };
            text += &self.line(message!(en: "memory", zh: "显存"), said);
        }
        if let Some(temperature) = gpu.temperature {
            let (mean, max) = (
                units::significant(temperature.mean_c),
                units::significant(temperature.max_c),
            );
            text += &self.line(
                message!(en: "temperature", zh: "温度"),
                message!(en: "mean {mean} °C, hottest {max} °C", zh: "平均 {mean} °C，最高 {max} °C"),
            );
        }
        text += &self.line(message!(en: "throttling", zh: "降频"), throttling(gpu));
        if let Some(energy) = gpu.energy {
            let (joules, watt_hours) = (
                units::energy(energy.joules),
                units::significant(energy.joules / 3600.0),
            );
            let said = if energy.counted {
                message!(en: "{joules} ({watt_hours} Wh)", zh: "{joules}（合 {watt_hours} Wh）")
            } else {
                message!(en: "{joules} ({watt_hours} Wh), integrated from power readings", zh: "{joules}（{watt_hours} Wh），由功耗读数累加")
            };
            text += &self.line(message!(en: "energy", zh: "能耗"), said);
        }
        text
    }

    fn line(&self, label: Message, said: Message) -> String {
        let lines = wrap(said.get(self.language), self.width - LABEL_CELLS - 2);
        let mut text = String::new();
        for (index, line) in lines.iter().enumerate() {
            let label = if index == 0 { label.get(self.language) } else { "" };
            text += &format!(
                "  {}{line}\n",
                self.paint.tone(Tone::Quiet, &pad(label, LABEL_CELLS))
            );
        }
        text
    }
}

fn spread(utilisation: &Utilisation) -> Message {
    let spread = &utilisation.spread;
    let percent = units::percent;
    let (mean, std) = (percent(spread.mean), units::significant(spread.std * 100.0));
    if spread.count < 2 {
        return message!(en: "{mean}, from a single reading: fluctuation unknown", zh: "{mean}，只读到一次，无法判断是否稳定");
    }
    let (p5, p50, p95) = (percent(spread.p5), percent(spread.p50), percent(spread.p95));
    let (min, max) = (percent(spread.min), percent(spread.max));
    message!(
        en: "mean {mean} ± {std} points · p5 {p5} · p50 {p50} · p95 {p95} · range {min}–{max}",
        zh: "平均 {mean} ± {std} 个百分点 · p5 {p5} · p50 {p50} · p95 {p95} · 范围 {min}–{max}"
    )
}

fn shares(utilisation: &Utilisation) -> Message {
    let (ten, fifty, good) = (
        units::percent(utilisation.below_10),
        units::percent(utilisation.below_50),
        units::percent(utilisation.below_85),
    );
    message!(
        en: "share of time below 10%: {ten}, below 50%: {fifty}, below 85%: {good}",
        zh: "时间占比：低于 10% 为 {ten}，低于 50% 为 {fifty}，低于 85% 为 {good}"
    )
}

fn dips(dips: &Dips) -> Message {
    let (Some(length), Some(depth)) = (dips.length_s, dips.depth) else {
        return message!(en: "none", zh: "无");
    };
    let count = dips.count;
    let (length, depth) = (units::duration(length), units::percent(depth));
    match dips.period_s.map(units::duration) {
        Some(period) => message!(
            en: "{count}, one every {period}, each about {length}, down to {depth}",
            zh: "{count} 次，每 {period} 一次，每次约 {length}，最低约 {depth}"
        ),
        // Fewer than four say nothing about a period.
        None if count < 4 => message!(
            en: "{count}, each about {length}, down to {depth}",
            zh: "{count} 次，每次约 {length}，最低约 {depth}"
        ),
        None => message!(
            en: "{count}, irregular, each about {length}, down to {depth}",
            zh: "{count} 次，无规律，每次约 {length}，最低约 {depth}"
        ),
    }
}

fn activity(gpu: &GpuVerdict) -> Option<Message> {
    let sm = units::percent(gpu.sm_activity?);
    let rest = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), units::percent);
    let (tensor, dram) = (rest(gpu.tensor_activity), rest(gpu.dram_activity));
    Some(
        message!(en: "SM {sm} · tensor cores {tensor} · DRAM {dram}", zh: "SM {sm} · Tensor Core {tensor} · 显存带宽 {dram}"),
    )
}

fn throttling(gpu: &GpuVerdict) -> Message {
    if !gpu.throttle_known {
        return message!(en: "unknown", zh: "未知");
    }
    if gpu.throttle_s.is_empty() {
        return message!(en: "none", zh: "无");
    }
    let mut message = Message::default();
    for (reason, seconds) in &gpu.throttle_s {
        let (name, time) = (throttle_name(reason), units::duration(*seconds));
        let comma = if message.is_empty() {
            ("", "")
        } else {
            (", ", "，")
        };
        message.en += &format!("{}{} {time}", comma.0, name.en);
        message.zh += &format!("{}{} {time}", comma.1, name.zh);
    }
    message
}
