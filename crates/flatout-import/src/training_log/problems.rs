//! What went wrong, by the log's own words: told once each, with a count. A metric named "error" is no error, a path with "nan"
//! in it no NaN.

mod signs;

use super::keywords::Found;
use serde::Serialize;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// More different problems than this are counted only.
const MOST_PROBLEMS: usize = 500;
/// What is kept of a message.
const MOST_CHARACTERS: usize = 300;
/// A traceback of more lines, or with more foreign lines in between, is given up.
const MOST_TRACEBACK_LINES: usize = 2000;
const MOST_FOREIGN_LINES: usize = 20;

/// Worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemKind {
    OutOfMemory,
    Traceback,
    Error,
    NotANumber,
    Warning,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Problem {
    pub kind: ProblemKind,
    /// The first such line, without its time stamp.
    pub text: String,
    /// `train.py:12 in step`, of a traceback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    pub count: u64,
    pub first_line: u64,
    pub last_line: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Problems {
    /// Worst kind first, most frequent first.
    pub list: Vec<Problem>,
    /// Occurrences of further kinds of text, beyond what is kept.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Problems {
    /// How often a kind occurred.
    pub fn count(&self, kind: ProblemKind) -> u64 {
        self.list
            .iter()
            .filter(|problem| problem.kind == kind)
            .map(|problem| problem.count)
            .sum()
    }
}

#[derive(Default)]
pub struct Collector {
    problems: Problems,
    known: HashMap<u64, usize>,
    traceback: Option<Traceback>,
}

#[derive(Default)]
struct Traceback {
    first_line: u64,
    place: Option<String>,
    lines: usize,
    foreign: usize,
}

impl Collector {
    pub fn in_traceback(&self) -> bool {
        self.traceback.is_some()
    }

    pub fn see(&mut self, line: &[u8], found: Found, number: u64) {
        let line = signs::without_rank(line);
        if found.traceback() {
            self.give_up();
            self.traceback = Some(Traceback {
                first_line: number,
                ..Traceback::default()
            });
            return;
        }
        if self.traceback.is_some() && self.follow(line, number) {
            return;
        }
        if let Some(kind) = signs::kind(line, found) {
            self.add(kind, line, None, number);
        }
    }

    /// A line while a traceback is open; false when it is none of its lines.
    fn follow(&mut self, line: &[u8], number: u64) -> bool {
        let Some(traceback) = &mut self.traceback else {
            return false;
        };
        traceback.lines += 1;
        if line.starts_with(b"  ") && traceback.lines <= MOST_TRACEBACK_LINES {
            if let Some(place) = signs::python_place(line) {
                traceback.place = Some(place);
            }
            return true;
        }
        if signs::is_exception(line) {
            let traceback = self.traceback.take().unwrap_or_default();
            let kind = if signs::is_out_of_memory(line) {
                ProblemKind::OutOfMemory
            } else {
                ProblemKind::Traceback
            };
            self.add(kind, line, traceback.place, traceback.first_line.min(number));
            return true;
        }
        traceback.foreign += 1;
        if traceback.foreign > MOST_FOREIGN_LINES || traceback.lines > MOST_TRACEBACK_LINES {
            self.give_up();
        }
        false
    }

    /// A traceback whose end never came.
    fn give_up(&mut self) {
        if let Some(traceback) = self.traceback.take() {
            self.add(
                ProblemKind::Traceback,
                b"Traceback without its end",
                traceback.place,
                traceback.first_line,
            );
        }
    }

    fn add(&mut self, kind: ProblemKind, line: &[u8], place: Option<String>, number: u64) {
        let mut hasher = DefaultHasher::new();
        kind.hash(&mut hasher);
        place.hash(&mut hasher);
        signs::hash_without_numbers(line, &mut hasher);
        let list = &mut self.problems.list;
        match self.known.get(&hasher.finish()) {
            Some(&index) => {
                list[index].count += 1;
                list[index].last_line = number;
            }
            None if list.len() < MOST_PROBLEMS => {
                self.known.insert(hasher.finish(), list.len());
                let text = signs::shown(line, MOST_CHARACTERS);
                list.push(Problem {
                    kind,
                    text,
                    place,
                    count: 1,
                    first_line: number,
                    last_line: number,
                });
            }
            None => self.problems.left_out += 1,
        }
    }

    pub fn finish(mut self) -> Problems {
        self.give_up();
        self.problems
            .list
            .sort_by(|a, b| (a.kind, b.count, a.first_line).cmp(&(b.kind, a.count, b.first_line)));
        self.problems
    }
}
