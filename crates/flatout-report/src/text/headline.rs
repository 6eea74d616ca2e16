//! The headline of a run as a table of text.

use super::{Align, Paint, Table, Tone};
use crate::digest::Digest;
use crate::words;
use flatout_core::Language;

/// Name, ending, what is wrong with the record, and the figures.
pub fn headline(digest: &Digest, language: Language, width: usize, colour: bool) -> String {
    let paint = Paint { colour };
    let info = &digest.info;
    let name = if info.name.is_empty() {
        &info.id
    } else {
        &info.name
    };
    let mut text = format!("{}\n", paint.tone(Tone::Strong, &super::width::printable(name)));
    for line in super::width::wrap(words::about_run(info, digest.length_s).get(language), width) {
        text += &format!("{}\n", paint.tone(Tone::Quiet, &line));
    }
    for defect in &digest.defects {
        for line in super::width::wrap(&format!("! {}", defect.say.get(language)), width) {
            text += &format!("{}\n", paint.tone(Tone::Warning, &line));
        }
    }
    if let Some(verdict) = &digest.diagnosis.monitor {
        let findings = &digest.diagnosis.findings;
        return text + "\n" + &super::monitored(verdict, findings, language, width, colour);
    }
    if digest.figures.is_empty() {
        return text + &ranks(digest, language, width, colour);
    }
    text.push('\n');
    let mut table = Table::new(&[Align::Right, Align::Left, Align::Left]).indented(2);
    for figure in &digest.figures {
        let spread = figure.std.map(|std| format!(" ± {}", figure.unit.show(std)));
        let value = format!("{}{}", figure.unit.show(figure.mean), spread.unwrap_or_default());
        let interval = figure.interval.map_or_else(String::new, |(low, high)| {
            format!("({} – {})", figure.unit.show(low), figure.unit.show(high))
        });
        table.toned_row([
            (&value, Some(Tone::Strong)),
            (figure.name.get(language), None),
            (&interval, Some(Tone::Quiet)),
        ]);
    }
    text + &table.render(paint) + &ranks(digest, language, width, colour)
}

fn ranks(digest: &Digest, language: Language, width: usize, colour: bool) -> String {
    if digest.ranks.rows.is_empty() {
        return String::new();
    }
    format!(
        "\n{}",
        crate::analyze::text::ranks(&digest.ranks, language, width, colour)
    )
}
