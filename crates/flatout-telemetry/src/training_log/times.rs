//! Epochs and phases out of lines. A line that tells of a step, not of an epoch, must not be taken for one: where the two cannot
//! be told apart, nothing is taken.

mod epoch;

use super::bar;
use super::duration::{self, Found as Duration};
use super::keywords::Found;
use epoch::Mention;
use serde::Serialize;
use std::collections::BTreeMap;

/// More epochs are counted, not kept.
const MOST_EPOCHS: usize = 100_000;
/// Numbers looked at in a line; a line with more is data.
const MOST_NUMBERS: usize = 24;
/// A longer time is no duration.
const LONGEST_S: f64 = 1e7;

/// Where an epoch's time comes from, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measured {
    /// The difference of two time stamps.
    Stamps,
    /// A progress bar at 100%.
    Bar,
    /// The program said it.
    Said,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EpochTime {
    pub number: u64,
    pub seconds: f64,
    pub measured: Measured,
}

/// What a time beside the epoch's is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    Train,
    Eval,
    Checkpoint,
    /// Loading data, of one step.
    Data,
    /// One step.
    Step,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PartTime {
    pub count: u64,
    pub sum_s: f64,
    pub min_s: f64,
    pub max_s: f64,
}

impl PartTime {
    fn add(&mut self, seconds: f64) {
        self.min_s = if self.count == 0 {
            seconds
        } else {
            self.min_s.min(seconds)
        };
        self.max_s = self.max_s.max(seconds);
        self.count += 1;
        self.sum_s += seconds;
    }

