//! A comparison for the terminal.

use super::change;
use super::{Comparison, Fate, FindingRow, Row};
use crate::text::width::{cut, printable, wrap};
use crate::text::{Align, Paint, Table, Tone};
use flatout_compare::Outcome;
use flatout_core::{Language, Message, message, units};

/// More settings than this are counted only; `--json` has them all.
const MOST_SETTINGS: usize = 30;

pub fn text(comparison: &Comparison, language: Language, width: usize, colour: bool) -> String {
    let page = Page {
        language,
        width,
        paint: Paint { colour },
    };
    let mut text = page.names(comparison);
    text += &page.figures(comparison);
    text += &page.loss(comparison);
    text += &page.findings(comparison);
    text += &page.settings(comparison);
    text.push('\n');
    for note in &comparison.notes {
        for line in wrap(note.get(language), width) {
            text += &format!("{}\n", page.paint.tone(Tone::Quiet, &line));
        }
    }
    text
}

struct Page {
    language: Language,
    width: usize,
    paint: Paint,
}

impl Page {
    fn say<'a>(&self, message: &'a Message) -> &'a str {
        message.get(self.language)
    }

    fn heading(&self, title: &Message) -> String {
        format!("\n{}\n", self.paint.tone(Tone::Strong, self.say(title)))
    }

    fn names(&self, comparison: &Comparison) -> String {
        let mut table = Table::new(&[Align::Left, Align::Left, Align::Left]);
        for run in &comparison.runs {
            let id = if run.id == run.name { "" } else { &run.id };
            table.toned_row([
                (&run.letter, Some(Tone::Strong)),
                (&cut(&printable(&run.name), 40), None),
                (&cut(&printable(id), 34), Some(Tone::Quiet)),
            ]);
        }
        table.render(self.paint)
    }

    fn figures(&self, comparison: &Comparison) -> String {
        if comparison.figures.is_empty() {
            let none = message!(en: "no measurement can be compared", zh: "没有可比较的测量值");
            return format!("\n{}\n", self.say(&none));
        }
        if comparison.runs.len() == 2 {
            return self.two(comparison);
        }
        let columns: Vec<Align> = std::iter::once(Align::Left)
            .chain(comparison.runs.iter().map(|_| Align::Right))
            .collect();
        let mut table = Table::new(&columns).indented(2);
        let head = std::iter::once((String::new(), None)).chain(
            comparison
                .runs
                .iter()
                .map(|run| (run.letter.clone(), Some(Tone::Strong))),
        );
        table.toned_cells(head);
        for row in &comparison.figures {
            let cells = row.values.iter().zip(&row.changes).map(|(value, change)| {
                let Some(value) = value else {
                    return ("?".to_owned(), Some(Tone::Quiet));
                };
                let value = row.unit.show(value.mean);
                match change {
                    None => (value, None),
                    Some(change) if change.outcome == Outcome::Noise => {
                        (format!("{value} ≈"), Some(Tone::Quiet))
                    }
                    Some(change) => (
                        format!("{value} ({})", change::show(change, row.unit)),
                        tone(change.outcome),
                    ),
                }
            });
            let name = (self.say(&row.name).to_owned(), None);
            table.toned_cells(std::iter::once(name).chain(cells));
        }
        let legend = message!(en: "  ≈ no difference from A beyond noise", zh: "  ≈ 与 A 的差异未超出噪声");
        format!(
            "\n{}{}\n",
            table.render(self.paint),
            self.paint.tone(Tone::Quiet, self.say(&legend))
        )
    }

    fn two(&self, comparison: &Comparison) -> String {
        let mut table =
            Table::new(&[Align::Left, Align::Right, Align::Right, Align::Right, Align::Left]).indented(2);
        let change = message!(en: "change", zh: "变化");
        table.toned_row([
            ("", None),
            ("A", Some(Tone::Strong)),
            ("B", Some(Tone::Strong)),
            (self.say(&change), Some(Tone::Quiet)),
            ("", None),
        ]);
        for row in &comparison.figures {
            let value = |index: usize| {
                row.values
                    .get(index)
                    .and_then(Option::as_ref)
                    .map_or_else(|| "?".to_owned(), |figure| row.unit.show(figure.mean))
            };
            let (changed, word, tone) = self.change(row);
            table.toned_row([
                (self.say(&row.name), None),
                (&value(0), None),
                (&value(1), None),
                (&changed, tone),
                (&word, tone.or(Some(Tone::Quiet))),
            ]);
        }
        format!("\n{}", table.render(self.paint))
    }

    fn change(&self, row: &Row) -> (String, String, Option<Tone>) {
        let Some(Some(change)) = row.changes.get(1) else {
            return (String::new(), String::new(), None);
        };
        let word = self.say(&change.outcome.name()).to_owned();
        if change.outcome == Outcome::Noise {
            return ("≈".to_owned(), word, Some(Tone::Quiet));
        }
        let interval = change::show_interval(change, row.unit)
            .map_or_else(String::new, |interval| format!(" ({interval})"));
        (
            change::show(change, row.unit),
            format!("{word}{interval}"),
            tone(change.outcome),
        )
    }

    fn loss(&self, comparison: &Comparison) -> String {
        let Some(loss) = &comparison.loss else {
            return String::new();
        };
        let samples = units::count(loss.samples);
        let title = message!(en: "Loss after {samples} samples", zh: "{samples} 个样本之后的损失");
        let losses: Vec<String> = loss
            .losses
            .iter()
            .zip(&comparison.runs)
            .map(|(loss, run)| {
                let loss = loss.map_or_else(|| "?".to_owned(), |loss| format!("{loss:.4}"));
                format!("{} {loss}", run.letter)
            })
            .collect();
        format!("{}  {}\n", self.heading(&title), losses.join("    "))
    }

    fn findings(&self, comparison: &Comparison) -> String {
        if comparison.findings.is_empty() {
            return String::new();
        }
        let mut text = self.heading(&message!(en: "Findings", zh: "诊断结论"));
        for row in &comparison.findings {
            let (sign, word, tone) = fate(row.fate);
            let mark = format!("{sign} {}", self.say(&word));
            let mark = crate::text::width::pad(&mark, 15);
            let indent = crate::text::width::width(&mark) + 2;
            let title = format!(
                "{}{}  [{}]",
                number(row, self.language),
                row.title.get(self.language),
                row.rule
            );
            let lines = wrap(&title, self.width.saturating_sub(indent).max(20));
            text += &format!(
                "  {}{}\n",
                self.paint.tone(tone, &mark),
                lines.join(&format!("\n{}", " ".repeat(indent)))
            );
        }
        text
    }

    fn settings(&self, comparison: &Comparison) -> String {
        if comparison.settings.is_empty() {
            return String::new();
        }
        let mut text = self.heading(&message!(en: "Settings that differ", zh: "不同的设置"));
        let runs = comparison.runs.len();
        let longest = comparison
            .settings
            .iter()
            .take(MOST_SETTINGS)
            .map(|row| crate::text::width::width(&row.setting).min(32))
            .max()
            .unwrap_or(0);
        let room = (self.width.saturating_sub(4 + longest + 2 * runs) / runs).max(8);
        let columns: Vec<Align> = vec![Align::Left; runs + 1];
        let mut table = Table::new(&columns).indented(2);
        for row in comparison.settings.iter().take(MOST_SETTINGS) {
            let name = (cut(&printable(&row.setting), 32), Some(Tone::Name));
            let values = row.values.iter().map(|value| {
                let value = value.as_deref().unwrap_or("–");
                (cut(&printable(value), room), None)
            });
            table.toned_cells(std::iter::once(name).chain(values));
        }
        text += &table.render(self.paint);
        if let Some(more) = comparison
            .settings
            .len()
            .checked_sub(MOST_SETTINGS)
            .filter(|more| *more > 0)
        {
            let more = message!(en: "  and {more} more (see --json)", zh: "  以及另外 {more} 项：见 --json");
            text += &format!("{}\n", self.say(&more));
        }
        text
    }
}

