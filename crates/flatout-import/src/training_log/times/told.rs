//! What a line says of times by itself, whatever stands above it.

use super::super::bar;
use super::super::duration::{self, Found as Duration};
use super::super::keywords::Found;
use super::epoch::{self, Mention};
use super::{LONGEST_S, Part};

/// Numbers looked at in a line; a line with more is data.
const MOST_NUMBERS: usize = 24;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Told {
    #[default]
    Nothing,
    /// A progress bar; what it tells hangs on the one before.
    Bar,
    /// Keras' bar of an epoch that ended after so many seconds.
    Finished(f64),
    Said(Said),
}

/// An epoch that is named, and how many durations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Said {
    pub mention: Option<Mention>,
    pub durations: usize,
}

impl Told {
    /// How many durations of its own the line has.
    pub fn durations(&self) -> usize {
        match self {
            Self::Said(said) => said.durations,
            _ => 0,
        }
    }
}

/// Adds the line's durations to those of the lines before it.
pub fn tell(line: &[u8], found: Found, durations: &mut Vec<(Meaning, f64)>) -> Told {
    if found.bar() {
        return Told::Bar;
    }
    if found.step_rate()
        && let Some(seconds) = bar::keras(line)
    {
        return Told::Finished(seconds);
    }
    let mention = if found.epoch() {
        epoch::mention(line, found.step())
    } else {
        None
    };
    let before = durations.len();
    read_durations(line, mention, durations);
    Told::Said(Said {
        mention,
        durations: durations.len() - before,
    })
}

fn read_durations(line: &[u8], mention: Option<Mention>, durations: &mut Vec<(Meaning, f64)>) {
    let named = mention.filter(|mention| mention.number.is_some());
    let all_may_be = named.is_some_and(|mention| !mention.is_step);
    let mut at = 0;
    for _ in 0..MOST_NUMBERS {
        let Some(start) = duration::next_number(line, at) else {
            break;
        };
        // Most numbers are no times: that is seen by the word before them, before anything is parsed.
        let [word] = duration::words_before::<1>(line, start);
        let can_be = all_may_be || labelled(word).is_some() || is(word, "data");
        let found = if can_be { duration::read(line, start) } else { None };
        let Some(found) = found.filter(|found| found.seconds < LONGEST_S) else {
            at = duration::number_end(line, start);
            continue;
        };
        at = found.end;
        match meaning(line, &found) {
            Meaning::Nothing => {}
            meaning => durations.push((meaning, found.seconds)),
        }
    }
}

/// What a duration is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// `val time`, `checkpoint saved in`, `data_time`.
    Part(Part),
    /// `epoch time`, `每轮时间`.
    Epoch,
    /// `total time`, `training took`.
    Total,
    /// `time`, `took`, `耗时`: of what, the line must say.
    Labelled,
    /// `- 25s`, `(25.3s)`.
    Bare,
    Nothing,
}

fn meaning(line: &[u8], found: &Duration) -> Meaning {
    let [label, before, earlier] = duration::words_before::<3>(line, found.start);
    const ESTIMATES: [&str; 8] = [
        "eta",
        "remaining",
        "left",
        "start",
        "end",
        "current",
        "剩余",
        "预计",
    ];
    if ESTIMATES.iter().any(|word| is(label, word) || is(before, word)) {
        return Meaning::Nothing;
    }
    // ImageNet's example prints `Data  0.003 ( 0.002)` beside `Time`.
    if is(label, "data") && !found.has_unit {
        return Meaning::Part(Part::Data);
    }
    let Some(needs_unit) = labelled(label) else {
        return bare(line, found, label);
    };
    if needs_unit && !found.has_unit {
        return Meaning::Nothing;
    }
    let total = |word: &[u8]| {
        is(word, "total")
            || is(word, "training")
            || is(word, "overall")
            || is(word, "train") && is(label, "runtime")
    };
    if let Some(part) = part_of(label).or_else(|| part_of(before)) {
        return if total(before) {
            Meaning::Total
        } else {
            Meaning::Part(part)
        };
    }
    let counts = |word: &[u8]| !word.first().is_some_and(u8::is_ascii_digit) && !word.is_empty();
    if let Some(part) = part_of(earlier).filter(|_| counts(before)) {
        return if total(earlier) {
            Meaning::Total
        } else {
            Meaning::Part(part)
        };
    }
    if [before, label]
        .iter()
        .any(|word| begins(word, "epoch") || holds(word, "轮"))
    {
        Meaning::Epoch
    } else if total(before) || total(earlier) || holds(label, "总") {
        Meaning::Total
    } else {
        Meaning::Labelled
    }
}

