//! A buffer with a pen: text in tones, rules with a title, meters.

use crate::screen::Theme;
use flatout_report::text::Tone;
use flatout_report::text::width::{cut, width};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

pub struct Canvas<'a> {
    pub buffer: &'a mut Buffer,
    pub theme: Theme,
    bounds: Rect,
}

/// A piece of a line.
pub type Piece = (String, Option<Tone>);

pub fn piece(text: impl Into<String>) -> Piece {
    (text.into(), None)
}

pub fn toned(text: impl Into<String>, tone: Tone) -> Piece {
    (text.into(), Some(tone))
}

const EIGHTHS: [&str; 9] = [" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];

impl<'a> Canvas<'a> {
    pub fn new(buffer: &'a mut Buffer, bounds: Rect, theme: Theme) -> Self {
        Self {
            buffer,
            theme,
            bounds,
        }
    }

    pub fn style(&self, tone: Option<Tone>) -> Style {
        tone.map_or_else(Style::default, |tone| self.theme.style(tone))
    }

    /// Writes at most `cells`, cut with `…`; returns how many it took.
    pub fn text(&mut self, x: u16, y: u16, cells: u16, text: &str, style: Style) -> u16 {
        if y >= self.bounds.bottom() || x >= self.bounds.right() {
            return 0;
        }
        let cells = cells.min(self.bounds.right() - x);
        let text = cut(text, usize::from(cells));
        self.buffer.set_stringn(x, y, &text, usize::from(cells), style);
        width(&text) as u16
    }

    /// Pieces one after the other from the left. A piece that does not fit any more is left out with all behind it.
    pub fn pieces(&mut self, area: Rect, pieces: &[Piece]) {
        let mut x = area.x;
        for (text, tone) in pieces {
            let cells = width(text) as u16;
            if x + cells > area.right() {
                if x == area.x {
                    self.text(x, area.y, area.width, text, self.style(*tone));
                }
                return;
            }
            x += self.text(x, area.y, cells, text, self.style(*tone));
        }
    }

    /// The same, ending at the right edge; nothing where that would cover more than `area`.
    pub fn pieces_right(&mut self, area: Rect, pieces: &[Piece]) {
        let cells: u16 = pieces.iter().map(|(text, _)| width(text) as u16).sum();
        if cells <= area.width {
            self.pieces(
                Rect {
                    x: area.right() - cells,
                    width: cells,
                    ..area
                },
                pieces,
            );
        }
    }

    /// `── title ─────────── right ──`
    pub fn rule(&mut self, area: Rect, title: &str, right: &str) {
        let quiet = self.style(Some(Tone::Quiet));
        self.text(
            area.x,
            area.y,
            area.width,
            &"─".repeat(usize::from(area.width)),
            quiet,
        );
        let strong = self.style(Some(Tone::Strong));
        let used = self.text(
            area.x + 1,
            area.y,
            area.width.saturating_sub(2),
            &format!(" {title} "),
            strong,
        );
        let right = format!(" {right} ");
        let cells = width(&right) as u16;
        if right.trim() != "" && used + cells + 6 <= area.width {
            self.text(area.right() - cells - 1, area.y, cells, &right, quiet);
        }
    }

    /// A bar in eighths of a cell; unknown is an empty one.
    pub fn meter(&mut self, x: u16, y: u16, cells: u16, share: Option<f64>, tone: Tone) {
        let eighths = (share.unwrap_or(0.0).clamp(0.0, 1.0) * f64::from(cells) * 8.0).round() as usize;
        let (style, empty) = (self.theme.style(tone), self.theme.empty());
        for index in 0..usize::from(cells) {
            let fill = eighths.saturating_sub(index * 8).min(8);
            let (symbol, style) = if fill == 0 {
                ("·", empty)
            } else {
                (EIGHTHS[fill], style)
            };
            self.text(x + index as u16, y, 1, symbol, style);
        }
    }
}

/// The rows of an area, from the top.
pub fn rows(area: Rect) -> impl Iterator<Item = Rect> {
    (0..area.height).map(move |row| Rect {
        y: area.y + row,
        height: 1,
        ..area
    })
}
