//! The ranks of a run side by side, per step.

use super::width::wrap;
use super::{Align, Paint, Table, Tone};
use flatout_core::{Language, Message, message, units};
use flatout_diagnose::ranks::{RankRow, Ranks};

/// At most this many ranks: the slow one, then those that wait least.
pub fn ranks(ranks: &Ranks, most: usize, language: Language, width: usize, colour: bool) -> String {
    let paint = Paint { colour };
    let mut rows: Vec<&RankRow> = ranks.rows.iter().collect();
    rows.sort_by(|a, b| b.slow.cmp(&a.slow).then(b.late_ms.total_cmp(&a.late_ms)));
    let hidden = rows.len().saturating_sub(most);
    rows.truncate(most);
    rows.sort_by_key(|row| row.rank);
    let title = message!(en: "Ranks, per step", zh: "各 rank，每步");
    let mut text = format!("{}\n", paint.tone(Tone::Strong, title.get(language)));
    let mut table = Table::new(&[
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Left,
    ])
    .indented(2);
    let head = [
        Message::verbatim("rank"),
        message!(en: "own work", zh: "自身的工作"),
        message!(en: "waiting", zh: "等待其他 rank"),
        message!(en: "transferring", zh: "传输"),
        message!(en: "samples", zh: "样本"),
        Message::default(),
    ];
    table.toned_row(
        head.each_ref()
            .map(|name| (name.get(language), Some(Tone::Quiet))),
    );
    let unknown = || "?".to_owned();
    let time = |ms: Option<f64>| ms.map_or_else(unknown, |ms| units::duration(ms / 1e3));
    let mark = message!(en: "✗ slows the others down", zh: "✗ 其他 rank 在等它");
    for row in rows {
        let tone = row.slow.then_some(Tone::Bad);
        table.toned_row([
            (row.rank.to_string().as_str(), Some(Tone::Strong)),
            (&time(row.own_ms), tone),
            (&time(row.wait_ms), None),
            (&time(row.transfer_ms), None),
            (&row.samples.map_or_else(unknown, units::significant), None),
            (if row.slow { mark.get(language) } else { "" }, tone),
        ]);
    }
    text += &table.render(paint);
    if hidden > 0 {
        let more = message!(en: "and {hidden} more ranks", zh: "另有 {hidden} 个 rank");
        text += &format!("  {}\n", paint.tone(Tone::Quiet, more.get(language)));
    }
    for note in &ranks.notes {
        for line in wrap(note.get(language), width.saturating_sub(2).max(20)) {
            text += &format!("  {}\n", paint.tone(Tone::Quiet, &line));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(rank: u32, slow: bool) -> RankRow {
        RankRow {
            rank,
            steps: 100,
            step_ms: 40.0,
            own_ms: Some(if slow { 38.0 } else { 2.0 }),
            wait_ms: Some(if slow { 0.0 } else { 36.0 }),
            transfer_ms: None,
            data_ms: 1.0,
            late_ms: if slow { 36.0 } else { 0.0 },
            samples: Some(32.0),
            slow,
        }
    }

    #[test]
    fn shows_the_slow_rank_of_many() {
        let all = Ranks {
            world: 9,
            shown: 7,
            rows: (0..9).map(|rank| row(rank, rank == 7)).collect(),
            slow: None,
            notes: vec![message!(en: "a note", zh: "说明")],
        };
        let text = ranks(&all, 4, Language::English, 80, false);
        let slow = text
            .lines()
            .find(|line| line.contains("slows the others"))
            .unwrap();
        assert!(slow.trim_start().starts_with("7     38 ms"), "{text}");
        assert!(
            text.contains("and 5 more ranks") && text.contains("a note"),
            "{text}"
        );
        assert!(text.contains('?'), "what is not known is not 0: {text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
