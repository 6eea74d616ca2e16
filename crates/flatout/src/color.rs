//! When to write color: `--color`, then the conventions of <https://no-color.org>, <https://force-color.org> and
//! <https://bixense.com/clicolors>, then whether a person is looking.

use std::ffi::OsString;

/// `--color WHEN`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

impl Color {
    /// The choice on the command line, before anything is parsed: `--help` and mistakes end the parsing.
    pub fn given(arguments: impl Iterator<Item = String>) -> Self {
        match crate::help::value_of("--color", arguments).as_deref() {
            Some("always") => Self::Always,
            Some("never") => Self::Never,
            _ => Self::Auto,
        }
    }

    /// Whether color may be written to a stream.
    pub fn allowed(self, terminal: bool) -> bool {
        self.decided(|name| std::env::var_os(name)).unwrap_or(terminal)
    }

    /// The same for clap's help and errors.
    pub fn of_clap(self) -> clap::ColorChoice {
        match self.decided(|name| std::env::var_os(name)) {
            Some(true) => clap::ColorChoice::Always,
            Some(false) => clap::ColorChoice::Never,
            None => clap::ColorChoice::Auto,
        }
    }

    /// The choice of the flag and the environment; `None` leaves it to the stream.
    fn decided(self, variable: impl Fn(&str) -> Option<OsString>) -> Option<bool> {
        let set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        let on = |name: &str| variable(name).is_some_and(|value| !value.is_empty() && value != "0");
        match self {
            Self::Always => Some(true),
            Self::Never => Some(false),
            Self::Auto if set("NO_COLOR") => Some(false),
            Self::Auto if on("FORCE_COLOR") || on("CLICOLOR_FORCE") => Some(true),
            Self::Auto if variable("CLICOLOR").is_some_and(|value| value == "0") => Some(false),
            Self::Auto => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_wins_then_no_color_then_force_color() {
        let decided = |color: Color, set: &[(&str, &str)]| {
            color.decided(|name| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            })
        };
        assert_eq!(decided(Color::Auto, &[]), None);
        assert_eq!(decided(Color::Always, &[("NO_COLOR", "1")]), Some(true));
        assert_eq!(decided(Color::Never, &[("FORCE_COLOR", "1")]), Some(false));
        assert_eq!(
            decided(Color::Auto, &[("NO_COLOR", "1"), ("FORCE_COLOR", "1")]),
            Some(false)
        );
        assert_eq!(
            decided(Color::Auto, &[("NO_COLOR", ""), ("FORCE_COLOR", "1")]),
            Some(true)
        );
        assert_eq!(decided(Color::Auto, &[("CLICOLOR_FORCE", "1")]), Some(true));
        assert_eq!(decided(Color::Auto, &[("FORCE_COLOR", "0")]), None);
        assert_eq!(decided(Color::Auto, &[("CLICOLOR", "0")]), Some(false));
    }
}
