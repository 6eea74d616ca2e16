//! Findings as a person reads them: what and how bad in the first line, then why, on which evidence, where, what to do.

use super::width::{pad, printable, width, wrap};
use super::{Align, Paint, Table, Tone};
use crate::words;
use flatout_core::{Evidence, Finding, Fix, Kind, Language, Message, Severity, message, units};

/// All findings in the order given, a blank line between two. Nothing for nothing: what "nothing" means the caller knows.
pub fn findings(findings: &[Finding], language: Language, width: usize, colour: bool) -> String {
    let page = Page {
        language,
        width: width.max(40),
        paint: Paint { colour },
    };
    let blocks: Vec<String> = findings.iter().map(|finding| page.finding(finding)).collect();
    blocks.join("\n")
}

/// `2 critical, 1 warning`; empty when there is none.
pub fn count(findings: &[Finding], language: Language) -> String {
    let of = |severity| {
        findings
            .iter()
            .filter(|finding| finding.severity == severity && finding.kind != Kind::Verdict)
            .count()
    };
    let parts = [
        (of(Severity::Critical), message!(en: "critical", zh: "项严重问题")),
        (of(Severity::Warning), message!(en: "warnings", zh: "项警告")),
        (of(Severity::Information), message!(en: "notes", zh: "项提示")),
    ];
    let shown = parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| {
        let what = what.get(language);
        let one = *count == 1 && language == Language::English;
        format!("{count} {}", if one { what.trim_end_matches('s') } else { what })
    });
    shown.collect::<Vec<_>>().join(if language == Language::English {
        ", "
    } else {
        "，"
    })
}

struct Page {
    language: Language,
    width: usize,
    paint: Paint,
}

/// Where the text behind the labels begins.
const LABEL_CELLS: usize = 11;

impl Page {
    fn finding(&self, finding: &Finding) -> String {
        let mut text = self.head(finding);
        for line in wrap(finding.detail.get(self.language), self.width - 2) {
            text += &format!("  {line}\n");
        }
        text += &self.labelled(
            message!(en: "measured", zh: "实测"),
            &self.evidence(&finding.evidence),
        );
        text += &self.labelled(message!(en: "where", zh: "位置"), &self.places(finding));
        text += &self.labelled(message!(en: "lint", zh: "lint"), &self.lint(finding));
        for fix in &finding.fixes {
            let label = match fix {
                Fix::Refused { .. } => message!(en: "ruled out", zh: "不适用"),
                _ => message!(en: "do", zh: "建议"),
            };
            text += &self.labelled(label, &self.fix(fix));
        }
        if let Some(gain) = finding.gain.and_then(words::gain) {
            text += &self.labelled(
                message!(en: "gain", zh: "收益"),
                &wrap(gain.get(self.language), self.room()),
            );
        }
        text + &self.labelled(
            message!(en: "confidence", zh: "把握"),
            &wrap(words::certainty(finding).get(self.language), self.room()),
        )
    }

    /// `✗ CRITICAL  The GPU waits for data 61% of the time  [loader-starved]`
    fn head(&self, finding: &Finding) -> String {
        let (sign, word) = words::severity(finding.severity);
        let tone = tone(finding.severity);
        let mark = format!("{sign} {}", word.get(self.language));
        let rule = format!("[{}]", finding.rule);
        let indent = width(&mark) + 2;
        let title = printable(finding.title.get(self.language));
        let mut lines = wrap(&format!("{title}  {rule}"), self.width - indent);
        // The rule's name is wrapped with the title but painted apart from it.
        for line in &mut lines {
            let title = line.strip_suffix(&rule).map_or(line.len(), str::len);
            *line =
                self.paint.tone(Tone::Strong, &line[..title]) + &self.paint.tone(Tone::Quiet, &line[title..]);
        }
        let mut text = format!("{}  ", self.paint.tone(tone, &mark));
        text += &lines.join(&format!("\n{}", " ".repeat(indent)));
        text + "\n"
    }

    /// A label, then its lines below each other; nothing without lines.
    fn labelled(&self, label: Message, lines: &[String]) -> String {
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

    fn room(&self) -> usize {
        self.width - LABEL_CELLS - 2
    }

    fn evidence(&self, all: &[Evidence]) -> Vec<String> {
        // What value, limit and window take at their widest.
        let longest = self.room().saturating_sub(36).max(12);
        let mut table = Table::new(&[Align::Left, Align::Right, Align::Left, Align::Left]);
        for evidence in all {
            let mut names = wrap(evidence.what.get(self.language), longest);
            let last = names.pop().unwrap_or_default();
            for name in &names {
                table.row([name, "", "", ""]);
            }
            let limit = evidence.threshold.map_or_else(String::new, |limit| {
                let limit = words::number(limit, &evidence.unit);
                message!(en: "limit {limit}", zh: "阈值 {limit}")
                    .get(self.language)
                    .to_owned()
            });
            let window = evidence.window_s.map_or_else(String::new, |(start, end)| {
                format!("{}–{} s", units::significant(start), units::significant(end))
            });
            let value = words::number(evidence.value, &evidence.unit);
            table.toned_row([
                (&last, None),
                (&value, Some(Tone::Strong)),
                (&limit, None),
                (&window, Some(Tone::Quiet)),
            ]);
        }
        table.render(self.paint).lines().map(str::to_owned).collect()
    }

    fn places(&self, finding: &Finding) -> Vec<String> {
        const SHOWN: usize = 5;
        let mut lines: Vec<String> = finding
            .places
            .iter()
            .take(SHOWN)
            .map(|place| self.name(&place.to_string()))
            .collect();
        if let Some(more) = finding.places.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            lines.push(
                message!(en: "and {more} more", zh: "以及另外 {more} 处")
                    .get(self.language)
                    .to_owned(),
            );
        }
        lines
    }

    /// `file-reopened-in-getitem also reports this line`.
    fn lint(&self, finding: &Finding) -> Vec<String> {
        let lines = finding.lint.iter().map(|linted| words::linted(linted, finding));
        lines
            .flat_map(|line| wrap(line.get(self.language), self.room()))
            .collect()
    }

    fn name(&self, text: &str) -> String {
        self.paint.tone(Tone::Name, &printable(text))
    }

    fn fix(&self, fix: &Fix) -> Vec<String> {
        let say = |message: &Message| wrap(message.get(self.language), self.room());
        match fix {
            Fix::Setting {
                setting,
                from,
                to,
                say: why,
            } => {
                let change = words::change(setting, from.as_deref(), to);
                prepend(self.name(&change), say(why))
            }
            Fix::Code { place, say: why } => {
                let mut lines = say(why);
                lines.extend(place.as_ref().map(|place| self.name(&place.to_string())));
                lines
            }
            Fix::Edits {
                edits,
                safe,
                say: why,
            } => {
                let mut lines = say(why);
                let note = words::edits(edits.len(), *safe);
                lines.extend(
                    wrap(note.get(self.language), self.room())
                        .iter()
                        .map(|line| self.paint.tone(Tone::Quiet, line)),
                );
                lines
            }
            Fix::Command { command, say: why } => {
                let mut lines = say(why);
                lines.push(self.name(&format!("$ {command}")));
                lines
            }
            Fix::Refused { setting, say: why } => prepend(self.name(setting), say(why)),
        }
    }
}

fn prepend(first: String, mut rest: Vec<String>) -> Vec<String> {
    rest.insert(0, first);
    rest
}

fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Critical => Tone::Bad,
        Severity::Warning => Tone::Warning,
        Severity::Information => Tone::Name,
    }
}

#[cfg(test)]
mod tests;
