//! YAML, JSON and TOML as one list of items, each with its path, value and place: so that one value can be judged or replaced, and
//! everything else, comments included, stays as it was. `flatout-lint`, `flatout-tune` and `flatout-train` read configurations with it.

#![warn(missing_docs)]

mod json;
mod toml;
mod yaml;

use std::ops::Range;
use std::path::Path;

/// What an item is.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`, or nothing behind the key.
    Null,
    /// `true`; in YAML `yes` and `on` as well, as PyYAML reads them.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// Everything else that is one word or one text.
    Text(String),
    /// A list.
    Sequence,
    /// Keys with values.
    Mapping,
    /// An alias, an interpolation (`${…}`) or a tag whose meaning is the loader's.
    Unknown,
}

/// A value of the file, or the mapping or sequence around some.
#[derive(Clone, Debug)]
pub struct Item {
    /// The keys from the top to this one; positions in a sequence are written as numbers.
    pub path: Vec<String>,
    /// The key's bytes; `None` for an item of a sequence and for the whole file.
    pub key: Option<Range<usize>>,
    /// What it is.
    pub value: Value,
    /// A scalar without quotes and escapes, or an array of TOML as it is written; empty for everything else.
    pub text: String,
    /// The value's bytes; for a mapping or a sequence of YAML where it starts.
    pub bytes: Range<usize>,
}

impl Item {
    /// Whether it is a value that can be written in one piece: a scalar, or an array of TOML.
    pub fn is_written(&self) -> bool {
        match self.value {
            Value::Mapping => false,
            Value::Sequence | Value::Unknown => !self.text.is_empty(),
            _ => true,
        }
    }
}

/// Why a file cannot be read, or not beyond a place.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The bytes it is about.
    pub at: Range<usize>,
    /// What is wrong, in the parser's words.
    pub text: String,
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `.yaml`, `.yml`
    Yaml,
    /// `.json`; comments and trailing commas are forgiven.
    Json,
    /// `.toml`
    Toml,
}

impl Format {
    /// By the file's name.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "yaml" | "yml" => Some(Self::Yaml),
            "json" => Some(Self::Json),
            "toml" => Some(Self::Toml),
            _ => None,
        }
    }
}

/// Everything in a text up to the first problem, in the order of the file.
pub fn read(text: &str, format: Format) -> (Vec<Item>, Option<Problem>) {
    match format {
        Format::Yaml => yaml::items(text),
        Format::Json => json::items(text),
        Format::Toml => toml::items(text),
    }
}

/// Where the lines of a text begin.
#[derive(Debug)]
pub struct Lines(Vec<usize>);

impl Lines {
    /// Those of a text.
    pub fn of(text: &str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Self(std::iter::once(0).chain(ends).collect())
    }

    /// The line of a byte, from 1.
    pub fn at(&self, byte: usize) -> usize {
        self.0.partition_point(|start| *start <= byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FORMATS: [Format; 3] = [Format::Yaml, Format::Json, Format::Toml];

    fn written(text: &str, format: Format) -> Vec<String> {
        let (items, problem) = read(text, format);
        assert!(problem.is_none(), "{problem:?}");
        let lines = Lines::of(text);
        let written = items.iter().filter(|item| item.is_written());
        written
            .map(|item| {
                format!(
                    "{}: {} = {} ({})",
                    lines.at(item.bytes.start),
                    item.path.join("."),
                    item.text,
                    &text[item.bytes.clone()]
                )
            })
            .collect()
    }

    #[test]
    fn scalars_have_their_text_and_place() {
        assert_eq!(
            written(
                "# 训练\na: &y\n  b: \"x\"  # c\nlist: [1, 2]\nalias: *y\n",
                Format::Yaml
            ),
            ["3: a.b = x (\"x\")", "4: list.0 = 1 (1)", "4: list.1 = 2 (2)"]
        );
        assert_eq!(
            written(
                "{\"a\": {\"b\": \"\\u0041\"},\n \"list\": [1, true]}",
                Format::Json
            ),
            [
                "1: a.b = A (\"\\u0041\")",
                "2: list.0 = 1 (1)",
                "2: list.1 = true (true)"
            ]
        );
        assert_eq!(
            written("[a]\nb = \"x\" # c\nlist = [1, 2]\n[[t]]\nk = 1\n", Format::Toml),
            [
                "2: a.b = x (\"x\")",
                "3: a.list = [1, 2] ([1, 2])",
                "5: t.0.k = 1 (1)"
            ]
        );
        // A file that is nothing but a scalar is one.
        assert_eq!(written("x", Format::Yaml), ["1:  = x (x)"]);
    }

    proptest! {
        #[test]
        fn every_place_is_within_the_text(text in "[ -~\\n训:\\-\\[\\]{}&*\"]{0,80}") {
            for format in FORMATS {
                for item in read(&text, format).0 {
                    prop_assert!(text.get(item.bytes.clone()).is_some(), "{item:?}");
                    prop_assert!(item.key.is_none_or(|key| text.get(key).is_some()));
                }
            }
        }
    }
}
