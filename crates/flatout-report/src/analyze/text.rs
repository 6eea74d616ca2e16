//! An analysis as a person reads it.

mod chart;
pub(crate) mod job;
pub(crate) mod times;

use super::{Analysis, Section};
use crate::ranks::Ranks;
use crate::text::width::{printable, wrap};
use crate::text::{Paint, Tone, time_table, verdict};
use flatout_core::{Kind, Language, Message, message};
use flatout_import::training_log::{Problem, ProblemKind, TrainingLog};

/// Problems told in full; of more, their number.
const MOST_PROBLEMS: usize = 12;
/// Findings named; all of them stand in `flatout diagnose`.
const MOST_FINDINGS: usize = 5;
/// GPUs drawn.
const MOST_CHARTS: usize = 8;

pub fn analysis(analysis: &Analysis, language: Language, width: usize, colour: bool) -> String {
    let page = Page {
        language,
        width: width.max(40),
        paint: Paint { colour },
    };
    let mut blocks: Vec<String> = analysis.jobs.iter().map(|job| page.job(job)).collect();
    if !analysis.ranks.is_empty() {
        blocks.push(page.ranks(&analysis.ranks));
    }
    blocks.extend(analysis.sections.iter().map(|section| page.section(section)));
    let notes: String = analysis
        .notes
        .iter()
        .map(|note| page.paragraph(note, 0))
        .collect();
    if !notes.is_empty() {
        blocks.push(notes);
    }
    blocks.join("\n")
}

/// The ranks of a job alone, below a report's headline.
pub fn ranks(ranks: &Ranks, language: Language, width: usize, colour: bool) -> String {
    let page = Page {
        language,
        width: width.max(40),
        paint: Paint { colour },
    };
    let notes = ranks.notes.iter().map(|note| page.paragraph(note, 2));
    page.ranks(&ranks.rows) + &notes.collect::<String>()
}

pub(super) struct Page {
    language: Language,
    width: usize,
    paint: Paint,
}

