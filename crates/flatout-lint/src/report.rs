//! What a rule found, with its location and the edits that fix it.

use crate::config::Entry;
use crate::project::{Code, Known, Origin};
use crate::python::Span;
use crate::source::Source;
use flatout_core::{Confidence, Edit, Finding, Fix, Message, Place, RuleInfo, Severity};
use std::path::Path;

/// A finding and the bytes it points at.
#[derive(Clone, Debug)]
pub struct Reported {
    pub finding: Finding,
    pub span: Span,
}

/// Where a rule puts its findings.
pub struct Report<'r> {
    rule: &'r RuleInfo,
    pub(crate) list: Vec<Reported>,
}

impl<'r> Report<'r> {
    pub fn new(rule: &'r RuleInfo) -> Self {
        Self {
            rule,
            list: Vec::new(),
        }
    }

    pub fn at(&mut self, code: Code<'_>, title: Message) -> &mut Reported {
        self.push(code.place(), code.span(), title)
    }

    /// At a part of a file; for a key of a configuration file, or the first line of a loop.
    pub fn in_source(&mut self, source: &Source, span: Span, title: Message) -> &mut Reported {
        self.push(source.place(span), span, title)
    }

    pub fn at_entry(&mut self, source: &Source, entry: &Entry, title: Message) -> &mut Reported {
        let span = Span {
            start: entry.key.start,
            end: entry.key.end.max(entry.span.end.min(entry.key.end + 60)),
        };
        self.in_source(source, span, title)
    }

    pub fn at_known(&mut self, known: &Known<'_>, title: Message) -> &mut Reported {
        match known.origin {
            Origin::Code(code) => self.at(code, title),
            Origin::Config { source, entry } => self.at_entry(source, entry, title),
        }
    }

    /// A file as a whole.
    pub fn about_file(&mut self, path: &Path, title: Message) -> &mut Reported {
        self.push(
            Place {
                column: Some(1),
                ..Place::new(path, 1)
            },
            Span::default(),
            title,
        )
    }

    fn push(&mut self, place: Place, span: Span, title: Message) -> &mut Reported {
        let mut finding = Finding::new(self.rule.id, self.rule.severity, title);
        finding.places.push(place);
        self.list.push(Reported { finding, span });
        let last = self.list.len() - 1;
        &mut self.list[last]
    }
}

impl Reported {
    pub fn because(&mut self, detail: Message) -> &mut Self {
        self.finding.detail = detail;
        self
    }

    pub fn severity(&mut self, severity: Severity) -> &mut Self {
        self.finding.severity = severity;
        self
    }

    pub fn confidence(&mut self, confidence: Confidence) -> &mut Self {
        self.finding.confidence = confidence;
        self
    }

    /// A second place that belongs to it: where the key is read, where the loader is built.
    pub fn see(&mut self, place: Place) -> &mut Self {
        self.finding.places.push(place);
        self
    }

    /// What a person should do.
    pub fn advice(&mut self, say: Message) -> &mut Self {
        self.finding.fixes.push(Fix::Code { place: None, say });
        self
    }

    /// Edits that leave every result as it is.
    pub fn safe_fix(&mut self, edits: Vec<Edit>, say: Message) -> &mut Self {
        self.finding.fixes.push(Fix::Edits {
            edits,
            safe: true,
            say,
        });
        self
    }

    /// Edits that may change results: numbers in the last digits, memory, the order of batches.
    pub fn unsafe_fix(&mut self, edits: Vec<Edit>, say: Message) -> &mut Self {
        self.finding.fixes.push(Fix::Edits {
            edits,
            safe: false,
            say,
        });
        self
    }

    pub fn place(&self) -> &Place {
        // Every finding is made with a place, by `push`.
        &self.finding.places[0]
    }
}
