//! A comparison as a page of the report's kind: the table, the findings, the settings, the curves over each other.

use super::change;
use super::text::{fate, number};
use super::{Comparison, Row};
use crate::digest::Digest;
use crate::digest::charts::{Chart, Curve};
use crate::digest::marks::Marks;
use crate::page::frame::{Frame, Served};
use crate::page::{Markup, Options, Writer, data, markup};
use flatout_compare::Outcome;
use flatout_core::{Message, message, units};

pub fn html(comparison: &Comparison, digests: &[Digest], options: Options) -> String {
    frame(comparison, digests, options, None).html()
}

/// The page, as a file or as served by `flatout serve`.
pub(crate) fn frame(
    comparison: &Comparison,
    digests: &[Digest],
    options: Options,
    served: Option<Served>,
) -> Frame {
    let writer = Writer {
        language: options.language,
        pdf_ready: options.pdf_ready,
    };
    let names: Vec<&str> = comparison.runs.iter().map(|run| run.name.as_str()).collect();
    let title = names.join(" → ");
    let mut body = markup!("<header><div><h1>{}</h1>\n", title);
    for (run, digest) in comparison.runs.iter().zip(digests) {
        let about = crate::words::about_run(&digest.info, digest.length_s);
        body += markup!(
            "<p><b>{}</b> {} <span class=\"soft\">{}</span></p>\n",
            run.letter,
            run.name,
            writer.say(&about)
        );
    }
    body += markup!("</div>{}</header>\n", writer.theme_button());
    body += writer.compared(comparison);
    let charts = overlaid(comparison, digests);
    let length_s = digests
        .iter()
        .filter_map(|digest| digest.length_s)
        .fold(0.0, f64::max);
    body += writer.charts(&charts, &Marks::default());
    body += writer.fates(comparison);
    body += writer.differing(comparison);
    for note in &comparison.notes {
        body += writer.note(note);
    }
    Frame {
        title: format!("{title} – flatout"),
        body,
        data: data::json(&charts, &Marks::default(), length_s, options.language),
        language: options.language,
        pdf_ready: options.pdf_ready,
        served,
    }
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
                .enumerate()
                .filter_map(|(index, (digest, run))| {
                    Some(Curve {
                        name: Message::verbatim(run.letter.clone()),
                        limit: false,
                        // A run keeps its color in charts that another run is missing from.
                        color: Some(index),
                        series: of(digest)?.curves.into_iter().find(|curve| !curve.limit)?.series,
                    })
                })
                .collect();
            Some(Chart { curves, ..like })
        })
        .collect()
}

impl Writer {
    fn compared(&self, comparison: &Comparison) -> Markup {
        let mut rows = markup!("<tr><th></th>");
        for run in &comparison.runs {
            rows += markup!("<th class=\"number\">{}</th>", run.letter);
        }
        let change = message!(en: "change from A", zh: "相对 A 的变化");
        rows += markup!("<th>{}</th></tr>\n", self.say(&change));
        for row in &comparison.figures {
            rows += markup!("<tr><td>{}</td>", self.say(&row.name));
            for value in &row.values {
                let value = value
                    .as_ref()
                    .map_or_else(|| "?".to_owned(), |figure| row.unit.show(figure.mean));
                rows += markup!("<td class=\"number\"><b>{}</b></td>", value);
            }
            rows += markup!("<td>{}</td></tr>\n", self.changes(row, comparison));
        }
        if let Some(loss) = &comparison.loss {
            let samples = units::count(loss.samples);
            let name = message!(en: "loss after {samples} samples", zh: "{samples} 个样本之后的损失");
            rows += markup!("<tr><td>{}</td>", self.say(&name));
            for loss in &loss.losses {
                let loss = loss.map_or_else(|| "?".to_owned(), |loss| format!("{loss:.4}"));
                rows += markup!("<td class=\"number\"><b>{}</b></td>", loss);
            }
            rows += markup!("<td></td></tr>\n");
        }
        self.section(
            &message!(en: "Baseline and candidates", zh: "基线与对比"),
            self.table(rows),
        )
    }

    fn changes(&self, row: &Row, comparison: &Comparison) -> Markup {
        let several = comparison.runs.len() > 2;
        let mut text = Markup::default();
        for (change, run) in row.changes.iter().zip(&comparison.runs) {
            let Some(change) = change else { continue };
            let class = match change.outcome {
                Outcome::Better => "better",
                Outcome::Worse => "worse",
                _ => "soft",
            };
            let outcome = change.outcome.name();
            let word = self.say(&outcome);
            let name = if several {
                format!("{} ", run.letter)
            } else {
                String::new()
            };
            let said = if change.outcome == Outcome::Noise {
                markup!("{}", word)
            } else {
                let interval = change::show_interval(change, row.unit)
                    .map_or_else(Markup::default, |interval| {
                        markup!(" <small>({})</small>", interval)
                    });
                markup!("<b>{}</b>{} {}", change::show(change, row.unit), interval, word)
            };
            text += markup!("<p class=\"{}\">{}{}</p>", class, name, said);
        }
        text
    }

    fn fates(&self, comparison: &Comparison) -> Markup {
        let lines: Markup = comparison
            .findings
            .iter()
            .map(|row| {
                let (sign, word, _) = fate(row.fate);
                let class = match row.fate {
                    super::Fate::Gone => "done",
                    super::Fate::New => "to-do",
                    _ => "unknown",
                };
                markup!(
                    "<li class=\"{}\"><b>{}</b><span>{}: {}{} <code class=\"soft\">{}</code></span></li>\n",
                    class,
                    sign,
                    self.say(&word),
                    number(row, self.language),
                    self.say(&row.title),
                    row.rule
                )
            })
            .collect();
        if lines.is_empty() {
            return Markup::default();
        }
        self.section(
            &message!(en: "Findings", zh: "诊断结论"),
            markup!("<ul class=\"checklist\">\n{}</ul>\n", lines),
        )
    }

    fn differing(&self, comparison: &Comparison) -> Markup {
        if comparison.settings.is_empty() {
            return Markup::default();
        }
        let mut rows = markup!("<tr><th></th>");
        for run in &comparison.runs {
            rows += markup!("<th>{}</th>", run.letter);
        }
        rows += markup!("</tr>\n");
        for row in &comparison.settings {
            rows += markup!("<tr><td>{}</td>", row.setting);
            for value in &row.values {
                rows += markup!("<td><code>{}</code></td>", value.as_deref().unwrap_or("–"));
            }
            rows += markup!("</tr>\n");
        }
        self.section(
            &message!(en: "Settings that differ", zh: "不同的设置"),
            self.settings_table(rows),
        )
    }
}
