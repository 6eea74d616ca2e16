//! The first and the last line, and what stands where there is no GPU.

use super::canvas::{Canvas, piece, rows, toned};
use crate::screen::State;
use crate::watch::Speed;
use flatout_core::{message, units};
use flatout_report::text::Tone;
use flatout_report::text::width::{printable, width, wrap};
use ratatui_core::layout::Rect;

/// ` flatout monitor · train · 2 min 35 s · every 1 s            ● recording`
pub fn header(state: &State, canvas: &mut Canvas, area: Rect) {
    if area.height == 0 {
        return;
    }
    let picture = state.picture();
    let title = &state.title;
    let mut pieces = vec![toned(format!(" flatout {title} "), Tone::Strong)];
    let mut part = |text: String| {
        pieces.push(toned(" · ", Tone::Quiet));
        pieces.push(piece(text));
    };
    if !picture.info.name.is_empty() && picture.info.name != *title {
        part(printable(&picture.info.name));
    }
    if let Some(host) = &picture.info.host {
        part(printable(&host.name));
    }
    part(units::duration(picture.sample.t.round()));
    if let Some(interval) = picture.info.interval_s {
        let interval = units::duration(interval);
        part(
            state
                .say(&message!(en: "every {interval}", zh: "每 {interval} 采样"))
                .to_owned(),
        );
    }
    let used: usize = pieces.iter().map(|(text, _)| width(text)).sum();
    canvas.pieces(area, &pieces);
    let used = (used as u16).min(area.width);
    let rest = Rect {
        x: area.x + used,
        width: area.width - used,
        ..area
    };
    canvas.pieces_right(rest, &status(state));
}

fn status(state: &State) -> Vec<(String, Option<Tone>)> {
    let picture = state.picture();
    let mut pieces = Vec::new();
    if picture.missed > 0 {
        let missed = picture.missed;
        pieces.push(toned(
            state.say(&message!(en: " missed {missed} ", zh: " 漏采 {missed} ")),
            Tone::Warning,
        ));
    }
    if state.is_paused() {
        pieces.push(toned(
            state.say(&message!(en: " ‖ paused ", zh: " ‖ 已暂停 ")),
            Tone::Warning,
        ));
    } else if let Some(speed) = picture.speed {
        let text = match speed {
            Speed::Times(factor) => format!(" ▶ ×{} ", units::significant(factor)),
            Speed::Fastest => " ▶▶ ".to_owned(),
        };
        pieces.push(toned(text, Tone::Name));
    } else if !picture.remarks.is_empty() {
        pieces.push(toned(" ● ", Tone::Bad));
        pieces.push(piece(state.say(&message!(en: "recording ", zh: "记录中 "))));
    }
    pieces
}

/// The keys, then what the record or the GPUs have to say.
pub fn footer(state: &State, canvas: &mut Canvas, area: Rect) {
    if area.height == 0 {
        return;
    }
    let sort = state.say(&state.sort.name()).to_owned();
    let pause = if state.is_paused() {
        message!(en: "resume", zh: "继续")
    } else {
        message!(en: "pause", zh: "暂停")
    };
    let mut keys = vec![
        ("q", message!(en: "quit", zh: "退出")),
        ("p", pause),
        ("s", message!(en: "sort: {sort}", zh: "排序：{sort}")),
        ("h", message!(en: "help", zh: "帮助")),
    ];
    if state.picture().speed.is_some() {
        keys.insert(2, ("+-", message!(en: "speed", zh: "速度")));
    }
    let mut x = area.x + 1;
    for (key, what) in keys {
        let text = format!(" {}  ", state.say(&what));
        if x + (width(key) + width(&text)) as u16 + 2 > area.right() {
            return;
        }
        x += canvas.text(x, area.y, 4, &format!(" {key} "), canvas.theme.key());
        x += canvas.text(x, area.y, area.width, &text, canvas.style(None));
    }
    let picture = state.picture();
    let newest = picture
        .messages
        .back()
        .map(|message| state.say(message).lines().next().unwrap_or("").to_owned());
    let (said, tone) = match newest {
        Some(message) if !picture.history.is_empty() => (message, Tone::Warning),
        _ => (picture.remarks.join(" · "), Tone::Quiet),
    };
    let room = area.right().saturating_sub(x + 1);
    if room >= 12 {
        let said = flatout_report::text::width::cut(&printable(&said), usize::from(room));
        canvas.pieces_right(
            Rect {
                x,
                width: room,
                ..area
            },
            &[toned(said, tone)],
        );
    }
}

pub fn no_gpu(state: &State, canvas: &mut Canvas, area: Rect) {
    let picture = state.picture();
    let said = match picture.messages.front() {
        Some(message) => state.say(message).to_owned(),
        None => state
            .say(&message!(en: "looking for GPUs …", zh: "正在查找 GPU …"))
            .to_owned(),
    };
    let mut areas = rows(area);
    if let Some(rule) = areas.next() {
        canvas.rule(rule, "GPU", "");
    }
    for (row, line) in areas.zip(wrap(&said, usize::from(area.width.saturating_sub(2)))) {
        canvas.pieces(
            Rect {
                x: row.x + 1,
                width: row.width.saturating_sub(1),
                ..row
            },
            &[piece(line)],
        );
    }
}
