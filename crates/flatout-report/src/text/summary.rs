//! A diagnosis on one screen: the headline with its line and fix, the other causes in a line each, where a step goes, and the
//! command to run next as the last line.

use super::width::{printable, wrap};
use super::{Paint, Tone};
use crate::words;
use flatout_core::{Finding, Fix, Kind, Language, Message, Severity, message};
use flatout_diagnose::Diagnosis;

/// How much of each part is shown.
struct Limits {
    evidence: usize,
    places: usize,
    fixes: usize,
    /// Causes in a line each, after the first.
    others: usize,
    /// Ranks side by side.
    ranks: usize,
    /// Lines of the account.
    lines: usize,
    /// Why it is slow, and the time table where there is no account.
    detail: bool,
}

/// From the roomiest to what fits on 24 rows.
const LIMITS: [Limits; 4] = [
    Limits {
        evidence: 3,
        places: 3,
        fixes: 2,
        others: 4,
        ranks: 8,
        lines: 7,
        detail: true,
    },
    Limits {
        evidence: 2,
        places: 2,
        fixes: 1,
        others: 2,
        ranks: 4,
        lines: 4,
        detail: true,
    },
    Limits {
        evidence: 1,
        places: 1,
        fixes: 1,
        others: 0,
        ranks: 2,
        lines: 2,
        detail: false,
    },
    Limits {
        evidence: 1,
        places: 1,
        fixes: 1,
        others: 0,
        ranks: 0,
        lines: 1,
        detail: false,
    },
];
/// Rows that the caller adds: a blank line, how many steps and where the record is, the next command, the prompt.
const ADDED_ROWS: usize = 7;
/// Where the terminal does not tell its height.
const ROWS: usize = 40;

/// `run` is what the commands that it names take for this record, `rows` those of the terminal it is for.
pub fn summary(
    diagnosis: &Diagnosis,
    run: &str,
    language: Language,
    width: usize,
    rows: Option<u16>,
    colour: bool,
) -> String {
    summary_above(diagnosis, run, "", language, width, rows, colour)
}

/// The same, with room for what is printed after it.
pub fn summary_above(
    diagnosis: &Diagnosis,
    run: &str,
    closing: &str,
    language: Language,
    width: usize,
    rows: Option<u16>,
    colour: bool,
) -> String {
    // A blank line before, and the prompt after.
    let added = (taken(closing, width) + 2).max(ADDED_ROWS);
    let room = rows.map_or(ROWS, usize::from).saturating_sub(added);
    let mut text = String::new();
    for limits in &LIMITS {
        text = within(diagnosis, run, limits, language, width, colour);
        if taken(&text, width) <= room {
            break;
        }
    }
    text
}

/// Rows of the terminal: a path that is wider than it takes several.
fn taken(text: &str, width: usize) -> usize {
    let rows = |line: &str| super::width::width(line).div_ceil(width.max(1)).max(1);
    text.lines().map(rows).sum()
}

fn within(
    diagnosis: &Diagnosis,
    run: &str,
    limits: &Limits,
    language: Language,
    width: usize,
    colour: bool,
) -> String {
    let paint = Paint { colour };
    let first = diagnosis
        .findings
        .first()
        .map(|finding| shortened(finding, limits));
    // Colors are not cells: what is painted is measured without them.
    let mut text = super::findings(first.as_slice(), language, width, colour);
    let others: Vec<&Finding> = diagnosis
        .findings
        .iter()
        .skip(1)
        .filter(|finding| finding.kind == Kind::Cause && finding.severity >= Severity::Warning)
        .collect();
    for finding in others.iter().take(limits.others) {
        text += &in_a_line(finding, language, width, paint);
    }
    let hidden = diagnosis
        .findings
        .len()
        .saturating_sub(1 + others.len().min(limits.others));
    if hidden > 0 {
        let more = message!(en: "and {hidden} more: flatout diagnose {run}", zh: "还有 {hidden} 条：flatout diagnose {run}");
        text += &format!("{}\n", paint.tone(Tone::Quiet, more.get(language)));
    }
    if let Some(ranks) = diagnosis.ranks.as_ref().filter(|_| limits.ranks > 0) {
        text.push('\n');
        text += &super::ranks(ranks, limits.ranks, language, width, colour);
    }
    if let Some(account) = &diagnosis.account {
        text.push('\n');
        text += &super::account(account, limits.lines, language, width, colour);
    } else if !diagnosis.time.rows.is_empty() && limits.detail {
        text.push('\n');
        text += &super::time_table(&diagnosis.time, language, colour);
    }
    text
}

