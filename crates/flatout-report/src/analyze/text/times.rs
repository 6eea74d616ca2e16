//! How long epochs and their parts took.

use super::Page;
use crate::analyze::{Epochs, Section};
use crate::text::{Align, Table, Tone};
use flatout_core::{Message, message, units};
use flatout_import::training_log::{Measured, Part, Times};

/// Epochs shown one by one; of more, the first and the last.
const MOST_EPOCHS: usize = 12;
const BAR_CELLS: f64 = 30.0;

impl Page {
    pub(super) fn epochs(&self, section: &Section) -> String {
        if section.kind == "gpu-log" {
            return String::new();
        }
        let title = message!(en: "Time per epoch", zh: "每个 epoch 的时间");
        let mut text = format!("\n{}", self.head(self.say(&title)));
        let Some(epochs) = &section.epochs else {
            let named = section.training.as_ref().and_then(|log| log.times.last_epoch);
            let unknown = match named {
                Some(last) => {
                    message!(en: "unknown: the log mentions epochs up to {last}, but no line gives their time", zh: "未知：提到了第 {last} 个 epoch，但没有任何一行给出时间")
                }
                None => message!(en: "unknown: the log mentions no epoch", zh: "未知：没有提到任何 epoch"),
            };
            return text + &self.paragraph(&unknown, 2);
        };
        text += &self.paragraph(&summary(epochs), 2);
        text + &self.bars(epochs)
    }

    fn bars(&self, epochs: &Epochs) -> String {
        let longest = epochs.seconds.max;
        let mut table = Table::new(&[Align::Right, Align::Right, Align::Left]).indented(2);
        let count = epochs.all.len();
        for (index, epoch) in epochs.all.iter().enumerate() {
            let hidden = count > MOST_EPOCHS && index >= MOST_EPOCHS / 2 && index < count - MOST_EPOCHS / 2;
            if hidden {
                if index == MOST_EPOCHS / 2 {
                    table.row(["…", "", ""]);
                }
                continue;
            }
            let cells = (epoch.seconds / longest * BAR_CELLS).round() as usize;
            table.toned_row([
                (&epoch.number.to_string(), None),
                (&units::duration(epoch.seconds), Some(Tone::Strong)),
                (&"█".repeat(cells), Some(Tone::Quiet)),
            ]);
        }
        table.render(self.paint)
    }

    pub(super) fn parts(&self, times: &Times) -> String {
        if times.parts.is_empty() && times.total_s.is_none() {
            return String::new();
        }
        let mut text =
            format!(
                "\n{}",
                self.head(self.say(
                    &message!(en: "Time by phase, according to the log", zh: "各阶段时间（按日志所述）")
                ))
            );
        let mut table = Table::new(&[Align::Left, Align::Right, Align::Left]).indented(2);
        for (part, time) in &times.parts {
            let (mean, count) = (units::duration(time.mean_s()), time.count);
            let (sum, max) = (units::duration(time.sum_s), units::duration(time.max_s));
            let detail = message!(en: "{count}×, {sum} in total, longest {max}", zh: "{count} 次，共 {sum}，最长 {max}");
            table.toned_row([
                (self.say(&name(*part)), None),
                (&mean, Some(Tone::Strong)),
                (self.say(&detail), Some(Tone::Quiet)),
            ]);
        }
        if let Some(total) = times.total_s {
            let whole = message!(en: "the whole training", zh: "整个训练");
            table.toned_row([
                (self.say(&whole), None),
                (&units::duration(total), Some(Tone::Strong)),
                ("", None),
            ]);
        }
        text += &table.render(self.paint);
        text
    }
}

pub(crate) fn summary(epochs: &Epochs) -> Message {
    let seconds = &epochs.seconds;
    let count = seconds.count;
    let how = match epochs.measured {
        Measured::Said => message!(en: "reported by the program", zh: "程序自己报告"),
        Measured::Bar => message!(en: "from progress bars", zh: "来自进度条"),
        Measured::Stamps => message!(en: "from time stamps", zh: "由时间戳推算"),
    };
    let [mean, min, max] = [epochs.mean_s, seconds.min, seconds.max].map(units::duration);
    let slowest = epochs.slowest;
    if count == 1 {
        return Message {
            en: format!("one epoch: {mean} ({})", how.en),
            zh: format!("一个 epoch：{mean}（{}）", how.zh),
        };
    }
    let (en, zh) = (how.en, how.zh);
    Message {
        en: format!(
            "{count} epochs: mean {mean} without the first, from {min} to {max} (epoch {slowest}); {en}"
        ),
        zh: format!(
            "{count} 个 epoch：平均 {mean}（不含第一个），{min} 到 {max}（第 {slowest} 个最慢）；{zh}"
        ),
    }
}

pub(crate) fn name(part: Part) -> Message {
    match part {
        Part::Train => message!(en: "training", zh: "训练"),
        Part::Eval => message!(en: "evaluation", zh: "评估"),
        Part::Checkpoint => message!(en: "checkpoints", zh: "保存 checkpoint"),
        Part::Data => message!(en: "data, per step", zh: "每步取数据"),
        Part::Step => message!(en: "per step", zh: "每步"),
    }
}
