//! The text of a pattern to its parts. What is malformed is refused with the reason; nothing is guessed.

use crate::{DataError, Result};
use flatout_core::{Message, message};

/// More alternatives than anybody writes; `{a,b}` ten times over is a mistake, not a wish.
const MOST_ALTERNATIVES: usize = 1000;

/// What stands between two slashes.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    /// `**`: any number of folders, none included.
    AnyFolders,
    Name(Name),
}

#[derive(Debug, PartialEq, Eq)]
pub enum Name {
    /// Without signs: it need not be looked for.
    Plain(String),
    Signs(Vec<Sign>),
}

#[derive(Debug, PartialEq, Eq)]
pub enum Sign {
    Char(char),
    /// `?`
    One,
    /// `*`
    Any,
    /// `[a-z_]` or `[!a-z_]`
    OneOf {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Sign {
    fn accepts(&self, found: char) -> bool {
        match self {
            Self::Char(char) => *char == found,
            Self::One => true,
            Self::Any => false,
            Self::OneOf { negated, ranges } => {
                ranges.iter().any(|(low, high)| (low..=high).contains(&&found)) != *negated
            }
        }
    }
}

impl Name {
    pub fn matches(&self, name: &str) -> bool {
        let signs = match self {
            Self::Plain(plain) => return plain == name,
            Self::Signs(signs) => signs,
        };
        if name.starts_with('.') && signs.first() != Some(&Sign::Char('.')) {
            return false;
        }
        let name: Vec<char> = name.chars().collect();
        let (mut sign, mut place) = (0, 0);
        // Where the last star stands, and up to where it has taken: it takes one more when what follows does not fit.
        let mut star: Option<(usize, usize)> = None;
        while place < name.len() {
            match signs.get(sign) {
                Some(Sign::Any) => {
                    star = Some((sign, place));
                    sign += 1;
                }
                Some(one) if one.accepts(name[place]) => (sign, place) = (sign + 1, place + 1),
                _ => {
                    let Some((at, taken)) = star else {
                        return false;
                    };
                    (sign, place) = (at + 1, taken + 1);
                    star = Some((at, taken + 1));
                }
            }
        }
        signs[sign..].iter().all(|sign| *sign == Sign::Any)
    }
}

fn refuse(pattern: &str, reason: Message) -> DataError {
    DataError::Pattern {
        pattern: pattern.to_owned(),
        reason,
    }
}

/// The index behind the `]` that closes the class which opens at `open`. A `]` that comes first is one of its characters.
fn class_end(pattern: &str, chars: &[char], open: usize) -> Result<usize> {
    let negated = usize::from(matches!(chars.get(open + 1), Some('!' | '^')));
    let first = open + 1 + negated;
    let close = (first + 1..chars.len()).find(|&index| chars[index] == ']');
    let close = close.filter(|&close| !chars[first..close].contains(&'/'));
    close.map(|close| close + 1).ok_or_else(|| {
        refuse(
            pattern,
            message!(en: "a `[` is not closed; `[[]` matches the character itself", zh: "`[` 没有闭合；要表示该字符本身请写 `[[]`"),
        )
    })
}

/// The pattern once for each choice of its braces, which may be nested.
pub fn alternatives(pattern: &str) -> Result<Vec<String>> {
    let (mut open, mut done) = (vec![pattern.chars().collect::<Vec<char>>()], Vec::new());
    while let Some(text) = open.pop() {
        match braces(pattern, &text)? {
            None => done.push(text.into_iter().collect()),
            Some((start, end, choices)) => open.extend(choices.into_iter().rev().map(|choice| {
                let choice = &text[choice];
                [&text[..start], choice, &text[end..]].concat()
            })),
        }
        if open.len() + done.len() > MOST_ALTERNATIVES {
            return Err(refuse(
                pattern,
                message!(
                    en: "its braces expand to more than {MOST_ALTERNATIVES} patterns",
                    zh: "其中的花括号展开后超过 {MOST_ALTERNATIVES} 个模式"
                ),
            ));
        }
    }
    Ok(done)
}

type Braces = (usize, usize, Vec<std::ops::Range<usize>>);

/// The first braces of a text: where they begin, where they end, and their choices.
fn braces(pattern: &str, text: &[char]) -> Result<Option<Braces>> {
    let (mut index, mut depth, mut start, mut from) = (0, 0usize, 0, 0);
    let mut choices = Vec::new();
    while index < text.len() {
        match text[index] {
            '[' => {
                index = class_end(pattern, text, index)?;
                continue;
            }
            '{' => {
                depth += 1;
                if depth == 1 {
                    (start, from) = (index, index + 1);
                }
            }
            ',' if depth == 1 => {
                choices.push(from..index);
                from = index + 1;
            }
            '}' if depth == 1 => {
                choices.push(from..index);
                return Ok(Some((start, index + 1, choices)));
            }
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        index += 1;
    }
    if depth > 0 {
        return Err(refuse(
            pattern,
            message!(en: "a `{{` is not closed; `[{{]` matches the character itself", zh: "`{{` 没有闭合；要表示该字符本身请写 `[{{]`"),
        ));
    }
    Ok(None)
}

/// The parts of a pattern without braces; `pattern` is the whole one, for what is said.
pub fn parts(pattern: &str, text: &str) -> Result<Vec<Part>> {
    let mut parts: Vec<Part> = Vec::new();
    for part in text.split('/').filter(|part| !part.is_empty()) {
        let part = match part {
            "**" => Part::AnyFolders,
            part if part.contains("**") => {
                let reason = message!(
                    en: "`**` matches only whole folders: `folder/**/*.csv`",
                    zh: "`**` 只能单独作为一级目录：`folder/**/*.csv`"
                );
                return Err(refuse(pattern, reason));
            }
            part => Part::Name(name(pattern, part)?),
        };
        // Any folders below any folders are any folders; looked through once.
        if part != Part::AnyFolders || parts.last() != Some(&Part::AnyFolders) {
            parts.push(part);
        }
    }
    if parts.last() == Some(&Part::AnyFolders) {
        parts.push(Part::Name(Name::Signs(vec![Sign::Any])));
    }
    Ok(parts)
}

fn name(pattern: &str, text: &str) -> Result<Name> {
    let chars: Vec<char> = text.chars().collect();
    let (mut signs, mut index) = (Vec::new(), 0);
    while index < chars.len() {
        signs.push(match chars[index] {
            '*' => Sign::Any,
            '?' => Sign::One,
            '[' => {
                let end = class_end(pattern, &chars, index)?;
                let class = class(pattern, &chars[index + 1..end - 1])?;
                index = end;
                signs.push(class);
                continue;
            }
            char => Sign::Char(char),
        });
        index += 1;
    }
    if signs.iter().all(|sign| matches!(sign, Sign::Char(_))) {
        return Ok(Name::Plain(text.to_owned()));
    }
    Ok(Name::Signs(signs))
}

fn class(pattern: &str, chars: &[char]) -> Result<Sign> {
    let negated = matches!(chars.first(), Some('!' | '^'));
    let mut chars = &chars[usize::from(negated)..];
    let mut ranges = Vec::new();
    while let [low, rest @ ..] = chars {
        let (range, rest) = match rest {
            ['-', high, rest @ ..] => ((*low, *high), rest),
            rest => ((*low, *low), rest),
        };
        if range.0 > range.1 {
            let (low, high) = range;
            return Err(refuse(
                pattern,
                message!(en: "the range `{low}-{high}` is reversed", zh: "范围 `{low}-{high}` 前后颠倒"),
            ));
        }
        ranges.push(range);
        chars = rest;
    }
    Ok(Sign::OneOf { negated, ranges })
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