/// The first finding without what does not fit, and without its command: that is the last line of the screen.
fn shortened(finding: &Finding, limits: &Limits) -> Finding {
    let mut finding = finding.clone();
    finding
        .fixes
        .retain(|fix| !matches!(fix, Fix::Command { .. } | Fix::Refused { .. }));
    finding.fixes.truncate(limits.fixes);
    let named = finding.places.first().cloned();
    for fix in &mut finding.fixes {
        if let Fix::Code { place, .. } = fix {
            // It is under `where` already.
            place.take_if(|place| Some(&*place) == named.as_ref());
        }
    }
    finding.evidence.truncate(limits.evidence);
    finding.places.truncate(limits.places);
    finding.lint.truncate(limits.evidence);
    if !limits.detail {
        finding.detail = Message::default();
    }
    finding
}

/// `! Evaluation takes 14% of the time …  train.py:43  [evaluation-too-often]`
fn in_a_line(finding: &Finding, language: Language, width: usize, paint: Paint) -> String {
    let (sign, _) = words::severity(finding.severity);
    let place = finding.places.first().map_or_else(String::new, |place| {
        let name = place.file.file_name().unwrap_or(place.file.as_os_str());
        format!("  {}:{}", name.to_string_lossy(), place.line)
    });
    let line = printable(&format!(
        "{sign} {}{place}  [{}]",
        finding.title.get(language),
        finding.rule
    ));
    let mut text = String::new();
    for (index, part) in wrap(&line, width.saturating_sub(2)).iter().enumerate() {
        text += &format!("{}{part}\n", if index == 0 { "" } else { "  " });
    }
    let tone = match finding.severity {
        Severity::Critical => Tone::Bad,
        Severity::Warning => Tone::Warning,
        Severity::Information => Tone::Name,
    };
    text.replacen(sign, &paint.tone(tone, sign), 1)
}

/// What to type after a look from outside.
pub fn next_command_of_monitor() -> Message {
    message!(
        en: "Next, to see the lines of code responsible: flatout run -- COMMAND",
        zh: "下一步，查看对应的代码行：flatout run -- 命令"
    )
}

/// What to type next; `run` is what commands take for this record.
pub fn next_command(diagnosis: &Diagnosis, run: &str) -> Message {
    let first = diagnosis.findings.first();
    let fixes = first.map(|finding| finding.fixes.as_slice()).unwrap_or_default();
    let command = fixes.iter().find_map(|fix| match fix {
        Fix::Command { command, .. } => Some(command.clone()),
        _ => None,
    });
    if let Some(command) = command {
        return message!(en: "Next: {command}", zh: "下一步：{command}");
    }
    match first {
        Some(finding) if finding.kind == Kind::Cause => {
            let rule = &finding.rule;
            message!(
                en: "Next: flatout explain {rule}",
                zh: "下一步：flatout explain {rule}"
            )
        }
        _ => message!(en: "Next: flatout report {run}", zh: "下一步：flatout report {run}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_record::Record;
    use std::path::Path;

    #[test]
    fn what_is_printed_after_it_has_room() {
        let faults = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../faults");
        let record = Record::open(&faults.join("in_process_images/record")).unwrap();
        let found = flatout_diagnose::diagnose(&record.load());
        let closing = "  loader.prefetch_factor not tried: the measurements predict no gain\n".repeat(14);
        let rows = |closing: &str| {
            let text = summary_above(&found, "last", closing, Language::English, 80, Some(40), false);
            taken(&text, 80) + taken(closing, 80) + 2
        };
        assert!(rows(&closing) <= 40, "{}", rows(&closing));
        assert!(rows(&closing) > rows("") - 14);
    }

    #[test]
    fn the_summary_of_every_labeled_program_fits_on_one_screen() {
        let faults = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../faults");
        let mut seen = 0;
        for group in [faults.clone(), faults.join("lines")] {
            for entry in std::fs::read_dir(group).unwrap().flatten() {
                for name in ["record", "record-gpu"] {
                    let Ok(record) = Record::open(&entry.path().join(name)) else {
                        continue;
                    };
                    let found = flatout_diagnose::diagnose(&record.load());
                    for language in [Language::English, Language::Chinese] {
                        for rows in [40, 24] {
                            let text = summary(&found, "last", language, 80, Some(rows), false);
                            let all = taken(&text, 80) + ADDED_ROWS;
                            assert!(
                                all <= usize::from(rows),
                                "{}: {all} rows\n{text}",
                                entry.path().display()
                            );
                        }
                    }
                    seen += 1;
                }
            }
        }
        assert!(seen > 60, "{seen}");
    }
}
