//! The findings: what, how bad, why, on which evidence, where, what to do.

use super::{Writer, escape};
use crate::words;
use flatout_core::{Evidence, Finding, Fix, Message, Severity, message, units};
use flatout_diagnose::{Diagnosis, WindowSummary};

impl Writer {
    pub(crate) fn findings(&self, diagnosis: &Diagnosis) -> String {
        let mut text: String = diagnosis
            .findings
            .iter()
            .map(|finding| self.finding(finding))
            .collect();
        if let Some(window) = &diagnosis.window {
            text += &self.window(window);
        }
        self.section(&message!(en: "Findings", zh: "诊断结论"), &text)
    }

    fn window(&self, window: &WindowSummary) -> String {
        let words = words::window(window);
        format!("<p class=\"soft\">{}</p>\n", self.say(&words))
    }

    fn finding(&self, finding: &Finding) -> String {
        let (sign, word) = words::severity(finding.severity);
        let class = match finding.severity {
            Severity::Critical => "critical",
            Severity::Warning => "warning",
            Severity::Information => "information",
        };
        let mut text = format!(
            "<article class=\"finding k-{class}\"><span class=\"badge\">{sign} {}</span><h3>{}</h3> <code class=\"soft\">{}</code>\n",
            self.say(&word),
            self.say(&finding.title),
            escape(&finding.rule)
        );
        if !finding.detail.is_empty() {
            text += &format!("<p>{}</p>\n", self.say(&finding.detail));
        }
        text += "<dl>";
        text += &self.row(
            &message!(en: "measured", zh: "实测"),
            &self.evidence(&finding.evidence),
        );
        text += &self.row(&message!(en: "where", zh: "位置"), &self.places(finding));
        for fix in &finding.fixes {
            let label = match fix {
                Fix::Refused { .. } => message!(en: "not", zh: "不建议"),
                _ => message!(en: "do", zh: "建议"),
            };
            text += &self.row(&label, &self.fix(fix));
        }
        if let Some(gain) = finding.gain.and_then(words::gain) {
            text += &self.row(&message!(en: "gain", zh: "收益"), &self.say(&gain));
        }
        text += &self.row(
            &message!(en: "how sure", zh: "把握"),
            &self.say(&words::certainty(finding)),
        );
        text + "</dl></article>\n"
    }

    fn row(&self, label: &Message, body: &str) -> String {
        if body.is_empty() {
            return String::new();
        }
        format!("<dt>{}</dt><dd>{body}</dd>\n", self.say(label))
    }

    fn evidence(&self, all: &[Evidence]) -> String {
        if all.is_empty() {
            return String::new();
        }
        let rows: String = all
            .iter()
            .map(|evidence| {
                let limit = evidence.threshold.map_or_else(String::new, |limit| {
                    let limit = words::number(limit, &evidence.unit);
                    self.say(&message!(en: "limit {limit}", zh: "阈值 {limit}"))
                });
                let window = evidence.window_s.map_or_else(String::new, |(start, end)| {
                    format!("{}–{} s", units::significant(start), units::significant(end))
                });
                format!(
                    "<tr><td>{}</td><td class=\"number\"><b>{}</b></td><td class=\"soft\">{limit}</td><td class=\"soft\">{window}</td></tr>",
                    self.say(&evidence.what),
                    escape(&words::number(evidence.value, &evidence.unit)),
                )
            })
            .collect();
        format!("<div class=\"scroll\"><table>{rows}</table></div>")
    }

    fn places(&self, finding: &Finding) -> String {
        finding
            .places
            .iter()
            .map(|place| format!("<p><code>{}</code></p>", escape(&place.to_string())))
            .collect()
    }

    fn fix(&self, fix: &Fix) -> String {
        let code = |text: &str| format!("<p><code>{}</code></p>", escape(text));
        let line = |message: &Message| format!("<p>{}</p>", self.say(message));
        match fix {
            Fix::Setting {
                setting,
                from,
                to,
                say,
            } => code(&words::change(setting, from.as_deref(), to)) + &line(say),
            Fix::Code { place, say } => {
                let place = place.as_ref().map(|place| code(&place.to_string()));
                line(say) + &place.unwrap_or_default()
            }
            Fix::Edits { edits, safe, say } => line(say) + &line(&words::edits(edits.len(), *safe)),
            Fix::Command { command, say } => line(say) + &code(&format!("$ {command}")),
            Fix::Refused { setting, say } => code(setting) + &line(say),
        }
    }
}
