//! Exact source edits: nothing around them moves, comments stay.

use crate::project::Code;
use crate::python::{Kind, Span};
use flatout_core::Edit;

impl Code<'_> {
    pub fn edit(self, span: Span, text: impl Into<String>) -> Edit {
        Edit {
            file: self.in_module().source.path.clone(),
            start: span.start as usize,
            end: span.end as usize,
            text: text.into(),
        }
    }

    pub fn replace(self, text: impl Into<String>) -> Edit {
        self.edit(self.span(), text)
    }

    pub fn insert_before(self, text: impl Into<String>) -> Edit {
        let start = self.span().start;
        self.edit(Span { start, end: start }, text)
    }

    pub fn insert_after(self, text: impl Into<String>) -> Edit {
        let end = self.span().end;
        self.edit(Span { start: end, end }, text)
    }

    /// Sets `name=value` of a call: replaces the value if the keyword is there, else adds it as the last argument, on a line of its own
    /// where the arguments are written so. `None` where that cannot be done without rewriting the call.
    pub fn set_keyword(self, name: &str, value: &str) -> Option<Edit> {
        if let Some(present) = self.keyword(name) {
            return Some(present.replace(value));
        }
        let arguments = self.arguments()?;
        let close = arguments.span.end.checked_sub(1)?;
        let ends = arguments
            .positional
            .iter()
            .chain(arguments.keywords.iter().map(|(_, id)| id));
        let Some(last) = ends.map(|id| self.at(*id)).max_by_key(|code| code.span().end) else {
            return Some(self.edit(
                Span {
                    start: close,
                    end: close,
                },
                format!("{name}={value}"),
            ));
        };
        // `f(x for x in y)` takes no second argument without parentheses.
        if arguments.positional.len() == 1 && matches!(last.kind(), Kind::Comprehension { .. }) {
            return None;
        }
        let tail = Span {
            start: last.span().end,
            end: close,
        };
        let at = tail.start + end_of_parentheses(self.slice(tail));
        let text = format!("{}{name}={value}", self.separator_before(last));
        Some(self.edit(Span { start: at, end: at }, text))
    }

    /// `, ` or, where the last argument begins its line, a comma, a line break and its indentation.
    fn separator_before(self, last: Self) -> String {
        let argument_start = self
            .arguments()
            .and_then(|arguments| {
                let named = arguments.keywords.iter().find(|(_, id)| *id == last.id);
                named.and_then(|(name, _)| *name)
            })
            .map_or(last.span().start, |name| name.start);
        let source = &self.in_module().source;
        let (line, _) = source.position(argument_start);
        let before = Span {
            start: source.line_span(line).start,
            end: argument_start,
        };
        let before = self.slice(before);
        if before.trim().is_empty() && line != source.position(self.span().start).0 {
            let line_break = if source.text.contains("\r\n") {
                "\r\n"
            } else {
                "\n"
            };
            format!(",{line_break}{before}")
        } else {
            ", ".to_owned()
        }
    }

    /// The white space that the statement's line begins with.
    pub fn indentation(self) -> String {
        let source = &self.in_module().source;
        let line = source.line(source.position(self.span().start).0);
        line.chars()
            .take_while(|character| character.is_whitespace())
            .collect()
    }

    /// Removes a statement with its line, when it has the line for itself.
    pub fn remove_line(self) -> Option<Edit> {
        let source = &self.in_module().source;
        let (line, _) = source.position(self.span().start);
        let span = source.line_span(line);
        if span.text(&source.text).trim() != self.text() {
            return None;
        }
        let after = source.text.get(span.end as usize..)?;
        let line_break = after.find('\n').map_or(0, |at| at as u32 + 1);
        Some(self.edit(
            Span {
                start: span.start,
                end: span.end + line_break,
            },
            "",
        ))
    }
}

/// Where the parentheses around an argument end, in the text from its end to the end of the call.
fn end_of_parentheses(tail: &str) -> u32 {
    let mut end = 0;
    let mut comment = false;
    for (at, character) in tail.char_indices() {
        match character {
            '#' => comment = true,
            '\n' => comment = false,
            ')' if !comment => end = at as u32 + 1,
            _ => {}
        }
    }
    end
}
