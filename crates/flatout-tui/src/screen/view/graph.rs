//! A graph of shares over time, newest at the right, in eighths of a cell. Where the SMs' part is known it stands bright before
//! the grey of utilisation: a GPU that is "100% busy" with idle SMs is grey all over.

use super::canvas::Canvas;
use crate::screen::state::Point;
use crate::screen::theme::high_is_good;
use flatout_report::text::Tone;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Style};
use std::collections::VecDeque;

const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

pub fn draw(canvas: &mut Canvas, area: Rect, history: &VecDeque<Point>, tone: Option<Tone>) {
    for (back, point) in history.iter().rev().take(usize::from(area.width)).enumerate() {
        let x = area.right() - 1 - back as u16;
        if let Some(share) = point.share {
            let tone = tone.unwrap_or_else(|| high_is_good(f64::from(share)));
            column(canvas, x, area, share, point.inner, tone);
        }
    }
}

fn column(canvas: &mut Canvas, x: u16, area: Rect, share: f32, inner: Option<f32>, tone: Tone) {
    let eighths = |share: f32| (share.clamp(0.0, 1.0) * f32::from(area.height) * 8.0).round() as u16;
    // A known 0 is a thin line; only the unknown leaves a gap.
    let outer = eighths(share).max(1);
    let inner = inner.filter(|_| canvas.theme.colour).map(eighths);
    for row in 0..area.height {
        let below = (area.height - 1 - row) * 8;
        let fill = |height: u16| usize::from(height.saturating_sub(below).min(8));
        let (outer, inner) = (fill(outer), inner.map(fill));
        if outer == 0 && inner.unwrap_or(0) == 0 {
            continue;
        }
        let bright = canvas.theme.style(tone);
        let grey = Style::default().fg(Color::DarkGray);
        let (symbol, style) = match inner {
            None => (EIGHTHS[outer], bright),
            Some(0) => (EIGHTHS[outer], grey),
            Some(inner) if inner < 8 && outer == 8 => (EIGHTHS[inner], bright.bg(Color::DarkGray)),
            Some(inner) => (EIGHTHS[inner], bright),
        };
        canvas.text(x, area.y + row, 1, symbol, style);
    }
}
