//! For people: place, rule, what is wrong, the line with a mark under it, and what to do. Readable without colour.

use crate::lint::Outcome;
use crate::report::Reported;
use flatout_core::{Evidence, Fix, Language, Message, Severity, message};
use std::fmt::Write;

/// Whether to colour.
#[derive(Clone, Copy, Debug)]
pub struct Paint(pub bool);

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        if self.0 {
            flatout_core::text::colored(code, text)
        } else {
            text.to_owned()
        }
    }
}

pub fn text(outcome: &Outcome, language: Language, paint: Paint) -> String {
    let mut out = String::new();
    for one in &outcome.found {
        finding(&mut out, outcome, one, language, paint);
    }
    let _ = writeln!(out, "{}", summary(outcome).get(language));
    out
}

pub(super) fn severity(severity: Severity) -> Message {
    match severity {
        Severity::Information => message!(en: "information", zh: "信息"),
        Severity::Warning => message!(en: "warning", zh: "警告"),
        Severity::Critical => message!(en: "critical", zh: "严重"),
    }
}

fn finding(out: &mut String, outcome: &Outcome, one: &Reported, language: Language, paint: Paint) {
    let finding = &one.finding;
    let colour = match finding.severity {
        Severity::Information => "36",
        Severity::Warning => "33",
        Severity::Critical => "31;1",
    };
    let _ = writeln!(
        out,
        "{}: {} {} {}",
        one.place(),
        paint.with("1", &finding.rule),
        paint.with(colour, severity(finding.severity).get(language)),
        finding.title.get(language)
    );
    excerpt(out, outcome, one, paint);
    if !finding.detail.is_empty() {
        let _ = writeln!(out, "  {}", finding.detail.get(language));
    }
    if let Some(measured) = measured(&finding.evidence, language) {
        let _ = writeln!(out, "  {measured}");
    }
    for place in finding.places.iter().skip(1) {
        let see = message!(en: "see", zh: "参见");
        let _ = writeln!(out, "  {}: {place}", see.get(language));
    }
    if let Some(fix) = finding.fixes.first() {
        let _ = writeln!(out, "  {}", fix_line(fix, paint, language));
    }
    out.push('\n');
}

/// What a recorded run measured of it; nothing without one.
fn measured(evidence: &[Evidence], language: Language) -> Option<String> {
    let shown: Vec<String> = evidence
        .iter()
        .take(3)
        .map(|one| format!("{} {:.1}{}", one.what.get(language), one.value, one.unit))
        .collect();
    let head = message!(en: "measured", zh: "实测");
    (!shown.is_empty()).then(|| format!("{}: {}", head.get(language), shown.join(" · ")))
}

fn fix_line(fix: &Fix, paint: Paint, language: Language) -> String {
    let (say, how) = match fix {
        Fix::Edits { say, safe: true, .. } => (say, " [--fix]"),
        Fix::Edits { say, safe: false, .. } => (say, " [--fix --unsafe]"),
        Fix::Code { say, .. }
        | Fix::Setting { say, .. }
        | Fix::Command { say, .. }
        | Fix::Refused { say, .. } => (say, ""),
    };
    let label = message!(en: "fix:", zh: "修复：");
    format!(
        "{} {}{how}",
        paint.with("32", label.get(language)),
        say.get(language)
    )
}

/// The line, with carets under what the finding points at.
fn excerpt(out: &mut String, outcome: &Outcome, one: &Reported, paint: Paint) {
    const WIDEST: usize = 160;
    let place = one.place();
    let Some(source) = outcome.source(&place.file) else {
        return;
    };
    // Of a notebook as a whole, no line is meant.
    if place.cell.is_none() && !source.cells.is_empty() {
        return;
    }
    // The place of a notebook names a line of its cell.
    let line = source.line(source.position(one.span.start).0);
    if line.trim().is_empty() || line.chars().count() > WIDEST * 4 {
        return;
    }
    let number = place.line.to_string();
    let column = place.column.unwrap_or(1) as usize - 1;
    let on_this_line = one.span.text(&source.text).lines().next().unwrap_or("");
    let carets = on_this_line.chars().count().clamp(1, WIDEST);
    // Tabs and wide characters are repeated as blanks of the same width, so that the carets align.
    let lead: String = line.chars().take(column).map(blank).collect();
    let marks: String = on_this_line
        .chars()
        .take(carets)
        .map(|character| if is_wide(character) { "^^" } else { "^" })
        .collect();
    let marks = if marks.is_empty() { "^".to_owned() } else { marks };
    let shown: String = line.chars().take(WIDEST).collect();
    let _ = writeln!(out, "  {} | {shown}", paint.with("34", &number));
    let _ = writeln!(
        out,
        "  {} | {lead}{}",
        " ".repeat(number.len()),
        paint.with("31", &marks)
    );
}

fn blank(character: char) -> &'static str {
    match character {
        '\t' => "\t",
        character if is_wide(character) => "  ",
        _ => " ",
    }
}

/// Characters that take two columns in a terminal, as far as source has them: CJK and full-width forms.
fn is_wide(character: char) -> bool {
    matches!(u32::from(character), 0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f | 0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1f64f | 0x20000..=0x3fffd)
}

fn summary(outcome: &Outcome) -> Message {
    let count = |severity| {
        outcome
            .found
            .iter()
            .filter(|one| one.finding.severity == severity)
            .count()
    };
    let (critical, warnings, information) = (
        count(Severity::Critical),
        count(Severity::Warning),
        count(Severity::Information),
    );
    let (files, lines) = (outcome.file_count(), outcome.lines);
    if outcome.found.is_empty() {
        let mut text = match files {
            1 => message!(
                en: "Nothing found in one file ({lines} lines of Python).",
                zh: "1 个文件（{lines} 行 Python）中没有发现问题。"
            ),
            _ => message!(
                en: "Nothing found in {files} files ({lines} lines of Python).",
                zh: "{files} 个文件（{lines} 行 Python）中没有发现问题。"
            ),
        };
        if outcome.trains_without_cuda() {
            let note = message!(
                en: " The program does not use CUDA, so rules about the GPU did not apply.",
                zh: "程序没有使用 CUDA，因此与 GPU 有关的规则不适用。"
            );
            text.en += &note.en;
            text.zh += &note.zh;
        }
        return text;
    }
    let fixable = |with_unsafe| {
        let with_edits = |one: &&Reported| !crate::fix::edits_of(&one.finding, with_unsafe).is_empty();
        outcome.found.iter().filter(with_edits).count()
    };
    let (safe, all) = (fixable(false), fixable(true));
    let found = outcome.found.len();
    let mut text = match files {
        1 => message!(
            en: "{found} found in one file ({lines} lines of Python): ",
            zh: "在 1 个文件（{lines} 行 Python）中发现 {found} 处："
        ),
        _ => message!(
            en: "{found} found in {files} files ({lines} lines of Python): ",
            zh: "在 {files} 个文件（{lines} 行 Python）中发现 {found} 处："
        ),
    };
    let kinds = message!(
        en: "critical: {critical}, warnings: {warnings}, information: {information}. --fix can fix {safe}, \
        --fix --unsafe {all}.",
        zh: "严重 {critical}，警告 {warnings}，信息 {information}。--fix 可修复 {safe} 处，--fix --unsafe 可修复 {all} 处。"
    );
    text.en += &kinds.en;
    text.zh += &kinds.zh;
    text
}
