//! A digest as Markdown, for an issue or a pull request.

use crate::digest::Digest;
use crate::digest::figures::Figure;
use crate::ranks::Ranks;
use crate::text::{aspect_name, mark_limit, mark_value, sign, status_word};
use crate::words;
use flatout_core::{Finding, Fix, Kind, Language, Message, message, units};
use flatout_diagnose::verdict::Verdict;

pub fn report(digest: &Digest, language: Language) -> String {
    let page = Page { language };
    let info = &digest.info;
    let name = if info.name.is_empty() {
        &info.id
    } else {
        &info.name
    };
    let mut text = format!(
        "# {}\n\n{}\n",
        escape(name),
        page.say(&words::about_run(info, digest.length_s))
    );
    for defect in &digest.defects {
        text += &format!("\n> {}\n", page.say(&defect.say));
    }
    if let Some(verdict) = &digest.diagnosis.monitor {
        text += &page.verdict(verdict);
        let causes = digest.diagnosis.findings.iter();
        for finding in causes.filter(|finding| finding.kind != Kind::Verdict) {
            text += &page.finding(finding);
        }
        text += &format!("\n{}\n", page.say(&crate::text::next_command_of_monitor()));
        return text;
    }
    text += &page.headline(&digest.figures);
    if digest.has_steps {
        text += &page.account(digest);
        text += &page.workers(digest);
        text += &page.time(digest);
    }
    text += &page.ranks(&digest.ranks);
    text += &page.heading(&message!(en: "Findings", zh: "诊断结论"));
    for finding in &digest.diagnosis.findings {
        text += &page.finding(finding);
    }
    if let Some(window) = &digest.diagnosis.window {
        text += &format!("\n{}\n", page.say(&words::window(window)));
    }
    text
}

/// Characters that Markdown or the HTML in it would take for more than text.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => {
                safe.push('\\');
                safe.push(character);
            }
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '&' => safe += "&amp;",
            character if character.is_control() => safe.push(' '),
            character => safe.push(character),
        }
    }
    safe
}

/// As code, with a fence longer than any run of backticks within.
pub fn code(text: &str) -> String {
    let clean: String = text
        .chars()
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect();
    let longest = clean
        .split(|character| character != '`')
        .map(str::len)
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let room = if longest > 0 { " " } else { "" };
    // A bar ends a table's cell even inside of code.
    format!("{fence}{room}{}{room}{fence}", clean.replace('|', "\\|"))
}

struct Page {
    language: Language,
}

impl Page {
    fn ranks(&self, ranks: &Ranks) -> String {
        if ranks.rows.is_empty() {
            return String::new();
        }
        let head = message!(
            en: "| rank | host | steps | per step | own work | waiting for ranks | transferring | data | |\n| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n",
            zh: "| rank | 主机 | 步数 | 每步 | 自身耗时 | 等待其他 rank | 传输 | 取数据 | |\n| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n"
        );
        let mut text = self.heading(&message!(en: "Ranks", zh: "各 rank")) + "\n" + head.get(self.language);
        let straggler = message!(en: "**slows the others down**", zh: "**拖慢其他 rank**");
        for row in &ranks.rows {
            let time = |ms: Option<f64>| ms.map_or_else(|| "?".to_owned(), |ms| units::duration(ms / 1e3));
            let mark = if row.straggler {
                straggler.get(self.language)
            } else {
                ""
            };
            let host = escape(row.host.as_deref().unwrap_or("?"));
            let (step, own, data) = (time(row.step_ms), time(row.own_ms), time(row.data_ms));
            let (wait, transfer) = (time(row.wait_ms), time(row.transfer_ms));
            text += &format!(
                "| {} | {host} | {} | {step} | {own} | {wait} | {transfer} | {data} | {mark} |\n",
                row.rank, row.steps
            );
        }
        for note in &ranks.notes {
            text += &format!("\n{}\n", self.say(note));
        }
        text
    }

    /// How the GPUs did: a mark per aspect with its threshold.
    fn verdict(&self, verdict: &Verdict) -> String {
        let mut text = String::new();
        for (index, gpu) in &verdict.gpus {
            let name = escape(gpu.name.as_deref().unwrap_or(""));
            text += &format!("\n## GPU {index} {name}\n\n| | | | |\n| --- | ---: | --- | --- |\n");
            for mark in &gpu.marks {
                let (sign, _) = sign(mark.status);
                let cells = [
                    aspect_name(mark.aspect),
                    mark_value(mark),
                    mark_limit(mark),
                    status_word(mark),
                ];
                let [name, value, limit, word] = cells.map(|cell| self.say(&cell));
                text += &format!("| {name} | **{value}** | {limit} | {sign} {word} |\n");
            }
            for note in &gpu.notes {
                text += &format!("\n{}\n", self.say(&note.message));
            }
        }
        text
    }

    fn say(&self, message: &Message) -> String {
        escape(message.get(self.language))
    }

    fn heading(&self, title: &Message) -> String {
        format!("\n## {}\n", self.say(title))
    }