fn tone(outcome: Outcome) -> Option<Tone> {
    match outcome {
        Outcome::Better => Some(Tone::Good),
        Outcome::Worse => Some(Tone::Bad),
        _ => None,
    }
}

/// `28.7% → 57.9%, worse: `
pub(super) fn number(row: &FindingRow, language: Language) -> String {
    let Some(number) = row.number.as_ref().filter(|number| number.is_telling()) else {
        return String::new();
    };
    let word = number.outcome.map(|outcome| match outcome {
        Outcome::Noise => message!(en: "unchanged", zh: "未变"),
        other => other.name(),
    });
    match (word, language) {
        (Some(word), Language::Chinese) => format!("{}，{}：", number.show(), word.zh),
        (None, Language::Chinese) => format!("{}：", number.show()),
        (Some(word), _) => format!("{}, {}: ", number.show(), word.en),
        (None, _) => format!("{}: ", number.show()),
    }
}

/// A sign, a word, a tone.
pub(super) fn fate(fate: Fate) -> (&'static str, Message, Tone) {
    match fate {
        Fate::Gone => ("✓", message!(en: "gone", zh: "已消除"), Tone::Good),
        Fate::New => ("✗", message!(en: "new", zh: "新出现"), Tone::Bad),
        Fate::StillThere => ("!", message!(en: "still there", zh: "仍存在"), Tone::Warning),
        Fate::Between => (
            "·",
            message!(en: "in some runs", zh: "部分运行中出现"),
            Tone::Quiet,
        ),
        Fate::Unknown => ("?", message!(en: "unclear", zh: "无法判断"), Tone::Quiet),
    }
}
