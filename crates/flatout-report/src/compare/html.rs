//! A comparison as a page of the report's kind: the table, the findings, the settings, the curves over each other.

use super::change::Outcome;
use super::text::fate;
use super::{Comparison, Row};
use crate::digest::Digest;
use crate::digest::charts::{Chart, Curve};
use crate::digest::marks::Marks;
use crate::page::{Options, Writer, data, escape, frame};
use flatout_core::{Message, message, units};

pub fn html(comparison: &Comparison, digests: &[Digest], options: Options) -> String {
    let writer = Writer {
        language: options.language,
        pdf_ready: options.pdf_ready,
    };
    let names: Vec<&str> = comparison.runs.iter().map(|run| run.name.as_str()).collect();
    let title = names.join(" → ");
    let button = if options.pdf_ready {
        String::new()
    } else {
        frame::theme_button(options.language)
    };
    let mut body = format!("<header><div><h1>{}</h1>\n", escape(&title));
    for (run, digest) in comparison.runs.iter().zip(digests) {
        let about = crate::words::about_run(&digest.info, digest.length_s);
        body += &format!(
            "<p><b>{}</b> {} <span class=\"soft\">{}</span></p>\n",
            run.letter,
            escape(&run.name),
            writer.say(&about)
        );
    }
    body += &format!("</div>{button}</header>\n");
    body += &writer.compared(comparison);
    let charts = overlaid(comparison, digests);
    let length_s = digests
        .iter()
        .filter_map(|digest| digest.length_s)
        .fold(0.0, f64::max);
    body += &writer.charts(&charts, &Marks::default());
    body += &writer.fates(comparison);
    body += &writer.differing(comparison);
    for note in &comparison.notes {
        body += &format!("<p class=\"soft\">{}</p>\n", writer.say(note));
    }
    frame::Frame {
        title: format!("{title} – flatout"),
        body,
        data: data::json(&charts, &Marks::default(), length_s, options.language),
        language: options.language,
        pdf_ready: options.pdf_ready,
    }
    .html()
}

/// The first curve of a chart from every run, over each other.
fn overlaid(comparison: &Comparison, digests: &[Digest]) -> Vec<Chart> {
    ["rate", "busy", "wait", "loss", "power", "cpu"]
        .iter()
        .filter_map(|key| {
            let of = |digest: &Digest| digest.charts.iter().find(|chart| chart.key == *key).cloned();
            let like = digests.iter().find_map(of)?;
            let curves = digests
                .iter()
                .zip(&comparison.runs)
                .filter_map(|(digest, run)| {
                    Some(Curve {
                        name: Message::verbatim(run.letter.clone()),
                        limit: false,
                        series: of(digest)?.curves.into_iter().find(|curve| !curve.limit)?.series,
                    })
                })
                .collect();
            Some(Chart { curves, ..like })
        })
        .collect()
}

impl Writer {
    fn compared(&self, comparison: &Comparison) -> String {
        let mut rows = String::from("<tr><th></th>");
        for run in &comparison.runs {
            rows += &format!("<th class=\"number\">{}</th>", run.letter);
        }
        let change = message!(en: "change against A", zh: "相对 A 的变化");
        rows += &format!("<th>{}</th></tr>\n", self.say(&change));
        for row in &comparison.figures {
            rows += &format!("<tr><td>{}</td>", self.say(&row.name));
            for value in &row.values {
                let value = value
                    .as_ref()
                    .map_or_else(|| "?".to_owned(), |figure| row.unit.show(figure.mean));
                rows += &format!("<td class=\"number\"><b>{value}</b></td>");
            }
            rows += &format!("<td>{}</td></tr>\n", self.changes(row, comparison));
        }
        if let Some(loss) = &comparison.loss {
            let samples = units::count(loss.samples);
            let name = message!(en: "loss after {samples} samples", zh: "{samples} 个样本之后的损失");
            rows += &format!("<tr><td>{}</td>", self.say(&name));
            for loss in &loss.losses {
                let loss = loss.map_or_else(|| "?".to_owned(), |loss| format!("{loss:.4}"));
                rows += &format!("<td class=\"number\"><b>{loss}</b></td>");
            }
            rows += "<td></td></tr>\n";
        }
        let table = format!("<div class=\"scroll\"><table>{rows}</table></div>\n");
        self.section(&message!(en: "Before and after", zh: "前后对比"), &table)
    }

    fn changes(&self, row: &Row, comparison: &Comparison) -> String {
        let several = comparison.runs.len() > 2;
        let mut text = String::new();
        for (change, run) in row.changes.iter().zip(&comparison.runs) {
            let Some(change) = change else { continue };
            let class = match change.outcome {
                Outcome::Better => "better",
                Outcome::Worse => "worse",
                _ => "soft",
            };
            let word = self.say(&change.outcome.name());
            let name = if several {
                format!("{} ", run.letter)
            } else {
                String::new()
            };
            let said = if change.outcome == Outcome::Noise {
                word
            } else {
                let interval = change
                    .show_interval(row.unit)
                    .map_or_else(String::new, |interval| format!(" <small>({interval})</small>"));
                format!("<b>{}</b>{interval} {word}", change.show(row.unit))
            };
            text += &format!("<p class=\"{class}\">{name}{said}</p>");
        }
        text
    }

    fn fates(&self, comparison: &Comparison) -> String {
        let lines: String = comparison
            .findings
            .iter()
            .map(|row| {
                let (sign, word, _) = fate(row.fate);
                let class = match row.fate {
                    super::Fate::Gone => "done",
                    super::Fate::New => "to-do",
                    _ => "unknown",
                };
                format!(
                    "<li class=\"{class}\"><b>{sign}</b><span>{}: {} <code class=\"soft\">{}</code></span></li>\n",
                    self.say(&word),
                    self.say(&row.title),
                    escape(&row.rule)
                )
            })
            .collect();
        if lines.is_empty() {
            return String::new();
        }
        self.section(
            &message!(en: "Findings", zh: "诊断结论"),
            &format!("<ul class=\"checklist\">\n{lines}</ul>\n"),
        )
    }

    fn differing(&self, comparison: &Comparison) -> String {
        if comparison.settings.is_empty() {
            return String::new();
        }
        let mut rows = String::from("<tr><th></th>");
        for run in &comparison.runs {
            rows += &format!("<th>{}</th>", run.letter);
        }
        rows += "</tr>\n";
        for row in &comparison.settings {
            rows += &format!("<tr><td>{}</td>", escape(&row.setting));
            for value in &row.values {
                rows += &format!(
                    "<td><code>{}</code></td>",
                    escape(value.as_deref().unwrap_or("–"))
                );
            }
            rows += "</tr>\n";
        }
        let table = format!("<div class=\"scroll\"><table class=\"settings\">{rows}</table></div>\n");
        self.section(&message!(en: "Settings that differ", zh: "不同的设置"), &table)
    }
}
