//! The context of a line of Python source: its statement, and the loops around it. For tools that know a line and nothing else.

use crate::python::{self, Kind, NodeId, Parsed, Span};
use crate::source::Source;
use std::path::PathBuf;

/// A statement is shortened to this many characters.
const LONGEST: usize = 100;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineContext {
    pub line: u32,
    /// The statement on one line; of a compound statement the header.
    pub text: String,
    /// The loops around it within its function, outermost first: line and header.
    pub loops: Vec<(u32, String)>,
}

/// A file that lines are asked of.
pub struct Context {
    source: Source,
    parsed: Parsed,
}

impl Context {
    pub fn new(path: PathBuf, text: String) -> Self {
        let parsed = python::parse(&text);
        Self {
            source: Source::new(path, text),
            parsed,
        }
    }

    /// `None` for a line beyond the file's end, or an empty one.
    pub fn line(&self, line: u32) -> Option<LineContext> {
        let own = self.source.line(line).trim();
        if own.is_empty() {
            return None;
        }
        let statement = self.statement(line);
        let first_line = |id: NodeId| self.lines(self.parsed.tree.span(id)).0;
        let text = match statement {
            // In a statement over many lines the line itself is more specific: `eval_steps=10,`.
            Some(id)
                if !is_compound(self.parsed.tree.kind(id)) && (first_line(id) == line || own.len() < 6) =>
            {
                self.brief(self.parsed.tree.span(id).text(&self.source.text))
            }
            _ => self.brief(own),
        };
        let loops = statement.map_or_else(Vec::new, |id| self.loops(id, line));
        Some(LineContext { line, text, loops })
    }

    /// The lines that contain one of these texts outside of comments.
    pub fn lines_with(&self, texts: &[&str]) -> Vec<u32> {
        let code = |line: &str| line.split('#').next().unwrap_or_default().to_owned();
        let lines = self.source.text.lines().enumerate();
        lines
            .filter(|(_, line)| {
                let code = code(line);
                texts.iter().any(|text| code.contains(text))
            })
            .map(|(index, _)| index as u32 + 1)
            .collect()
    }

    fn brief(&self, text: &str) -> String {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        flatout_core::text::shortened(&line, LONGEST)
    }

    fn lines(&self, span: Span) -> (u32, u32) {
        let last = span.end.saturating_sub(1).max(span.start);
        (self.source.position(span.start).0, self.source.position(last).0)
    }

    /// The innermost statement that the line is part of.
    fn statement(&self, line: u32) -> Option<NodeId> {
        let tree = &self.parsed.tree;
        let covers = |id: &NodeId| {
            let (first, last) = self.lines(tree.span(*id));
            first <= line
                && line <= last
                && tree.statement(*id) == *id
                && !matches!(tree.kind(*id), Kind::Module)
        };
        // Nodes come in source order, so the last one that covers the line is the innermost.
        tree.ids().filter(covers).last()
    }

    fn loops(&self, statement: NodeId, line: u32) -> Vec<(u32, String)> {
        let tree = &self.parsed.tree;
        let mut found = Vec::new();
        for id in std::iter::once(statement).chain(tree.ancestors(statement)) {
            match tree.kind(id) {
                Kind::Function(_) | Kind::Lambda(_) | Kind::Class(_) => break,
                Kind::For { body, .. } | Kind::While { body, .. } => {
                    let header = self.lines(tree.span(id)).0;
                    // What the loop runs over is computed before the loop, a `while`'s test in each round.
                    let first = body.first().map(|first| self.lines(tree.span(*first)).0);
                    let inside = first.is_some_and(|first| line >= first);
                    if inside || matches!(tree.kind(id), Kind::While { .. }) {
                        found.push((header, self.header(id)));
                    }
                }
                _ => {}
            }
        }
        found.reverse();
        found.extend(self.comprehension(statement, line));
        found
    }

    /// The comprehension that the line is part of: a loop in one expression.
    fn comprehension(&self, statement: NodeId, line: u32) -> Option<(u32, String)> {
        let tree = &self.parsed.tree;
        if is_compound(tree.kind(statement)) {
            return None;
        }
        let found = tree.runs(statement).find(|id| {
            let (first, last) = self.lines(tree.span(*id));
            matches!(tree.kind(*id), Kind::Comprehension { .. }) && first <= line && line <= last
        })?;
        let Kind::Comprehension { generators, .. } = tree.kind(found) else {
            return None;
        };
        let generator = generators.first()?;
        let text = |id: NodeId| self.brief(tree.span(id).text(&self.source.text));
        let header = format!("for {} in {}", text(generator.target), text(generator.iterator));
        Some((self.lines(tree.span(found)).0, header))
    }

    /// `for t in range(steps)`, without the colon.
    fn header(&self, id: NodeId) -> String {
        let tree = &self.parsed.tree;
        let text = |id: NodeId| self.brief(tree.span(id).text(&self.source.text));
        match tree.kind(id) {
            Kind::For { target, iterator, .. } => format!("for {} in {}", text(*target), text(*iterator)),
            Kind::While { test, .. } => format!("while {}", text(*test)),
            _ => String::new(),
        }
    }
}

fn is_compound(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::For { .. }
            | Kind::While { .. }
            | Kind::If(_)
            | Kind::With { .. }
            | Kind::Try { .. }
            | Kind::Function(_)
            | Kind::Class(_)
            | Kind::Handler
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
def train(loader):
    for epoch in range(3):
        for x, y in loader:
            loss = model(
                x,
            ).mean()
            for t in range(x.size(1)):
                step(t)
            marks = [score(a) for a in y]

class A:
    def f(self):
        with open(p) as file:
            return file.read()
";

    fn line(number: u32) -> LineContext {
        Context::new("a.py".into(), TEXT.into()).line(number).unwrap()
    }

    #[test]
    fn names_the_statement_and_its_loops() {
        assert_eq!(line(4).text, "loss = model( x, ).mean()");
        let found = line(5);
        assert_eq!(
            found.text, "loss = model( x, ).mean()",
            "a line with a comma says nothing"
        );
        assert_eq!(
            found.loops,
            [
                (2, "for epoch in range(3)".into()),
                (3, "for x, y in loader".into())
            ]
        );
        assert_eq!(
            line(8).loops.last().unwrap(),
            &(7, "for t in range(x.size(1))".to_owned())
        );
        assert_eq!(line(8).text, "step(t)");
    }

    #[test]
    fn a_loop_header_is_outside_the_loop() {
        assert_eq!(line(3).loops.len(), 1);
        assert_eq!(line(3).text, "for x, y in loader:");
        assert_eq!(line(7).loops.len(), 2);
    }

    #[test]
    fn comprehensions_are_loops() {
        assert_eq!(line(9).loops.last().unwrap(), &(9, "for a in y".to_owned()));
    }

    #[test]
    fn functions_end_the_search() {
        assert!(line(14).loops.is_empty());
        assert_eq!(line(14).text, "return file.read()");
        assert!(Context::new("a.py".into(), TEXT.into()).line(10).is_none());
        assert!(Context::new("a.py".into(), TEXT.into()).line(999).is_none());
    }
}
