//! The verdict as a person reads it: the numbers, then a mark for each aspect with its threshold beside it.

use super::width::{cut, printable, wrap};
use super::{Align, Paint, Table, Tone};
use flatout_core::{Language, Message, message, units};
use flatout_diagnose::verdict::{Aspect, GpuVerdict, HostVerdict, Mark, Status, Unit, Verdict};

mod lines;
mod overview;

/// More GPUs than this are shown as a table, one row each.
const MOST_IN_FULL: usize = 2;

pub fn verdict(verdict: &Verdict, language: Language, width: usize, colour: bool) -> String {
    let page = Page {
        language,
        width: width.max(40),
        paint: Paint { colour },
    };
    let mut text = page.head(verdict);
    if verdict.gpus.len() > MOST_IN_FULL {
        text += &page.overview(verdict);
    } else {
        for (index, gpu) in &verdict.gpus {
            text += &page.gpu(*index, gpu);
        }
    }
    text + &page.host(&verdict.host)
}

struct Page {
    language: Language,
    width: usize,
    paint: Paint,
}

impl Page {
    fn say(&self, message: Message) -> String {
        message.get(self.language).to_owned()
    }

    fn head(&self, verdict: &Verdict) -> String {
        let (time, ticks) = (units::duration(verdict.duration_s), verdict.ticks);
        let head = match ticks {
            1 => message!(en: "Verdict after one sample", zh: "一个采样的结论"),
            _ => {
                message!(en: "Verdict after {time} ({ticks} samples)", zh: "{time} 的结论（{ticks} 个采样）")
            }
        };
        let mut text = format!("{}\n", self.paint.tone(Tone::Strong, &self.say(head)));
        if verdict.missed_s >= 1.0 {
            let missed = units::duration(verdict.missed_s);
            text += &self.paragraph(&self.say(message!(
                en: "no samples for {missed}: the machine was asleep or too busy; that time is not judged",
                zh: "有 {missed} 没有采样：机器休眠或过忙；这段时间不作判断"
            )));
        }
        if verdict.gpus.is_empty() {
            text += &self.paragraph(&self.say(message!(en: "no GPU was seen", zh: "没有看到 GPU")));
        }
        text
    }

    fn paragraph(&self, text: &str) -> String {
        wrap(text, self.width - 2)
            .iter()
            .map(|line| format!("  {line}\n"))
            .collect()
    }

    fn gpu(&self, index: u32, gpu: &GpuVerdict) -> String {
        let name = printable(gpu.name.as_deref().unwrap_or(""));
        let title = format!("GPU {index}  {name}");
        let mut text = format!("\n{}\n", self.paint.tone(Tone::Strong, title.trim_end()));
        text += &self.numbers(gpu);
        text.push('\n');
        text += &self.marks(&gpu.marks);
        for note in &gpu.notes {
            text += &self.paragraph(note.message.get(self.language));
        }
        text
    }

    fn marks(&self, marks: &[Mark]) -> String {
        let mut table =
            Table::new(&[Align::Left, Align::Left, Align::Right, Align::Left, Align::Left]).indented(2);
        for mark in marks {
            let (sign, tone) = sign(mark.status);
            let name = self.say(aspect_name(mark.aspect));
            let value = self.say(mark_value(mark));
            let limit = self.say(mark_limit(mark));
            let word = self.say(status_word(mark));
            table.toned_row([
                (sign, Some(tone)),
                (&name, None),
                (&value, Some(tone)),
                (&limit, Some(Tone::Quiet)),
                (&word, Some(tone)),
            ]);
        }
        table.render(self.paint)
    }

