//! A diagnosis on one screen: the headline with its line and fix, the other causes in a line each, where a step goes, and the
//! command to run next as the last line.

use super::width::{printable, wrap};
use super::{Paint, Tone};
use crate::words;
use flatout_core::{Finding, Fix, Kind, Language, Message, Severity, message};
use flatout_diagnose::Diagnosis;

/// Causes shown in a line each, after the first.
const MOST_OTHERS: usize = 4;

pub fn summary(diagnosis: &Diagnosis, language: Language, width: usize, colour: bool) -> String {
    let paint = Paint { colour };
    let mut text = String::new();
    let first = diagnosis.findings.first();
    text += &super::findings(first.map_or(&[], std::slice::from_ref), language, width, colour);
    let others: Vec<&Finding> = diagnosis
        .findings
        .iter()
        .skip(1)
        .filter(|finding| finding.kind == Kind::Cause && finding.severity >= Severity::Warning)
        .collect();
    for finding in others.iter().take(MOST_OTHERS) {
        text += &in_a_line(finding, language, width, paint);
    }
    let hidden = diagnosis
        .findings
        .len()
        .saturating_sub(1 + others.len().min(MOST_OTHERS));
    if hidden > 0 {
        let more = message!(en: "and {hidden} more: flatout diagnose last", zh: "还有 {hidden} 条：flatout diagnose last");
        text += &format!("{}\n", paint.tone(Tone::Quiet, more.get(language)));
    }
    if let Some(account) = &diagnosis.account {
        text.push('\n');
        text += &super::account(account, language, width, colour);
    } else if !diagnosis.time.rows.is_empty() {
        text.push('\n');
        text += &super::time_table(&diagnosis.time, language, colour);
    }
    if let Some(profile) = &diagnosis.profile {
        text.push('\n');
        text += &super::profile(profile, language, colour);
    }
    text
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

/// What to type next.
pub fn next_command(diagnosis: &Diagnosis) -> Message {
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
        _ => message!(en: "Next: flatout report last", zh: "下一步：flatout report last"),
    }
}
