//! Finds, in Python source and configuration files, what will keep the GPU idle: before a run, without a GPU.
//!
//! ```text
//! files ──discover──▶ source ──python──▶ tree + bindings ─┐
//!                        └────config──▶ keys and values ──┴─▶ project ──rules──▶ findings ──suppress──▶ format / fix
//! ```
//!
//! `project` knows who imports whom, what every call calls, which loops train and which values are known; `rules/` ask it.
//! Nothing here runs Python, reads a record or a GPU; findings of a run are joined to these by the command.

mod by_line;
pub mod config;
pub mod context;
mod discover;
mod edits;
mod epochs;
pub mod fix;
pub mod format;
pub mod join;
mod lint;
mod loaders;
mod notebook;
pub mod parallel;
pub mod patch;
pub mod project;
pub mod python;
pub mod report;
pub mod rules;
pub mod settings;
pub mod source;
mod step_calls;
mod suppress;
#[cfg(test)]
mod testing;
pub mod written;

pub use by_line::by_line;
pub use lint::{LintError, Outcome, lint};
pub use settings::Settings;

/// The words of a name: `running_loss`, `runningLoss` and `RunningLoss` are two.
pub(crate) fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split('_').flat_map(|part| {
        let mut rest = part;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let mut previous_lower = false;
            let end = rest
                .char_indices()
                .find(|(_, character)| {
                    let new_word = previous_lower && character.is_uppercase();
                    previous_lower = character.is_lowercase() || character.is_ascii_digit();
                    new_word
                })
                .map_or(rest.len(), |(at, _)| at);
            let (word, after) = rest.split_at(end);
            rest = after;
            Some(word)
        })
    })
}

/// Source on one line, shortened: for messages.
pub(crate) fn brief(text: &str) -> String {
    const LONGEST: usize = 60;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    flatout_core::text::shortened(&line, LONGEST)
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_split_into_words() {
        let words = |name| super::words(name).collect::<Vec<_>>();
        assert_eq!(words("running_lossItem"), ["running", "loss", "Item"]);
        assert_eq!(words("__x__"), ["x"]);
        assert!(words("").is_empty());
    }
}
