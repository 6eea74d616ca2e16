//! One file's text and its lines. Columns count characters, as editors do.

use crate::notebook::Cell;
use crate::python::Span;
use flatout_core::Place;
use std::path::PathBuf;
use std::sync::OnceLock;

#[derive(Debug)]
pub struct Source {
    /// As the user wrote it, or below a folder that the user wrote.
    pub path: PathBuf,
    pub text: String,
    /// A test of the project: it is not part of the training.
    pub is_test: bool,
    /// Of a notebook: where its cells are. Empty for every other file.
    pub cells: Vec<Cell>,
    line_starts: OnceLock<Vec<u32>>,
}

impl Source {
    pub fn new(path: PathBuf, text: String) -> Self {
        Self {
            path,
            text,
            is_test: false,
            cells: Vec::new(),
            line_starts: OnceLock::new(),
        }
    }

    /// Code, as against a configuration file.
    pub fn is_python(&self) -> bool {
        let ending = self.path.extension();
        ending.is_some_and(|ending| ending == "py" || ending == "ipynb")
    }

    fn line_starts(&self) -> &[u32] {
        self.line_starts.get_or_init(|| {
            let breaks = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
            std::iter::once(0)
                .chain(breaks.map(|(at, _)| at as u32 + 1))
                .collect()
        })
    }

    pub fn line_count(&self) -> usize {
        self.text.lines().count()
    }

    /// Line and column of a byte, both from 1.
    pub fn position(&self, offset: u32) -> (u32, u32) {
        let starts = self.line_starts();
        let line = starts.partition_point(|start| *start <= offset).max(1);
        let before = Span {
            start: starts[line - 1],
            end: offset,
        };
        (line as u32, before.text(&self.text).chars().count() as u32 + 1)
    }

    pub fn place(&self, span: Span) -> Place {
        let (line, column) = self.position(span.start);
        Place {
            file: self.path.clone(),
            cell: None,
            line,
            column: Some(column),
        }
    }

    /// The text of a line (from 1), without its line break.
    pub fn line(&self, line: u32) -> &str {
        let starts = self.line_starts();
        let Some(start) = (line as usize).checked_sub(1).and_then(|index| starts.get(index)) else {
            return "";
        };
        let rest = self.text.get(*start as usize..).unwrap_or("");
        rest.split('\n').next().unwrap_or("").trim_end_matches('\r')
    }

    /// The bytes of a line without its break.
    pub fn line_span(&self, line: u32) -> Span {
        let starts = self.line_starts();
        let start = starts
            .get((line as usize).saturating_sub(1))
            .copied()
            .unwrap_or(0);
        Span {
            start,
            end: start + self.line(line).len() as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_and_survive_every_line_break() {
        let source = Source::new("a.py".into(), "a\r\n损失 = 1\n".into());
        assert_eq!(source.position(0), (1, 1));
        assert_eq!(source.position(source.text.find('=').unwrap() as u32), (2, 4));
        assert_eq!(source.line(2), "损失 = 1");
        assert_eq!(source.line(1), "a");
        assert_eq!(source.line(9), "");
    }
}
