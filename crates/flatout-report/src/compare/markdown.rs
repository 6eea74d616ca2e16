//! A comparison as Markdown, for a pull request.

use super::change;
use super::text::{fate, number};
use super::{Comparison, Row};
use crate::markdown::{code, escape};
use flatout_compare::Outcome;
use flatout_core::{Language, Message, message, units};

pub fn markdown(comparison: &Comparison, language: Language) -> String {
    let say = |message: &Message| escape(message.get(language));
    let mut text = String::new();
    for run in &comparison.runs {
        text += &format!("- **{}** {} ({})\n", run.letter, escape(&run.name), code(&run.id));
    }
    let letters: String = comparison
        .runs
        .iter()
        .map(|run| format!(" {} |", run.letter))
        .collect();
    let change = say(&message!(en: "change", zh: "变化"));
    let dashes = " ---: |".repeat(comparison.runs.len());
    text += &format!("\n| |{letters} {change} |\n| --- |{dashes} --- |\n");
    for row in &comparison.figures {
        let values: String = row
            .values
            .iter()
            .map(|value| {
                let value = value
                    .as_ref()
                    .map_or_else(|| "?".to_owned(), |figure| row.unit.show(figure.mean));
                format!(" {value} |")
            })
            .collect();
        text += &format!(
            "| {} |{values} {} |\n",
            say(&row.name),
            changes(row, comparison, language)
        );
    }
    if let Some(loss) = &comparison.loss {
        let samples = units::count(loss.samples);
        let name = say(&message!(en: "loss after {samples} samples", zh: "{samples} 个样本之后的损失"));
        let values: String = loss
            .losses
            .iter()
            .map(|loss| loss.map_or_else(|| " ? |".to_owned(), |loss| format!(" {loss:.4} |")))
            .collect();
        text += &format!("| {name} |{values} |\n");
    }
    if !comparison.findings.is_empty() {
        text += &format!("\n**{}**\n\n", say(&message!(en: "Findings", zh: "诊断结论")));
        for row in &comparison.findings {
            let (sign, word, _) = fate(row.fate);
            text += &format!(
                "- {sign} {}: {}{} ({})\n",
                say(&word),
                escape(&number(row, language)),
                say(&row.title),
                code(&row.rule)
            );
        }
    }
    if !comparison.settings.is_empty() {
        let title = say(&message!(en: "Settings that differ", zh: "不同的设置"));
        let left = " --- |".repeat(comparison.runs.len());
        text += &format!("\n**{title}**\n\n| |{letters}\n| --- |{left}\n");
        for row in &comparison.settings {
            let values: String = row
                .values
                .iter()
                .map(|value| format!(" {} |", value.as_deref().map_or_else(|| "–".to_owned(), code)))
                .collect();
            text += &format!("| {} |{values}\n", escape(&row.setting));
        }
    }
    text.push('\n');
    for note in &comparison.notes {
        text += &format!("{}\n\n", say(note));
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// `4.90× (4.71× – 5.12×)`, a run each.
fn changes(row: &Row, comparison: &Comparison, language: Language) -> String {
    let several = comparison.runs.len() > 2;
    let said: Vec<String> = row
        .changes
        .iter()
        .zip(&comparison.runs)
        .filter_map(|(change, run)| {
            let change = change.as_ref()?;
            let outcome = change.outcome.name();
            let word = outcome.get(language);
            let text = if change.outcome == Outcome::Noise {
                word.to_owned()
            } else {
                let interval = change::show_interval(change, row.unit)
                    .map_or_else(String::new, |interval| format!(" ({interval})"));
                format!("**{}**{interval} {word}", change::show(change, row.unit))
            };
            Some(if several {
                format!("{}: {text}", run.letter)
            } else {
                text
            })
        })
        .collect();
    said.join("; ")
}
