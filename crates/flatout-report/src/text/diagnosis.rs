//! A whole diagnosis: the findings, then where the time went.

use super::{Align, Paint, Table, Tone};
use crate::words;
use flatout_core::{Finding, Kind, Language, message, units};
use flatout_diagnose::Diagnosis;
use flatout_diagnose::analysis::time::TimeTable;
use flatout_diagnose::verdict::Verdict;

/// Lines of the account.
const MOST_LINES: usize = 7;
/// Ranks side by side.
const MOST_RANKS: usize = 64;
/// Cells of the longest bar.
const BAR_CELLS: f64 = 24.0;
/// A smaller share is not worth a line of its own; it is in the sum below.
const SHOWN_SHARE: f64 = 0.0005;

pub fn diagnosis(diagnosis: &Diagnosis, language: Language, width: usize, colour: bool) -> String {
    if let Some(verdict) = &diagnosis.monitor {
        return monitored(verdict, &diagnosis.findings, language, width, colour);
    }
    let mut text = super::findings(&diagnosis.findings, language, width, colour);
    if let Some(ranks) = &diagnosis.ranks {
        text.push('\n');
        text += &super::ranks(ranks, MOST_RANKS, language, width, colour);
    }
    if let Some(account) = &diagnosis.account {
        text.push('\n');
        text += &super::account(account, MOST_LINES, language, width, colour);
    }
    if let Some(workers) = &diagnosis.workers {
        text.push('\n');
        text += &super::workers(workers, language, width, colour);
    }
    if !diagnosis.time.rows.is_empty() {
        text.push('\n');
        text += &time_table(&diagnosis.time, language, colour);
    }
    if let Some(profile) = &diagnosis.profile {
        text.push('\n');
        text += &super::profile(profile, language, colour);
    }
    if let Some(window) = &diagnosis.window {
        text.push('\n');
        for line in super::width::wrap(words::window(window).get(language), width.max(40)) {
            text += &format!("{}\n", Paint { colour }.tone(Tone::Quiet, &line));
        }
    }
    text
}

/// A record made from outside: the monitor's verdict, what rules found in it, and the command that shows more.
pub fn monitored(
    verdict: &Verdict,
    findings: &[Finding],
    language: Language,
    width: usize,
    colour: bool,
) -> String {
    let mut text = super::verdict(verdict, language, width, colour);
    let causes: Vec<Finding> = findings
        .iter()
        .filter(|finding| finding.kind != Kind::Verdict)
        .cloned()
        .collect();
    if !causes.is_empty() {
        text += &format!("\n{}", super::findings(&causes, language, width, colour));
    }
    let next = super::next_command_of_monitor();
    text + &format!("\n{}\n", next.get(language))
}

/// Where every second of the run went: the rows add up to 100%.
pub fn time_table(time: &TimeTable, language: Language, colour: bool) -> String {
    let paint = Paint { colour };
    let total = units::duration(time.total_s);
    let head = message!(en: "Where the {total} went", zh: "{total} 的去向");
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Right, Align::Left]).indented(2);
    for row in time.rows.iter().filter(|row| row.share >= SHOWN_SHARE) {
        let cells = (row.share * BAR_CELLS).round() as usize;
        let tone = (row.key == "unexplained").then_some(Tone::Quiet);
        table.toned_row([
            (row.name.get(language), tone),
            (&format!("{:.1} s", row.seconds), None),
            (&units::percent(row.share), Some(Tone::Strong)),
            (&"█".repeat(cells), Some(Tone::Quiet)),
        ]);
    }
    format!(
        "{}\n{}",
        paint.tone(Tone::Strong, head.get(language)),
        table.render(paint)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_record::{ExitInfo, Phase, PhaseTime, RunData, StepTick};
    use std::collections::BTreeMap;

    #[test]
    fn time_adds_up_in_both_languages() {
        let mut data = RunData::default();
        let time = |ms| PhaseTime {
            ms,
            ..PhaseTime::default()
        };
        for second in 0..20 {
            data.steps.push(StepTick {
                t: 3.0 + f64::from(second),
                dt: 1.0,
                steps: 10,
                phases: BTreeMap::from([(Phase::Data, time(600.0)), (Phase::Compute, time(300.0))]),
                ..StepTick::default()
            });
        }
        data.info.exit = Some(ExitInfo {
            t: 22.0,
            code: Some(0),
            signal: None,
        });
        let text = diagnosis(&flatout_diagnose::diagnose(&data), Language::English, 80, false);
        assert!(text.contains("Where the 22 s went"), "{text}");
        assert!(
            text.contains("unexplained") && text.contains("loader-starved"),
            "{text}"
        );
        let chinese = diagnosis(&flatout_diagnose::diagnose(&data), Language::Chinese, 80, false);
        assert!(chinese.contains("等待 batch"), "{chinese}");
    }
}