    pub fn mean_s(&self) -> f64 {
        self.sum_s / self.count.max(1) as f64
    }
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Times {
    pub epochs: Vec<EpochTime>,
    /// Epochs beyond what is kept.
    #[serde(skip_serializing_if = "is_zero")]
    pub epochs_left_out: u64,
    /// The highest epoch named, timed or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_epoch: Option<u64>,
    /// How many were planned, as in `3/30`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_epochs: Option<u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<Part, PartTime>,
    /// The whole training, where the program said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_s: Option<f64>,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[derive(Clone, Debug, Default)]
pub struct Collector {
    times: Times,
    current: Option<u64>,
    /// When the current epoch was first named, with the clock's jumps until then.
    since: Option<(f64, u64)>,
    current_timed: bool,
    /// The description of the last finished bar, until a bar moves again: the last state is often printed twice.
    finished_bar: Option<(Vec<u8>, Part, f64)>,
}

impl Collector {
    pub fn see(&mut self, line: &[u8], found: Found, now: Option<(f64, u64)>) {
        if found.bar() {
            return self.bar(line, now);
        }
        if found.step_rate()
            && let Some(seconds) = bar::keras(line)
        {
            return self.epoch(None, seconds, Measured::Bar);
        }
        let mention = if found.epoch() {
            epoch::mention(line, found.step())
        } else {
            None
        };
        if let Some(Mention {
            number: Some(number),
            planned,
            ..
        }) = mention
        {
            self.name(number, now);
            self.times.planned_epochs = planned.or(self.times.planned_epochs);
        }
        self.durations(line, mention);
    }

    pub fn finish(mut self) -> Times {
        self.close_bar();
        self.times
    }

    fn bar(&mut self, line: &[u8], now: Option<(f64, u64)>) {
        let Some(bar) = bar::read(line) else { return };
        let mention = epoch::mention(bar.description, false);
        let Some(seconds) = bar.elapsed_s else {
            self.close_bar();
            if let Some(number) = mention.and_then(|mention| mention.number) {
                self.name(number, now);
            }
            return;
        };
        let words = duration::words_before::<2>(bar.description, bar.description.len());
        let part = words.iter().find_map(|word| part_of(word));
        if let Some(part) = part {
            if self
                .finished_bar
                .as_ref()
                .is_none_or(|(last, ..)| last != bar.description)
            {
                self.close_bar();
            }
            self.finished_bar = Some((bar.description.to_vec(), part, seconds));
        } else if let Some(number) = mention.and_then(|mention| mention.number) {
            self.name(number, now);
            self.epoch(Some(number), seconds, Measured::Bar);
        }
    }

    fn close_bar(&mut self) {
        if let Some((_, part, seconds)) = self.finished_bar.take() {
            self.times.parts.entry(part).or_default().add(seconds);
        }
    }

    /// A line named this epoch. The one before has ended; if nobody said how long it took, the time stamps may.
    fn name(&mut self, number: u64, now: Option<(f64, u64)>) {
        if self.current == Some(number) {
            return;
        }
        if let (Some(before), Some((then, jumps)), Some((time, jumps_now))) = (self.current, self.since, now)
            && !self.current_timed
            && number == before + 1
            && jumps == jumps_now
            && time > then
        {
            self.epoch(Some(before), time - then, Measured::Stamps);
        }
        self.times.last_epoch = self.times.last_epoch.max(Some(number));
        self.current = Some(number);
        self.since = now;
        self.current_timed = false;
    }

    fn epoch(&mut self, number: Option<u64>, seconds: f64, measured: Measured) {
        if !(seconds > 0.0 && seconds < LONGEST_S) {
            return;
        }
        let epochs = &mut self.times.epochs;
        let number = number
            .or(self.current)
            .unwrap_or_else(|| epochs.last().map_or(1, |last| last.number + 1));
        self.current_timed |= Some(number) == self.current;
        let time = EpochTime {
            number,
            seconds,
            measured,
        };
        let room = epochs.len() < MOST_EPOCHS;
        // Nobody named an epoch in a log of bare epoch times: each is the next.
        let again = self.current.is_some();
        match epochs.last_mut() {
            Some(last) if again && last.number == number => {
                if measured >= last.measured {
                    *last = time;
                }
            }
            _ if room => epochs.push(time),
            _ => self.times.epochs_left_out += 1,
        }
    }

    fn durations(&mut self, line: &[u8], mention: Option<Mention>) {
        let named = mention.filter(|mention| mention.number.is_some());
        let in_step = named.is_some_and(|mention| mention.is_step);
        let mut epoch_told = false;
        let mut at = 0;
        for _ in 0..MOST_NUMBERS {
            let Some(start) = duration::next_number(line, at) else {
                break;
            };
            // Most numbers are no times: that is seen by the word before them, before anything is parsed.
            let [word] = duration::words_before::<1>(line, start);
            let can_be =
                labelled(word).is_some() || word.eq_ignore_ascii_case(b"data") || named.is_some() && !in_step;
            let found = if can_be { duration::read(line, start) } else { None };
            let Some(found) = found.filter(|found| found.seconds < LONGEST_S) else {
                at = duration::number_end(line, start);
                continue;
            };
            at = found.end;
            match meaning(line, &found) {
                Meaning::Part(part) => self.times.parts.entry(part).or_default().add(found.seconds),
                Meaning::Labelled if in_step => {
                    if named.is_some_and(|mention| mention.is_bracketed) {
                        self.times.parts.entry(Part::Step).or_default().add(found.seconds);
                    }
                }
                Meaning::Total if named.is_none() => {
                    self.times.total_s = Some(self.times.total_s.unwrap_or(0.0).max(found.seconds));
                }
                Meaning::Nothing => {}
                told => {
                    if !epoch_told && !in_step && (named.is_some() || told == Meaning::Epoch) {
                        epoch_told = true;
                        self.epoch(
                            named.and_then(|mention| mention.number),
                            found.seconds,
                            Measured::Said,
                        );
                    }
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
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

fn is(word: &[u8], text: &str) -> bool {
    word.eq_ignore_ascii_case(text.as_bytes())
}

fn begins(word: &[u8], text: &str) -> bool {
    word.get(..text.len()).is_some_and(|start| is(start, text))
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

fn part_of(word: &[u8]) -> Option<Part> {
    type Words = &'static [&'static str];
    /// A part, the words that name it, beginnings of words that do, and Chinese that holds it.
    const PARTS: [(Part, Words, Words, Words); 5] = [
        (
            Part::Eval,
            &["val", "test"],
            &["valid", "eval", "testing"],
            &["验证", "评估", "测试"],
        ),
        (
            Part::Checkpoint,
            &[],
            &["checkpoint", "ckpt", "saving", "saved"],
            &["保存"],
        ),
        (Part::Data, &["data"], &["dataload", "loading"], &["数据"]),
        (Part::Step, &["step", "batch"], &["iter"], &[]),
        (Part::Train, &["train", "training"], &[], &["训练"]),
    ];
    let found = PARTS.iter().find(|(_, words, beginnings, chinese)| {
        words.iter().any(|text| is(word, text))
            || beginnings.iter().any(|text| begins(word, text))
            || chinese.iter().any(|text| holds(word, text))
    });
    found.map(|(part, ..)| *part)
}
