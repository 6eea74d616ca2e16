//! What runs only now and then inside a loop that runs always: `if step % 100 == 0:`, a branch that ends the loop, an error
//! handler. What is done there costs little, so rules on the step path leave it alone.

use super::Code;
use crate::python::{Kind, NodeId, Operator};

/// Words of a name that mean "not at every step".
const RARE_WORDS: [&str; 24] = [
    "log",
    "logs",
    "logging",
    "verbose",
    "debug",
    "interval",
    "every",
    "freq",
    "frequency",
    "print",
    "should",
    "report",
    "profile",
    "profiling",
    "last",
    "first",
    "save",
    "display",
    "plot",
    "vis",
    "visualize",
    "dry",
    "nan",
    "warmup",
];

impl<'p> Code<'p> {
    /// Whether `self`, a child of `above`, runs rarely compared with `above`.
    pub(super) fn is_rare_in(self, above: Self) -> bool {
        match above.kind() {
            Kind::Handler | Kind::Raise => true,
            Kind::If(clauses) => {
                let Some(index) = clauses
                    .iter()
                    .position(|(_, body)| body.iter().any(|id| above.at(*id).contains(self)))
                else {
                    return false;
                };
                let mut tests = clauses[..=index].iter().filter_map(|(test, _)| *test);
                tests.any(|test| above.at(test).is_interval()) || above.leaves(&clauses[index].1)
            }
            Kind::Conditional { test, .. } => above.at(*test) != self && above.at(*test).is_interval(),
            Kind::For { body, .. } | Kind::While { body, .. } => above.skipped_before(self, body),
            Kind::Function(function) => above.skipped_before(self, &function.body),
            _ => false,
        }
    }

    /// The branch ends the loop or the function by force: it runs once at most.
    fn leaves(self, body: &[NodeId]) -> bool {
        body.last().is_some_and(|last| match self.at(*last).kind() {
            Kind::Break | Kind::Raise => true,
            Kind::Expression(value) => self
                .at(*value)
                .call_name()
                .is_some_and(|name| matches!(name, "sys.exit" | "exit" | "quit" | "os._exit")),
            _ => false,
        })
    }

    /// `if step % k: continue` earlier in the same body.
    fn skipped_before(self, below: Self, body: &[NodeId]) -> bool {
        let earlier = body.iter().take_while(|id| !self.at(**id).contains(below));
        earlier.into_iter().any(|id| match self.at(*id).kind() {
            Kind::If(clauses) => clauses.iter().any(|(test, body)| {
                let skips = body
                    .last()
                    .is_some_and(|last| matches!(self.at(*last).kind(), Kind::Continue | Kind::Return(_)));
                skips && test.is_some_and(|test| self.at(test).is_interval())
            }),
            _ => false,
        })
    }

    /// A test that holds now and then: a modulo, a count compared with a number, or a flag named so.
    fn is_interval(self) -> bool {
        self.subtree().any(|part| match part.kind() {
            Kind::Binary {
                operator: Operator::Modulo,
                ..
            } => true,
            Kind::Compare {
                left,
                operators,
                comparators,
            } => {
                let counts = matches!(part.at(*left).kind(), Kind::Name)
                    && !part.at(*left).text().contains("rank")
                    && comparators
                        .iter()
                        .any(|id| matches!(part.at(*id).kind(), Kind::Integer(_)))
                    && operators
                        .iter()
                        .any(|one| matches!(one, Operator::Equal | Operator::Less));
                counts || part.compares_with_length(comparators)
            }
            Kind::Name | Kind::Attribute { .. } => {
                let name = part.as_attribute().map_or(part.text(), |(_, name)| name);
                crate::words(name).any(|word| RARE_WORDS.contains(&word.to_ascii_lowercase().as_str()))
                    || part.only_value().is_some_and(|value| {
                        value.subtree().any(|one| {
                            matches!(
                                one.kind(),
                                Kind::Binary {
                                    operator: Operator::Modulo,
                                    ..
                                }
                            )
                        })
                    })
            }
            _ => false,
        })
    }

    /// `i == len(loader) - 1`: the last batch only.
    fn compares_with_length(self, comparators: &[NodeId]) -> bool {
        comparators
            .iter()
            .flat_map(|id| self.at(*id).subtree())
            .any(|part| {
                part.callee()
                    .is_some_and(|callee| callee.as_name() == Some("len"))
            })
    }
}
