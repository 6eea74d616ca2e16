//! The findings: what, how bad, why, on which evidence, where, what to do.

use super::{Markup, Writer, markup};
use crate::words;
use flatout_core::{Evidence, Finding, Fix, Kind, Message, Severity, message, units};
use flatout_diagnose::Diagnosis;

impl Writer {
    pub(crate) fn findings(&self, diagnosis: &Diagnosis) -> Markup {
        let mut text: Markup = diagnosis
            .findings
            .iter()
            // A monitor's verdict says that there are no steps.
            .filter(|finding| diagnosis.monitor.is_none() || finding.kind != Kind::Verdict)
            .map(|finding| self.finding(finding))
            .collect();
        if let Some(window) = &diagnosis.window {
            text += self.note(&words::window(window));
        }
        self.section(&message!(en: "Findings", zh: "诊断结论"), text)
    }

    fn finding(&self, finding: &Finding) -> Markup {
        let (sign, word) = words::severity(finding.severity);
        let class = match finding.severity {
            Severity::Critical => "critical",
            Severity::Warning => "warning",
            Severity::Information => "information",
        };
        let mut text = markup!(
            "<article class=\"finding k-{}\"><span class=\"badge\">{} {}</span><h3>{}</h3> <code class=\"soft\">{}</code>\n",
            class,
            sign,
            self.say(&word),
            self.say(&finding.title),
            finding.rule
        );
        if !finding.detail.is_empty() {
            text += markup!("<p>{}</p>\n", self.say(&finding.detail));
        }
        text += markup!("<dl>");
        text += self.row(
            &message!(en: "measured", zh: "实测"),
            self.evidence(&finding.evidence),
        );
        text += self.row(&message!(en: "where", zh: "位置"), self.places(finding));
        text += self.row(&Message::verbatim("lint"), self.lint(finding));
        for fix in &finding.fixes {
            let label = match fix {
                Fix::Refused { .. } => message!(en: "not", zh: "不建议"),
                _ => message!(en: "do", zh: "建议"),
            };
            text += self.row(&label, self.fix(fix));
        }
        if let Some(gain) = finding.gain.and_then(words::gain) {
            text += self.row(&message!(en: "gain", zh: "收益"), markup!("{}", self.say(&gain)));
        }
        text += self.row(
            &message!(en: "confidence", zh: "把握"),
            markup!("{}", self.say(&words::certainty(finding))),
        );
        text + markup!("</dl></article>\n")
    }

    fn row(&self, label: &Message, body: Markup) -> Markup {
        if body.is_empty() {
            return body;
        }
        markup!("<dt>{}</dt><dd>{}</dd>\n", self.say(label), body)
    }

    fn evidence(&self, all: &[Evidence]) -> Markup {
        if all.is_empty() {
            return Markup::default();
        }
        let rows: Markup = all
            .iter()
            .map(|evidence| {
                let limit = evidence.threshold.map_or_else(String::new, |limit| {
                    let limit = words::number(limit, &evidence.unit);
                    self.say(&message!(en: "limit {limit}", zh: "阈值 {limit}")).to_owned()
                });
                let window = evidence.window_s.map_or_else(String::new, |(start, end)| {
                    format!("{}–{} s", units::significant(start), units::significant(end))
                });
                markup!(
                    "<tr><td>{}</td><td class=\"number\"><b>{}</b></td><td class=\"soft\">{}</td><td class=\"soft\">{}</td></tr>",
                    self.say(&evidence.what),
                    words::number(evidence.value, &evidence.unit),
                    limit,
                    window
                )
            })
            .collect();
        markup!("<div class=\"scroll\"><table>{}</table></div>", rows)
    }

    fn lint(&self, finding: &Finding) -> Markup {
        let lines = finding.lint.iter().map(|linted| words::linted(linted, finding));
        lines.map(|line| markup!("<p>{}</p>", self.say(&line))).collect()
    }

    fn places(&self, finding: &Finding) -> Markup {
        finding
            .places
            .iter()
            .map(|place| markup!("<p><code>{}</code></p>", place.to_string()))
            .collect()
    }

    fn fix(&self, fix: &Fix) -> Markup {
        let code = |text: &str| markup!("<p><code>{}</code></p>", text);
        let line = |message: &Message| markup!("<p>{}</p>", self.say(message));
        match fix {
            Fix::Setting {
                setting,
                from,
                to,
                say,
            } => code(&words::change(setting, from.as_deref(), to)) + line(say),
            Fix::Code { place, say } => {
                let place = place.as_ref().map(|place| code(&place.to_string()));
                line(say) + place.unwrap_or_default()
            }
            Fix::Edits { edits, safe, say } => line(say) + line(&words::edits(edits.len(), *safe)),
            Fix::Command { command, say } => line(say) + code(&format!("$ {command}")),
            Fix::Refused { setting, say } => code(setting) + line(say),
        }
    }
}
