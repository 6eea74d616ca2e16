//! Many GPUs at a glance: one row each, the worst marks named, what is the same for all said once.

use super::{Page, aspect_name, mark_limit, short_name, sign};
use crate::text::{Align, Table, Tone};
use flatout_core::{Message, message, units};
use flatout_diagnose::verdict::{GpuVerdict, Status, Verdict};

impl Page {
    pub(super) fn overview(&self, verdict: &Verdict) -> String {
        use Align::{Left, Right};
        let mut table =
            Table::new(&[Right, Left, Right, Right, Right, Right, Right, Right, Right, Left]).indented(1);
        let head = [
            message!(en: "GPU", zh: "GPU"),
            Message::default(),
            message!(en: "util", zh: "利用率"),
            message!(en: "±", zh: "±"),
            message!(en: "p5", zh: "p5"),
            message!(en: "p95", zh: "p95"),
            message!(en: "dips", zh: "下跌"),
            message!(en: "power", zh: "功耗"),
            message!(en: "memory", zh: "显存"),
            message!(en: "°C", zh: "°C"),
        ]
        .map(|title| self.say(title));
        table.toned_row(head.each_ref().map(|title| (title.as_str(), Some(Tone::Quiet))));
        for (index, gpu) in &verdict.gpus {
            let cells = cells(*index, gpu);
            table.toned_row(cells.each_ref().map(|(text, tone)| (text.as_str(), *tone)));
        }
        format!("\n{}\n{}", table.render(self.paint), self.faults(verdict))
    }

    /// One line an aspect that is not good somewhere, naming the GPUs.
    fn faults(&self, verdict: &Verdict) -> String {
        let Some(first) = verdict.gpus.values().next() else {
            return String::new();
        };
        let mut table = Table::new(&[Align::Left, Align::Left, Align::Left, Align::Left]).indented(2);
        for (position, mark) in first.marks.iter().enumerate() {
            let with = |status: Status| {
                let marks = verdict.gpus.iter().filter(move |(_, gpu)| {
                    gpu.marks.get(position).is_some_and(|mark| mark.status == status)
                });
                marks
                    .map(|(index, _)| index.to_string())
                    .collect::<Vec<_>>()
                    .join(",")
            };
            let limit = self.say(mark_limit(mark));
            let name = self.say(aspect_name(mark.aspect));
            for status in [Status::Good, Status::Warning, Status::Bad, Status::Unknown] {
                let gpus = with(status);
                if gpus.is_empty() {
                    continue;
                }
                let (sign, tone) = sign(status);
                let everywhere = gpus.split(',').count() == verdict.gpus.len();
                let whom = if everywhere {
                    self.say(message!(en: "all GPUs", zh: "全部 GPU"))
                } else {
                    format!("GPU {gpus}")
                };
                table.toned_row([
                    (sign, Some(tone)),
                    (&name, None),
                    (&limit, Some(Tone::Quiet)),
                    (&whom, Some(tone)),
                ]);
            }
        }
        let mut text = table.render(self.paint);
        for (index, gpu) in &verdict.gpus {
            for note in gpu.notes.iter().filter(|note| note.id != "power-cap") {
                text += &self.paragraph(&format!("GPU {index}: {}", note.message.get(self.language)));
            }
        }
        text
    }
}

fn cells(index: u32, gpu: &GpuVerdict) -> [(String, Option<Tone>); 10] {
    let unknown = || "–".to_owned();
    let tone = |position: usize| gpu.marks.get(position).map(|mark| sign(mark.status).1);
    let utilisation = gpu.utilisation.as_ref();
    let percent = |value: Option<f64>| value.map_or_else(unknown, units::percent);
    let spread = utilisation.map(|utilisation| utilisation.spread);
    let memory = gpu.memory.and_then(|memory| {
        Some(memory.peak_bytes as f64 / memory.total_bytes.filter(|total| *total > 0)? as f64)
    });
    [
        (index.to_string(), None),
        (short_name(gpu, 18), Some(Tone::Quiet)),
        (percent(spread.map(|spread| spread.mean)), tone(0)),
        (
            spread.map_or_else(unknown, |spread| units::significant(spread.std * 100.0)),
            tone(1),
        ),
        (percent(spread.map(|spread| spread.p5)), None),
        (percent(spread.map(|spread| spread.p95)), None),
        (
            utilisation.map_or_else(unknown, |utilisation| utilisation.dips.count.to_string()),
            None,
        ),
        (percent(gpu.power.and_then(|power| power.of_limit)), tone(2)),
        (percent(memory), tone(4)),
        (
            gpu.temperature
                .map_or_else(unknown, |temperature| units::significant(temperature.max_c)),
            tone(3),
        ),
    ]
}