/// `text` is in lower case. Most words differ in their first letter already.
fn is(word: &[u8], text: &str) -> bool {
    word.len() == text.len() && begins(word, text)
}

fn begins(word: &[u8], text: &str) -> bool {
    let text = text.as_bytes();
    word.first().map(u8::to_ascii_lowercase) == text.first().copied()
        && word
            .get(..text.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(text))
}

/// Chinese words are not set apart by blanks; only a word with other than ASCII in it can hold one.
fn holds(word: &[u8], text: &str) -> bool {
    !word.is_ascii() && memchr::memmem::find(word, text.as_bytes()).is_some()
}

/// Whether a word says that a duration follows; with `true`, only when it has a unit.
fn labelled(word: &[u8]) -> Option<bool> {
    const CHINESE: [&str; 4] = ["耗时", "用时", "时间", "时长"];
    const ENGLISH: [&str; 5] = ["time", "took", "elapsed", "duration", "runtime"];
    if !word.is_ascii() {
        let said = CHINESE.iter().any(|label| word.ends_with(label.as_bytes()));
        return said.then_some(false);
    }
    if ENGLISH.iter().any(|label| is(word, label)) {
        return Some(false);
    }
    ["in", "cost", "costs"]
        .iter()
        .any(|label| is(word, label))
        .then_some(true)
}

/// Without a label, a time stands by itself: `- 25s`, `(25.3s)`, `| 25.3s`, `3/30 25s`.
fn bare(line: &[u8], found: &Duration, word: &[u8]) -> Meaning {
    let apart = line[..found.start].iter().rev().find(|byte| **byte != b' ');
    let stands_alone = apart.is_some_and(|byte| matches!(byte, b'-' | b'(' | b'|' | b',' | b'['));
    let behind_number = !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    if found.has_unit && (stands_alone || behind_number) {
        Meaning::Bare
    } else {
        Meaning::Nothing
    }
}

pub fn part_of(word: &[u8]) -> Option<Part> {
    if !word.is_ascii() {
        return part_of_mixed(word);
    }
    // By the first letter: this is asked of most words before a time.
    let letter = word.first()?.to_ascii_lowercase();
    match letter {
        b'v' if is(word, "val") || begins(word, "valid") => Some(Part::Eval),
        b'e' if begins(word, "eval") => Some(Part::Eval),
        b't' if is(word, "test") || begins(word, "testing") => Some(Part::Eval),
        b'c' if begins(word, "checkpoint") || begins(word, "ckpt") => Some(Part::Checkpoint),
        b's' if begins(word, "saving") || begins(word, "saved") => Some(Part::Checkpoint),
        b'd' if is(word, "data") || begins(word, "dataload") => Some(Part::Data),
        b'l' if begins(word, "loading") => Some(Part::Data),
        b's' if is(word, "step") => Some(Part::Step),
        b'b' if is(word, "batch") => Some(Part::Step),
        b'i' if begins(word, "iter") => Some(Part::Step),
        b't' if is(word, "train") || is(word, "training") => Some(Part::Train),
        _ => None,
    }
}

/// A word with Chinese in it, beside which English may stand: `eval时间`.
fn part_of_mixed(word: &[u8]) -> Option<Part> {
    const PARTS: [(Part, &[&str], &[&str]); 5] = [
        (
            Part::Eval,
            &["valid", "eval", "testing"],
            &["验证", "评估", "测试"],
        ),
        (
            Part::Checkpoint,
            &["checkpoint", "ckpt", "saving", "saved"],
            &["保存"],
        ),
        (Part::Data, &["dataload", "loading"], &["数据"]),
        (Part::Step, &["iter"], &[]),
        (Part::Train, &[], &["训练"]),
    ];
    let found = PARTS.iter().find(|(_, beginnings, chinese)| {
        beginnings.iter().any(|text| begins(word, text)) || chinese.iter().any(|text| holds(word, text))
    });
    found.map(|(part, ..)| *part)
}
