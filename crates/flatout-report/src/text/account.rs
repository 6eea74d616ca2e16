//! Where the steady steps went: activities with their share, and the costliest lines of each.

use super::width::printable;
use super::{Align, Paint, Table, Tone};
use flatout_core::{Language, message, text::shortened, units};
use flatout_diagnose::account::activity::Activity;
use flatout_diagnose::account::{Account, Row};

/// Cells of the longest bar.
const BAR_CELLS: f64 = 20.0;
/// An activity or a line with less is left out; it is in the sum of the others.
const SHOWN_SHARE: f64 = 0.03;
/// Lines in all.
const MOST_LINES: usize = 7;

pub fn account(account: &Account, language: Language, width: usize, colour: bool) -> String {
    let paint = Paint { colour };
    let steps = account.steps;
    let head = if steps > 0 {
        let step = units::duration(account.wall_s / steps as f64);
        message!(en: "Where a step goes ({step} per step, {steps} steady steps)", zh: "一步的时间去向（每步 {step}，共 {steps} 个稳定步）")
    } else {
        let seconds = units::duration(account.wall_s);
        message!(en: "Where the time goes ({seconds} looked at)", zh: "时间去向（统计了 {seconds}）")
    };
    let shown: Vec<(Activity, f64)> = account
        .by_activity()
        .into_iter()
        .filter(|(_, share)| *share >= SHOWN_SHARE)
        .collect();
    let mut told: Vec<&Row> = account
        .rows
        .iter()
        .filter(|row| row.place.is_some() && row.share >= SHOWN_SHARE)
        .take(MOST_LINES)
        .collect();
    let mut text = format!("{}\n", paint.tone(Tone::Strong, head.get(language)));
    let mut table = Table::new(&[Align::Right, Align::Left, Align::Left]).indented(2);
    for (activity, share) in shown {
        let bar = "█".repeat((share * BAR_CELLS).round() as usize);
        table.toned_row([
            (&units::percent(share), Some(Tone::Strong)),
            (activity.name().get(language), None),
            (&bar, Some(Tone::Quiet)),
        ]);
        let (own, rest): (Vec<&Row>, Vec<&Row>) = told.into_iter().partition(|row| row.activity == activity);
        told = rest;
        for row in own {
            let room = width.saturating_sub(14);
            table.toned_row([
                ("", None),
                (&line(row, room), Some(Tone::Name)),
                (&units::percent(row.share), Some(Tone::Quiet)),
            ]);
        }
    }
    text += &table.render(paint);
    text
}

/// `train.py:36  scale = torch.load(self.scale)`.
fn line(row: &Row, room: usize) -> String {
    let place = row.place.as_ref().map_or_else(String::new, |place| {
        let name = place.file.file_name().map_or_else(
            || place.file.display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        );
        format!("{name}:{}", place.line)
    });
    let what = match (&row.text, &row.via) {
        (Some(text), _) => text.clone(),
        (None, Some(via)) => via.clone(),
        (None, None) => row.function.clone().unwrap_or_default(),
    };
    shortened(&printable(&format!("  {place}  {what}")), room.max(30))
}
