//! Configuration files as rules see them: every key with its path, place and value. YAML, JSON and TOML look the same.

mod lost;

use crate::python::Span;
use crate::source::Source;
pub use flatout_config::{Format, Value};
pub use lost::Lost;
use std::ops::Range;

/// One key of a mapping.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The keys from the top to this one; positions in a sequence are written as numbers.
    pub path: Vec<String>,
    pub key: Span,
    pub value: Value,
    /// The value's bytes; for a mapping or a sequence where it starts.
    pub span: Span,
}

impl Entry {
    pub fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    /// The path without its last key.
    pub fn section(&self) -> &[String] {
        &self.path[..self.path.len().saturating_sub(1)]
    }
}

#[derive(Debug)]
pub struct ConfigError {
    pub at: Span,
    pub text: String,
}

#[derive(Debug)]
pub struct Document {
    pub source: Source,
    /// The entries that count.
    pub entries: Vec<Entry>,
    pub lost: Vec<Lost>,
    pub error: Option<ConfigError>,
}

pub fn parse(source: Source, format: Format) -> Document {
    let (items, problem) = flatout_config::read(&source.text, format);
    let span = |bytes: Range<usize>| Span::new(bytes.start, bytes.end);
    let entries = items.into_iter().filter_map(|item| {
        Some(Entry {
            path: item.path,
            key: span(item.key?),
            value: item.value,
            span: span(item.bytes),
        })
    });
    let entries = entries.collect();
    let error = problem.map(|problem| ConfigError {
        at: span(problem.at),
        text: problem.text,
    });
    let (entries, lost) = lost::sort_out(entries);
    Document {
        source,
        entries,
        lost,
        error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    fn read(name: &str, text: &str) -> Document {
        let format = Format::of(Path::new(name)).unwrap();
        parse(Source::new(name.into(), text.into()), format)
    }

    fn shown(document: &Document) -> Vec<String> {
        let text = &document.source.text;
        let line = |entry: &Entry| {
            format!(
                "{} {:?} {}",
                entry.path.join("."),
                entry.value,
                entry.span.text(text)
            )
        };
        document.entries.iter().map(line).collect()
    }

    #[test]
    fn all_three_formats_read_the_same_entries() {
        let yaml = read(
            "c.yaml",
            "train:  # 训练\n  amp: true\n  workers: 28\n  lr: 1.0e-3\n  mode: \"x\"\n",
        );
        let json = read(
            "c.json",
            "{\"train\": {\"amp\": true, \"workers\": 28, \"lr\": 1.0e-3, \"mode\": \"x\"}}",
        );
        let toml = read(
            "c.toml",
            "[train]\namp = true\nworkers = 28\nlr = 1.0e-3\nmode = \"x\"\n",
        );
        let expected = [
            "train.amp Boolean(true) true",
            "train.workers Integer(28) 28",
            "train.lr Float(0.001) 1.0e-3",
            "train.mode Text(\"x\") \"x\"",
        ];
        for document in [yaml, json, toml] {
            assert!(document.error.is_none());
            assert_eq!(shown(&document)[1..], expected, "{:?}", document.source.path);
        }
    }

    #[test]
    fn anchors_duplicates_and_sequences_do_no_harm() {
        let document = read(
            "c.yaml",
            "a: &x\n  k: 1\nb: *x\nc:\n  <<: *x\n  k: 2\nd:\n  - n: 1\n  - n: yes\na: 3\n",
        );
        let lines = shown(&document);
        assert!(lines.contains(&"b Unknown *x".to_owned()), "{lines:?}");
        assert!(lines.contains(&"d.1.n Boolean(true) yes".to_owned()), "{lines:?}");
    }

    #[test]
    fn errors_have_a_location() {
        for (name, text) in [
            ("c.yaml", "a: [1,\nb: {"),
            ("c.json", "{\"a\": }"),
            ("c.toml", "a = \n"),
        ] {
            assert!(read(name, text).error.is_some(), "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "[\\PC\n\t]{0,120}") {
            for name in ["c.yaml", "c.json", "c.toml"] {
                read(name, &text);
            }
        }

        #[test]
        fn almost_yaml_is_read_without_panic(words in proptest::collection::vec(
            proptest::sample::select(vec!["a", ": ", "- ", "\n", "  ", "[", "]", "{", "}", "&x ", "*x", "<<", "'", "\"", "|", ">", "#", "é", "---", "?", "!t "]), 0..40)) {
            for name in ["c.yaml", "c.json", "c.toml"] {
                read(name, &words.concat());
            }
        }
    }
}