    fn headline(&self, figures: &[Figure]) -> String {
        if figures.is_empty() {
            return String::new();
        }
        let interval = self.say(&message!(en: "95% interval", zh: "95% 区间"));
        let mean = self.say(&message!(en: "mean", zh: "平均"));
        let mut text = format!("\n| | {mean} | {interval} |\n| --- | ---: | --- |\n");
        for figure in figures {
            let spread = figure
                .std
                .map(|std| format!(" ± {}", figure.unit.show(std)))
                .unwrap_or_default();
            let interval = figure.interval.map_or_else(String::new, |(low, high)| {
                format!("{} – {}", figure.unit.show(low), figure.unit.show(high))
            });
            text += &format!(
                "| {} | **{}**{spread} | {interval} |\n",
                self.say(&figure.name),
                figure.unit.show(figure.mean)
            );
        }
        text
    }

    fn account(&self, digest: &Digest) -> String {
        let Some(account) = &digest.diagnosis.account else {
            return String::new();
        };
        let mut text = self.heading(&message!(en: "Where step time goes", zh: "一步的时间去向"));
        text += "\n| | | |\n| --- | ---: | --- |\n";
        let rows = account.rows.iter().filter(|row| row.share >= 0.03).take(12);
        for row in rows {
            let place = row.place.as_ref().map(ToString::to_string).unwrap_or_default();
            let source = row.text.as_deref().map(code).unwrap_or_default();
            text += &format!(
                "| {} | {} | {} {source} |\n",
                self.say(&row.activity.name()),
                units::percent(row.share),
                code(&place)
            );
        }
        text
    }

    fn workers(&self, digest: &Digest) -> String {
        let Some(account) = &digest.diagnosis.workers else {
            return String::new();
        };
        let mut text =
            self.heading(&message!(en: "What a DataLoader worker does", zh: "DataLoader worker 在做什么"));
        text += "\n| | | |\n| --- | ---: | --- |\n";
        for row in account.rows.iter().filter(|row| row.share >= 0.03).take(12) {
            let place = row.place.as_ref().map(|place| code(&place.to_string()));
            let source = row.text.as_deref().map(code).unwrap_or_default();
            text += &format!(
                "| {} | {} | {} {source} |\n",
                self.say(&row.task.name()),
                units::percent(row.share),
                place.unwrap_or_default()
            );
        }
        text
    }

    fn time(&self, digest: &Digest) -> String {
        let time = &digest.diagnosis.time;
        let total = units::duration(time.total_s);
        let mut text = self.heading(&message!(en: "Where the {total} went", zh: "{total} 的去向"));
        text += "\n| | | |\n| --- | ---: | ---: |\n";
        for row in &time.rows {
            let (name, seconds, share) = (
                self.say(&row.name),
                units::duration(row.seconds),
                row.share * 100.0,
            );
            text += &format!("| {name} | {seconds} | {share:.1}% |\n");
        }
        text
    }

    fn finding(&self, finding: &Finding) -> String {
        let (_, word) = words::severity(finding.severity);
        let mut text = format!(
            "\n### {}: {} ({})\n",
            self.say(&word),
            self.say(&finding.title),
            code(&finding.rule)
        );
        if !finding.detail.is_empty() {
            text += &format!("\n{}\n", self.say(&finding.detail));
        }
        text.push('\n');
        for evidence in &finding.evidence {
            let value = words::number(evidence.value, &evidence.unit);
            let limit = evidence.threshold.map_or_else(String::new, |limit| {
                let limit = words::number(limit, &evidence.unit);
                self.say(&message!(en: " (limit {limit})", zh: "（阈值 {limit}）"))
            });
            text += &format!("- {}: **{}**{limit}\n", self.say(&evidence.what), escape(&value));
        }
        for place in &finding.places {
            text += &format!("- {}\n", code(&place.to_string()));
        }
        for linted in &finding.lint {
            let words = self.say(&words::linted(linted, finding));
            text += &format!("- `flatout lint`: {words}\n");
        }
        for fix in &finding.fixes {
            text += &self.fix(fix);
        }
        if let Some(gain) = finding.gain.and_then(words::gain) {
            text += &format!("- {}\n", self.say(&gain));
        }
        text
    }

    fn fix(&self, fix: &Fix) -> String {
        match fix {
            Fix::Setting {
                setting,
                from,
                to,
                say,
            } => format!(
                "- → {} {}\n",
                code(&words::change(setting, from.as_deref(), to)),
                self.say(say)
            ),
            Fix::Code { say, place } => {
                let place = place
                    .as_ref()
                    .map(|place| format!(" {}", code(&place.to_string())));
                format!("- → {}{}\n", self.say(say), place.unwrap_or_default())
            }
            Fix::Edits { edits, safe, say } => {
                format!(
                    "- → {} ({})\n",
                    self.say(say),
                    self.say(&words::edits(edits.len(), *safe))
                )
            }
            Fix::Command { command, say } => format!("- → {} {}\n", self.say(say), code(command)),
            Fix::Refused { setting, say } => format!("- ✗ {} {}\n", code(setting), self.say(say)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn tables_and_findings_are_there() {
        let text = report(&Digest::of(testing::training(40, 0.6)), Language::English);
        assert!(
            text.contains("| samples per second | **320** | 320 – 320 |"),
            "{text}"
        );
        assert!(text.contains("## Findings") && text.contains("loader-"), "{text}");
    }

    #[test]
    fn names_cannot_break_out() {
        assert_eq!(escape("<script>|*a*"), "&lt;script&gt;\\|\\*a\\*");
        assert_eq!(code("a`b"), "`` a`b ``");
        assert_eq!(code("x | y"), "`x \\| y`");
    }
}
