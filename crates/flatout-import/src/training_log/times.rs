//! Epochs and phases out of lines. A line that tells of a step, not of an epoch, must not be taken for one: where the two cannot
//! be told apart, nothing is taken. What a line says by itself is found in [`told`], by several threads; what it means behind the
//! lines before it, here.

mod epoch;
mod told;

pub use told::{Meaning, Told, tell};

use super::{bar, duration};
use epoch::Mention;
use serde::Serialize;
use std::collections::BTreeMap;
use told::{Said, part_of};

/// More epochs are counted, not kept.
const MOST_EPOCHS: usize = 100_000;
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
    /// Takes a line that speaks of times; `durations` are what it said of them.
    pub fn see(&mut self, line: &[u8], told: &Told, durations: &[(Meaning, f64)], now: Option<(f64, u64)>) {
        match told {
            Told::Nothing => {}
            Told::Bar => self.bar(line, now),
            Told::Finished(seconds) => self.epoch(None, *seconds, Measured::Bar),
            Told::Said(said) => {
                if let Some(Mention {
                    number: Some(number),
                    planned,
                    ..
                }) = said.mention
                {
                    self.name(number, now);
                    self.times.planned_epochs = planned.or(self.times.planned_epochs);
                }
                self.said(said, durations);
            }
        }
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

    /// Takes what a line said; `durations` are its own.
    fn said(&mut self, said: &Said, durations: &[(Meaning, f64)]) {
        let named = said.mention.filter(|mention| mention.number.is_some());
        let in_step = named.is_some_and(|mention| mention.is_step);
        let mut epoch_told = false;
        for &(meaning, seconds) in durations {
            match meaning {
                Meaning::Part(part) => self.times.parts.entry(part).or_default().add(seconds),
                Meaning::Labelled if in_step => {
                    if named.is_some_and(|mention| mention.is_bracketed) {
                        self.times.parts.entry(Part::Step).or_default().add(seconds);
                    }
                }
                Meaning::Total if named.is_none() => {
                    self.times.total_s = Some(self.times.total_s.unwrap_or(0.0).max(seconds));
                }
                Meaning::Nothing => {}
                told => {
                    if !epoch_told && !in_step && (named.is_some() || told == Meaning::Epoch) {
                        epoch_told = true;
                        self.epoch(named.and_then(|mention| mention.number), seconds, Measured::Said);
                    }
                }
            }
        }
    }
}
