//! Colour for text that is printed, not drawn: a few tones with a meaning, or none at all.

/// What a colour says. Nothing may be said by colour alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Good,
    Warning,
    Bad,
    /// Names: rules, settings, places.
    Name,
    /// What may be passed over.
    Quiet,
    Strong,
}

/// Paints, or leaves the text as it is.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    pub colour: bool,
}

impl Paint {
    pub fn tone(self, tone: Tone, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Good => "32",
            Tone::Warning => "33",
            Tone::Bad => "1;31",
            Tone::Name => "36",
            Tone::Quiet => "2",
            Tone::Strong => "1",
        };
        flatout_core::text::colored(code, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_core::text::visible;

    #[test]
    fn without_colour_nothing_is_added() {
        assert_eq!(Paint { colour: false }.tone(Tone::Bad, "hot"), "hot");
        assert_eq!(
            visible(&Paint { colour: true }.tone(Tone::Bad, "hot")),
            "\x1b[1;31mhot\x1b[0m"
        );
        assert_eq!(Paint { colour: true }.tone(Tone::Bad, ""), "");
    }
}