    fn host(&self, host: &HostVerdict) -> String {
        let mut parts = Vec::new();
        if let Some(cpu) = &host.cpu {
            let (mean, p95) = (units::percent(cpu.mean), units::percent(cpu.p95));
            parts.push(message!(en: "CPU mean {mean}, p95 {p95}", zh: "CPU 平均 {mean}，p95 {p95}"));
        }
        if let Some(wait) = host.iowait_mean.map(units::percent) {
            parts.push(message!(en: "I/O wait {wait}", zh: "I/O 等待 {wait}"));
        }
        if let Some(peak) = host.memory_peak.map(units::percent) {
            parts.push(message!(en: "memory peak {peak}", zh: "内存峰值 {peak}"));
        }
        if let Some(read) = host.disk_read_mean_bytes_s.map(units::bytes) {
            parts.push(message!(en: "disk read {read}/s", zh: "磁盘读 {read}/s"));
        }
        if let Some(busy) = host.disk_busy_mean.map(units::percent) {
            parts.push(message!(en: "disk busy {busy}", zh: "磁盘忙 {busy}"));
        }
        if parts.is_empty() {
            return String::new();
        }
        let all: Vec<&str> = parts.iter().map(|part| part.get(self.language)).collect();
        let title = self.say(message!(en: "Host", zh: "主机"));
        format!(
            "\n{}\n{}",
            self.paint.tone(Tone::Strong, &title),
            self.paragraph(&all.join(" · "))
        )
    }
}

fn value(value: f64, unit: Unit) -> Message {
    match unit {
        Unit::Ratio => Message::verbatim(units::percent(value)),
        Unit::Points => {
            let points = units::significant(value);
            message!(en: "{points} points", zh: "{points} 个百分点")
        }
        Unit::Celsius => Message::verbatim(format!("{} °C", units::significant(value))),
    }
}

pub(crate) fn mark_value(mark: &Mark) -> Message {
    let unknown = || message!(en: "unknown", zh: "未知");
    mark.value.map_or_else(unknown, |known| value(known, mark.unit))
}

/// `≥ 85%`.
pub(crate) fn mark_limit(mark: &Mark) -> Message {
    let side = if mark.at_least { "≥" } else { "<" };
    let limit = value(mark.threshold, mark.unit);
    Message {
        en: format!("{side} {}", limit.en),
        zh: format!("{side} {}", limit.zh),
    }
}

pub fn aspect_name(aspect: Aspect) -> Message {
    match aspect {
        Aspect::Utilisation => message!(en: "utilization", zh: "利用率"),
        Aspect::Fluctuation => message!(en: "fluctuation", zh: "波动"),
        Aspect::Power => message!(en: "power vs limit", zh: "功耗占上限"),
        Aspect::Temperature => message!(en: "temperature", zh: "温度"),
        Aspect::Memory => message!(en: "peak memory", zh: "显存峰值"),
        Aspect::Throttling => message!(en: "throttled", zh: "降频时间"),
    }
}

pub(crate) fn status_word(mark: &Mark) -> Message {
    match (mark.status, mark.aspect) {
        (Status::Good, _) => message!(en: "good", zh: "良好"),
        (Status::Unknown, _) if mark.value.is_some() => {
            message!(en: "too few samples to judge", zh: "采样太少，无法判断")
        }
        (Status::Unknown, _) => Message::default(),
        (_, Aspect::Utilisation | Aspect::Power) => message!(en: "low", zh: "偏低"),
        (_, Aspect::Fluctuation) => message!(en: "fluctuating", zh: "波动大"),
        (_, Aspect::Temperature) => message!(en: "hot", zh: "过热"),
        (_, Aspect::Memory) => message!(en: "nearly full", zh: "接近用满"),
        (_, Aspect::Throttling) => message!(en: "throttled", zh: "受限"),
    }
}

/// Different signs, so that it can be read without colour.
pub fn sign(status: Status) -> (&'static str, Tone) {
    match status {
        Status::Good => ("✓", Tone::Good),
        Status::Warning => ("!", Tone::Warning),
        Status::Bad => ("✗", Tone::Bad),
        Status::Unknown => ("?", Tone::Quiet),
    }
}

fn short_name(gpu: &GpuVerdict, cells: usize) -> String {
    let name = printable(gpu.name.as_deref().unwrap_or(""));
    cut(name.trim_start_matches("NVIDIA "), cells)
}

#[cfg(test)]
mod tests;
