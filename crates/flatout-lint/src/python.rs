//! Python source as rules see it: a flat tree of our own, its bindings, its comments and its syntax errors.
//! Everything that names a type of the parser lives in `lower.rs`; rules never see one.

mod bindings;
mod lower;
mod nesting;
mod tree;

pub use bindings::{Binding, Bindings, Bound};
pub use tree::{Arguments, Class, Function, Generator, Kind, Node, NodeId, Operator, Parameter, Span, Tree};

/// A parsed file.
#[derive(Debug)]
pub struct Parsed {
    pub tree: Tree,
    pub bindings: Bindings,
    /// The text of each comment with its place, in order.
    pub comments: Vec<Span>,
    pub errors: Vec<SyntaxError>,
    /// Nested deeper than any program; nothing of it was parsed.
    pub too_deep: bool,
}

/// Files nested deeper than this many levels are not parsed.
pub const DEEPEST: usize = nesting::DEEPEST;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    pub at: Span,
    /// The parser's own words, English only.
    pub text: String,
}

/// Parses one file. Never fails: what cannot be parsed is omitted from the tree and listed in `errors`.
pub fn parse(text: &str) -> Parsed {
    let lowered = lower::lower(text);
    let bindings = Bindings::collect(&lowered.tree, text);
    Parsed {
        tree: lowered.tree,
        bindings,
        comments: lowered.comments,
        errors: lowered.errors,
        too_deep: lowered.too_deep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn children_are_inside_their_parents() {
        let text = "import torch\nclass A(B):\n    def f(self, x=1, *a, **k):\n        for i in x:\n            with y as z:\n                q = [j.item() for j in i if j]\n        return {'a': 1, **k}\n";
        let parsed = parse(text);
        for id in parsed.tree.ids() {
            if let Some(parent) = parsed.tree.parent(id) {
                assert!(parent < id && parsed.tree.end(id) <= parsed.tree.end(parent));
            }
        }
        assert!(parsed.errors.is_empty());
    }

    #[test]
    fn reports_syntax_errors_and_keeps_the_rest() {
        let parsed = parse("print 'python 2'\nimport torch\nx = torch.ones(3)\n");
        assert!(!parsed.errors.is_empty());
        assert_eq!(parsed.tree.calls().len(), 1);
    }

    #[test]
    fn deep_nesting_does_not_overflow_or_hang() {
        for text in [
            "-".repeat(200_000),
            "(".repeat(100_000),
            format!("x = {}1{}", "[".repeat(50_000), "]".repeat(50_000)),
            format!("x = {}", "a.b".repeat(50_000)),
            format!("x = 1{}", " + 1".repeat(50_000)),
            format!(
                "while x:\n  o{0}={0}f(m.p(),{0}lr=1)\nfor{0}x,{0}y in l:",
                "[".repeat(3_000)
            ),
        ] {
            let parsed = parse(&text);
            assert!(
                parsed.too_deep && !parsed.errors.is_empty(),
                "{:?}",
                parsed.errors
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_parses_without_panic(text in "\\PC{0,200}") {
            let _ = parse(&text);
        }

        #[test]
        fn python_like_soup_parses_without_panic(words in proptest::collection::vec(
            proptest::sample::select(vec!["for ", "in ", "def ", "class ", "x", "(", ")", ":", "\n", "    ", "\t", "=", "f'{", "}'", "'", "\"\"\"", "é", "lambda ", "*", "if ", "else", ".", ",", "#"]), 0..60)) {
            let _ = parse(&words.concat());
        }
    }
}