impl Page {
    fn say<'a>(&self, message: &'a Message) -> &'a str {
        message.get(self.language)
    }

    fn head(&self, title: &str) -> String {
        format!("{}\n", self.paint.tone(Tone::Strong, title))
    }

    fn paragraph(&self, message: &Message, indent: usize) -> String {
        let lines = wrap(self.say(message), self.width.saturating_sub(indent).max(20));
        lines
            .iter()
            .map(|line| format!("{}{line}\n", " ".repeat(indent)))
            .collect()
    }

    fn section(&self, section: &Section) -> String {
        let title = printable(&section.title);
        let title = match section.format {
            Some(format) => format!("{title}  ({format})"),
            None => title,
        };
        let mut text = self.head(&title);
        for note in &section.notes {
            text += &self.paragraph(note, 2);
        }
        if let Some(seen) = &section.verdict {
            text += &format!(
                "\n{}",
                verdict(seen, self.language, self.width, self.paint.colour)
            );
        }
        text += &self.charts(section);
        if let Some(log) = &section.training {
            text += &self.read(section, log);
        }
        text += &self.epochs(section);
        if let Some(time) = &section.time {
            text += &format!("\n{}", time_table(time, self.language, self.paint.colour));
        }
        if let Some(log) = &section.training {
            text += &self.parts(&log.times);
            text += &self.problems(log, section.kind == "record");
        }
        text + &self.findings(section)
    }

    fn charts(&self, section: &Section) -> String {
        let timeline = &section.utilisation;
        if timeline.length_s() <= 0.0 {
            return String::new();
        }
        let columns = self.width.saturating_sub(8).min(100);
        let mut text = String::new();
        for gpu in timeline.gpus().take(MOST_CHARTS) {
            let values = timeline.columns(gpu, columns);
            let title = message!(en: "GPU {gpu} utilization over time", zh: "GPU {gpu} 利用率随时间变化");
            text += &format!("\n{}", self.head(self.say(&title)));
            text += &chart::shares(&values, timeline.length_s());
        }
        text
    }

    /// How much was read, for a log.
    fn read(&self, section: &Section, log: &TrainingLog) -> String {
        if section.kind == "record" {
            return String::new();
        }
        let (lines, size) = (log.lines, flatout_core::units::bytes(log.bytes as f64));
        self.paragraph(
            &message!(en: "{lines} lines, {size}", zh: "{lines} 行，{size}"),
            2,
        )
    }

    fn problems(&self, log: &TrainingLog, of_record: bool) -> String {
        let list = &log.problems.list;
        let mut text = format!(
            "\n{}",
            self.head(self.say(&message!(en: "Errors and warnings", zh: "错误与警告")))
        );
        if list.is_empty() {
            return text + &self.paragraph(&message!(en: "none found", zh: "未发现"), 2);
        }
        for problem in list.iter().take(MOST_PROBLEMS) {
            text += &self.problem(problem, of_record);
        }
        let more = list.len().saturating_sub(MOST_PROBLEMS) as u64;
        let left_out = log.problems.left_out;
        if more > 0 || left_out > 0 {
            text += &self.paragraph(
                &message!(en: "and {more} more kinds (see --json); {left_out} more lines were not kept", zh: "另有 {more} 种（--json 可看全部）；超出保留上限的有 {left_out} 行"),
                2,
            );
        }
        text
    }

    fn problem(&self, problem: &Problem, of_record: bool) -> String {
        let name = problem_name(problem.kind);
        let tone = match problem.kind {
            ProblemKind::NotANumber | ProblemKind::Warning => Tone::Warning,
            _ => Tone::Bad,
        };
        let where_found = problem_place(problem, of_record);
        let name = self.paint.tone(tone, self.say(&name));
        let mut text = format!(
            "  {name}  {}\n",
            self.paint.tone(Tone::Quiet, self.say(&where_found))
        );
        for line in wrap(&printable(&problem.text), self.width - 4).iter().take(3) {
            text += &format!("    {line}\n");
        }
        text
    }

    fn findings(&self, section: &Section) -> String {
        if section.findings.is_empty() {
            return String::new();
        }
        let mut text = format!("\n{}", self.head(self.say(&message!(en: "Findings", zh: "诊断"))));
        for finding in section.findings.iter().take(MOST_FINDINGS) {
            let sign = if finding.kind == Kind::Verdict { "·" } else { "!" };
            let lines = wrap(self.say(&finding.title), self.width - 4);
            for (index, line) in lines.iter().enumerate() {
                let sign = if index == 0 { sign } else { " " };
                text += &format!("  {sign} {line}\n");
            }
        }
        let run = printable(&section.title);
        text + &self.paragraph(&message!(en: "Evidence and fixes: flatout diagnose {run}", zh: "依据与处理办法：flatout diagnose {run}"), 2)
    }
}

pub(crate) fn problem_name(kind: ProblemKind) -> Message {
    match kind {
        ProblemKind::OutOfMemory => message!(en: "out-of-memory errors", zh: "内存不足"),
        ProblemKind::Traceback => message!(en: "traceback", zh: "异常"),
        ProblemKind::Error => message!(en: "error", zh: "错误"),
        ProblemKind::NotANumber => message!(en: "NaN", zh: "出现 NaN"),
        ProblemKind::Warning => message!(en: "warning", zh: "警告"),
    }
}

/// How often and where. A record has no lines.
pub(crate) fn problem_place(problem: &Problem, of_record: bool) -> Message {
    let (count, line) = (problem.count, problem.first_line);
    let mut found = match (of_record, count) {
        (true, _) => message!(en: "{count}×", zh: "{count} 次"),
        (false, 1) => message!(en: "line {line}", zh: "第 {line} 行"),
        (false, _) => {
            message!(en: "{count}×, first on line {line}", zh: "{count} 次，首次在第 {line} 行")
        }
    };
    if let Some(place) = &problem.place {
        let place = printable(place);
        found.en += &format!(", {place}");
        found.zh += &format!("，{place}");
    }
    found
}
