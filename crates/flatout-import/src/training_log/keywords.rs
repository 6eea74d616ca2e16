//! Which of the words that matter stand in a line, found in one sweep: most lines of a log have none.

use aho_corasick::{AhoCorasick, AhoCorasickKind};

/// What a word is a sign of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found(u16);

impl Found {
    const EPOCH: u16 = 1;
    const TIME: u16 = 2;
    const BAR: u16 = 4;
    const TRACEBACK: u16 = 8;
    const ERROR: u16 = 16;
    const WARNING: u16 = 32;
    const NAN: u16 = 64;
    const STEP_RATE: u16 = 128;
    const STEP: u16 = 256;

    pub fn epoch(self) -> bool {
        self.0 & Self::EPOCH != 0
    }
    pub fn bar(self) -> bool {
        self.0 & Self::BAR != 0
    }
    pub fn step_rate(self) -> bool {
        self.0 & Self::STEP_RATE != 0
    }
    /// A word that may count steps stands in the line.
    pub fn step(self) -> bool {
        self.0 & (Self::STEP | Self::STEP_RATE) != 0
    }
    pub fn traceback(self) -> bool {
        self.0 & Self::TRACEBACK != 0
    }
    pub fn error(self) -> bool {
        self.0 & Self::ERROR != 0
    }
    pub fn warning(self) -> bool {
        self.0 & Self::WARNING != 0
    }
    pub fn nan(self) -> bool {
        self.0 & Self::NAN != 0
    }
    pub fn any_problem(self) -> bool {
        self.0 & (Self::TRACEBACK | Self::ERROR | Self::WARNING | Self::NAN) != 0
    }
    pub fn any_time(self) -> bool {
        self.0 & (Self::EPOCH | Self::TIME | Self::BAR | Self::STEP_RATE) != 0
    }
}

const WORDS: &[(&str, u16)] = &[
    ("epoch", Found::EPOCH),
    ("轮", Found::EPOCH),
    ("time", Found::TIME),
    ("took", Found::TIME),
    ("elapsed", Found::TIME),
    ("duration", Found::TIME),
    (" in ", Found::TIME),
    ("耗时", Found::TIME),
    ("用时", Found::TIME),
    ("时间", Found::TIME),
    ("%|", Found::BAR),
    ("/step", Found::STEP_RATE),
    ("step", Found::STEP),
    ("batch", Found::STEP),
    ("iter", Found::STEP),
    ("traceback (", Found::TRACEBACK),
    ("error", Found::ERROR),
    ("exception", Found::ERROR),
    ("critical", Found::ERROR),
    ("fatal", Found::ERROR),
    ("segmentation", Found::ERROR),
    ("killed", Found::ERROR),
    ("cancelled", Found::ERROR),
    ("out of memory", Found::ERROR),
    ("oom", Found::ERROR),
    ("warn", Found::WARNING),
    ("错误", Found::ERROR),
    ("异常", Found::ERROR),
    ("显存不足", Found::ERROR),
    ("内存不足", Found::ERROR),
    ("警告", Found::WARNING),
    ("nan", Found::NAN),
];

pub struct Keywords {
    automaton: Option<AhoCorasick>,
}

impl Keywords {
    pub fn new() -> Self {
        // A table for every byte: the slower kinds are for patterns by the thousand. It cannot fail with patterns this few.
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .prefilter(false)
            .build(WORDS.iter().map(|(word, _)| word));
        Self {
            automaton: automaton.ok(),
        }
    }

    pub fn find(&self, line: &[u8]) -> Found {
        let mut found = Found::default();
        if let Some(automaton) = &self.automaton {
            for at in automaton.find_iter(line) {
                found.0 |= WORDS[at.pattern().as_usize()].1;
            }
        }
        found
    }
}

/// Lines longer than this are not remembered.
const MOST_REMEMBERED: usize = 512;
/// Lines of one length that are remembered.
const SLOTS: usize = 2;

/// Finds words, and remembers for some lines what was in them. A program prints the same lines over and over with other digits, and
/// no word has a digit: comparing with such a line is many times quicker than the sweep.
pub struct Finder<'a> {
    keywords: &'a Keywords,
    /// By length.
    remembered: Vec<[(Vec<u8>, Found); SLOTS]>,
}

impl<'a> Finder<'a> {
    pub fn new(keywords: &'a Keywords) -> Self {
        Self {
            keywords,
            remembered: vec![Default::default(); MOST_REMEMBERED],
        }
    }

    pub fn find(&mut self, line: &[u8]) -> Found {
        let Some(slots) = self.remembered.get_mut(line.len()) else {
            return self.keywords.find(line);
        };
        if let Some((_, found)) = slots
            .iter()
            .find(|(known, _)| differs_in_digits_only(known, line))
        {
            return *found;
        }
        let found = self.keywords.find(line);
        // The newest comes first.
        slots.rotate_right(1);
        let (known, known_found) = &mut slots[0];
        known.clear();
        known.extend_from_slice(line);
        *known_found = found;
        found
    }
}

/// Without a branch for each byte, so that many are compared at once.
fn differs_in_digits_only(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).fold(true, |same, (a, b)| {
            same & ((a == b) | (a.is_ascii_digit() & b.is_ascii_digit()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_remembered_is_what_is_there(picked in prop::collection::vec((0usize..10, 0u32..1000), 1..200)) {
            let words = ["Epoch ", "loss=", "error ", "nan", " took ", "x", "", "warn", "stop ", "step "];
            let keywords = Keywords::new();
            let mut finder = Finder::new(&keywords);
            for pair in picked.windows(2) {
                let line: String = pair.iter().map(|(word, number)| format!("{}{number}", words[*word])).collect();
                prop_assert_eq!(finder.find(line.as_bytes()), keywords.find(line.as_bytes()), "{}", line);
            }
        }
    }

    #[test]
    fn words_are_found_in_any_case_and_language() {
        let keywords = Keywords::new();
        let found = |line: &str| keywords.find(line.as_bytes());
        assert!(found("EPOCH 3").epoch() && found("第 3 轮").epoch());
        assert!(found("Traceback (most recent call last):").traceback());
        assert!(found("CUDA out of memory").error());
        assert!(found("UserWarning: x").warning());
        assert!(found("loss=NaN").nan());
        assert_eq!(found("12 loss 0.31"), Found::default());
        assert!(found("step 12").step() && found("5s 2ms/step").step() && !found("step 12").any_time());
    }
}
