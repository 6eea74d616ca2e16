//! Jupyter notebooks: the code cells as one module, with the cell of every line. What only a notebook understands (magics, shell
//! commands) becomes a statement that does nothing, so that lines keep their numbers.

use crate::python;
use flatout_core::{Message, message};
use serde::Deserialize;

/// A notebook's Python.
#[derive(Debug, Default)]
pub(crate) struct Notebook {
    pub text: String,
    pub cells: Vec<Cell>,
    /// Cells that are left out, and why.
    pub broken: Vec<Message>,
}

/// Where a cell is in the module's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its place among all cells, from 1, as editors count them.
    pub number: u32,
    /// Its first line in the module, from 1.
    pub first_line: u32,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    cells: Option<Vec<RawCell>>,
    /// Format 3 and older.
    #[serde(default)]
    worksheets: Vec<Worksheet>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Worksheet {
    #[serde(default)]
    cells: Vec<RawCell>,
}

#[derive(Deserialize)]
struct RawCell {
    #[serde(default)]
    cell_type: String,
    #[serde(default, alias = "input")]
    source: Option<Lines>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Lines {
    One(String),
    Many(Vec<String>),
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    language_info: Option<Language>,
}

#[derive(Deserialize)]
struct Language {
    #[serde(default, alias = "name")]
    language: Option<String>,
}

/// Magics whose cell is Python all the same.
const PYTHON_CELLS: [&str; 8] = [
    "%%time",
    "%%timeit",
    "%%capture",
    "%%prun",
    "%%flatout",
    "%%memit",
    "%%wandb",
    "%%python3",
];
/// Magics in front of a statement.
const PYTHON_LINES: [&str; 4] = ["%time ", "%timeit ", "%prun ", "%memit "];

/// The Python of a notebook; the reason where there is none.
pub(crate) fn read(text: &str) -> Result<Notebook, Message> {
    let file: File = serde_json::from_str(text)
        .map_err(|error| message!(en: "not a notebook: {error}", zh: "不是有效的 notebook：{error}"))?;
    let language = file.metadata.language_info.and_then(|info| info.language);
    if let Some(language) = language.filter(|language| !language.to_ascii_lowercase().contains("python")) {
        return Err(
            message!(en: "skipped: a {language} notebook, not Python", zh: "这是 {language} 的 notebook，不是 Python：已跳过"),
        );
    }
    let cells = match file.cells {
        Some(cells) => cells,
        None if file.worksheets.is_empty() => {
            return Err(
                message!(en: "not a notebook: it has no cells", zh: "不是有效的 notebook：没有单元格"),
            );
        }
        None => file
            .worksheets
            .into_iter()
            .flat_map(|sheet| sheet.cells)
            .collect(),
    };
    let mut notebook = Notebook::default();
    let mut line = 1;
    for (index, cell) in cells.into_iter().enumerate() {
        if cell.cell_type != "code" {
            continue;
        }
        let number = index as u32 + 1;
        let source = match cell.source {
            Some(Lines::One(text)) => text,
            Some(Lines::Many(lines)) => lines.concat(),
            None => continue,
        };
        let mut code = python_of(&source);
        if let Some(error) = python::parse(&code).errors.first() {
            let before = code.get(..error.at.start as usize).unwrap_or_default();
            // An error at the end is one of the last line.
            let lines = code.matches('\n').count();
            let at = (before.matches('\n').count() + 1).min(lines.max(1));
            let words = &error.text;
            notebook.broken.push(message!(
                en: "cell {number}, line {at}: {words}; the cell is skipped",
                zh: "第 {number} 个单元格第 {at} 行：{words}；该单元格已跳过"
            ));
            code = "\n".repeat(code.matches('\n').count());
        }
        notebook.cells.push(Cell {
            number,
            first_line: line,
        });
        line += code.matches('\n').count() as u32;
        notebook.text += &code;
    }
    Ok(notebook)
}

/// A cell's Python, line by line, with a line break after the last one.
fn python_of(source: &str) -> String {
    let first = source
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("")
        .trim();
    let magic = first
        .split_whitespace()
        .next()
        .filter(|word| word.starts_with("%%"));
    let foreign = magic.is_some_and(|word| !PYTHON_CELLS.contains(&word));
    let mut code = String::new();
    for line in source.lines() {
        if !foreign && !line.trim_start().starts_with("%%") {
            code += &plain(line);
        }
        code.push('\n');
    }
    code
}

/// A line without what only a notebook understands.
fn plain(line: &str) -> String {
    let text = line.trim_start();
    let indent = &line[..line.len() - text.len()];
    if let Some(statement) = PYTHON_LINES.iter().find_map(|magic| text.strip_prefix(magic)) {
        return format!("{indent}{}", statement.trim_start());
    }
    let letter = |rest: &str| rest.starts_with(|first: char| first.is_ascii_alphabetic());
    let is_magic = text.strip_prefix('%').is_some_and(letter);
    let is_shell = text.starts_with('!') && !text.starts_with("!=");
    let is_help = text.ends_with('?') && !text.contains(['#', '"', '\'']) || text.starts_with('?');
    if is_magic || is_shell || is_help {
        return format!("{indent}pass");
    }
    // `files = !ls`, `value = %env HOME`
    if let Some((name, value)) = line.split_once('=') {
        let value = value.trim_start();
        let is_name = name
            .trim()
            .chars()
            .all(|letter| letter.is_alphanumeric() || letter == '_');
        if is_name && (value.starts_with('!') || value.strip_prefix('%').is_some_and(letter)) {
            return format!("{name}= None");
        }
    }
    line.to_owned()
}

/// The cell and the line in it of a line of the module.
pub(crate) fn locate(cells: &[Cell], line: u32) -> Option<(u32, u32)> {
    let cell = cells.iter().rev().find(|cell| cell.first_line <= line)?;
    Some((cell.number, line - cell.first_line + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn code(source: &str) -> serde_json::Value {
        json!({ "cell_type": "code", "source": source, "outputs": [], "metadata": {} })
    }

    #[test]
    fn lines_know_their_cells() {
        let text = json!({ "nbformat": 4, "cells": [
            { "cell_type": "markdown", "source": "# Title" },
            code("%load_ext flatout\nimport torch"),
            { "cell_type": "code", "source": ["x = 1\n", "y = 2"] },
            code(""),
            code("%%bash\nrm -rf x"),
            code("%%flatout\nfor a in b:\n    !nvidia-smi\n    %time c(a)\nfiles = !ls\nx?\n%matplotlib inline"),
        ]})
        .to_string();
        let notebook = read(&text).unwrap();
        assert_eq!(
            notebook.text,
            "pass\nimport torch\nx = 1\ny = 2\n\n\n\nfor a in b:\n    pass\n    c(a)\nfiles = None\npass\npass\n"
        );
        assert_eq!(locate(&notebook.cells, 2), Some((2, 2)));
        assert_eq!(locate(&notebook.cells, 3), Some((3, 1)));
        assert_eq!(locate(&notebook.cells, 10), Some((6, 4)));
        assert!(notebook.broken.is_empty());
    }

    #[test]
    fn a_broken_cell_is_left_out_alone() {
        let text = json!({ "cells": [code("x = (1,"), code("y = 2")] }).to_string();
        let notebook = read(&text).unwrap();
        assert_eq!(notebook.text, "\ny = 2\n");
        assert!(
            notebook.broken[0].en.starts_with("cell 1, line "),
            "{:?}",
            notebook.broken
        );
    }

    #[test]
    fn modulo_and_strings_stay() {
        for line in [
            "     % b)",
            "x != y",
            "a = b % c",
            "text = \"really?\"",
            "x = 1  # why?",
        ] {
            assert_eq!(plain(line), line);
        }
    }

    #[test]
    fn reports_files_that_are_not_python_notebooks() {
        for text in ["", "[]", "{\"cells\": 1}", "not json"] {
            assert!(read(text).unwrap_err().en.starts_with("not a notebook"), "{text}");
        }
        let julia = json!({ "cells": [code("x = 1")], "metadata": { "language_info": { "name": "julia" } } });
        assert!(read(&julia.to_string()).unwrap_err().en.contains("julia"));
        let old = json!({ "nbformat": 3, "worksheets": [{ "cells": [{ "cell_type": "code", "input": ["x = 1"] }] }] });
        assert_eq!(read(&old.to_string()).unwrap().text, "x = 1\n");
    }

    proptest! {
        #[test]
        fn every_cell_keeps_its_lines(source in "\\PC*(\n[ %!?a-z=(]*){0,6}") {
            prop_assert_eq!(python_of(&source).matches('\n').count(), source.lines().count());
        }
    }
}
