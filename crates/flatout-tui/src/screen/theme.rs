//! Tones on the screen. The sixteen colours of the terminal's own palette, or none: then bold, dim and reversed have to do.

use flatout_report::text::Tone;
use ratatui_core::style::{Color, Modifier, Style};

#[derive(Clone, Copy, Debug)]
pub struct Theme {
    pub colour: bool,
}

impl Theme {
    pub fn style(self, tone: Tone) -> Style {
        let style = Style::default();
        let coloured = |colour| if self.colour { style.fg(colour) } else { style };
        match tone {
            Tone::Good => coloured(Color::Green),
            Tone::Warning => coloured(Color::Yellow),
            Tone::Bad => coloured(Color::Red),
            Tone::Name => coloured(Color::Cyan),
            Tone::Quiet => style.add_modifier(Modifier::DIM),
            Tone::Strong => style.add_modifier(Modifier::BOLD),
        }
    }

    /// Something that can be pressed.
    pub fn key(self) -> Style {
        Style::default().add_modifier(Modifier::REVERSED)
    }

    /// The part of a bar that is not filled.
    pub fn empty(self) -> Style {
        self.style(Tone::Quiet)
    }
}

/// A share that should be high: green from 85%, red below 50%.
pub fn high_is_good(share: f64) -> Tone {
    match share {
        share if share >= 0.85 => Tone::Good,
        share if share >= 0.5 => Tone::Warning,
        _ => Tone::Bad,
    }
}

/// A share that should not be too high.
pub fn full_is_bad(share: f64) -> Tone {
    match share {
        share if share >= 0.97 => Tone::Bad,
        share if share >= 0.92 => Tone::Warning,
        _ => Tone::Good,
    }
}

pub fn heat(celsius: f64) -> Tone {
    match celsius {
        celsius if celsius >= 90.0 => Tone::Bad,
        celsius if celsius >= 85.0 => Tone::Warning,
        _ => Tone::Good,
    }
}
