//! How deep a file is nested, found before it is parsed. The parser's tree is as deep as its source, and code that walks or drops
//! a tree recurses: 3,000 `[` in a row ended the process (stack overflow in `set_expr_ctx`), and 400 KB of `(` took 840 MB.
//! CPython itself stops at 200 parentheses and 100 levels of indentation, so a file beyond these limits is no program.

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, lexer};

/// Levels of brackets, indentation and operators that nest to the right, all together.
pub(super) const DEEPEST: usize = 1_000;
/// Operators, attributes, calls and subscripts in one expression: they nest to the left.
const LONGEST: usize = 20_000;

/// One bracket that is open.
#[derive(Default)]
struct Level {
    /// Prefix operators, `lambda`, `else`, `**` and `:=` since the last comma.
    right: usize,
    /// Everything that nests to the left since the last comma.
    left: usize,
    in_lambda: bool,
}

/// Whether parsing the text could need more stack or memory than any program a person wrote.
pub(super) fn is_too_deep(text: &str) -> bool {
    let mut lexer = lexer::lex(text, Mode::Module);
    let mut levels = vec![Level::default()];
    let (mut indents, mut right) = (0usize, 0usize);
    let mut after_operand = false;
    loop {
        let kind = lexer.next_token();
        if kind == TokenKind::EndOfFile {
            return false;
        }
        let outermost = levels.len() == 1;
        let Some(level) = levels.last_mut() else {
            return false;
        };
        match kind {
            TokenKind::Comment | TokenKind::NonLogicalNewline => continue,
            TokenKind::Indent => indents += 1,
            TokenKind::Dedent => indents = indents.saturating_sub(1),
            TokenKind::Newline | TokenKind::Semi => {
                right -= level.right;
                *level = Level::default();
            }
            TokenKind::Comma if !level.in_lambda => {
                right -= level.right;
                *level = Level::default();
            }
            TokenKind::Lpar
            | TokenKind::Lsqb
            | TokenKind::Lbrace
            | TokenKind::FStringStart
            | TokenKind::TStringStart => {
                level.left += 1;
                levels.push(Level::default());
            }
            TokenKind::Rpar
            | TokenKind::Rsqb
            | TokenKind::Rbrace
            | TokenKind::FStringEnd
            | TokenKind::TStringEnd
                if !outermost =>
            {
                right -= level.right;
                levels.pop();
            }
            // Several compound statements on one line are an error from which the parser recovers by nesting them.
            TokenKind::Colon => {
                let counts = outermost && !level.in_lambda;
                level.in_lambda = false;
                level.right += usize::from(counts);
                right += usize::from(counts);
            }
            kind if nests_right(kind, after_operand) => {
                level.in_lambda |= kind == TokenKind::Lambda;
                level.right += 1;
                right += 1;
            }
            kind if kind.is_operator() => level.left += 1,
            _ => {}
        }
        let level = levels.last().map_or(0, |level| level.left);
        if levels.len() + indents + right > DEEPEST || level > LONGEST {
            return true;
        }
        after_operand = is_operand_end(kind);
    }
}

fn nests_right(kind: TokenKind, after_operand: bool) -> bool {
    match kind {
        TokenKind::Lambda
        | TokenKind::Else
        | TokenKind::DoubleStar
        | TokenKind::ColonEqual
        | TokenKind::Not
        | TokenKind::Await
        | TokenKind::Yield => true,
        TokenKind::Minus | TokenKind::Plus | TokenKind::Tilde | TokenKind::Star => !after_operand,
        _ => false,
    }
}

fn is_operand_end(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::Name
            | TokenKind::Int
            | TokenKind::Float
            | TokenKind::Complex
            | TokenKind::String
            | TokenKind::FStringEnd
            | TokenKind::TStringEnd
            | TokenKind::Rpar
            | TokenKind::Rsqb
            | TokenKind::Rbrace
            | TokenKind::Ellipsis
    ) || kind.is_singleton()
        || kind.is_soft_keyword()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_not_too_deep() {
        let table = format!(
            "x = [{}]\n",
            "-1, lambda a, b: -a, 'a' if y else 'b', ".repeat(5_000)
        );
        let blocks: String = (0..99).map(|level| " ".repeat(level) + "if x:\n").collect();
        for text in [
            "import torch\nfor x in y:\n    z = f'{x!r:>{w}}'\n".repeat(3_000),
            table,
            blocks + &" ".repeat(99) + "pass\n",
            format!("x = {}1{}\n", "(".repeat(199), ")".repeat(199)),
            format!("x = 1{}\n", " + 1".repeat(9_000)),
            format!("s = '''{}'''\n# {}\n", "(".repeat(5_000), "[".repeat(5_000)),
            format!("{}\n", "x = f(a, b)[c]; ".repeat(9_000)),
        ] {
            assert!(!is_too_deep(&text), "{:.60}", text);
        }
    }

    #[test]
    fn every_way_to_nest_is_seen() {
        for text in [
            "(".repeat(2_000),
            "f'{".repeat(2_000),
            format!("x = {}1", "-".repeat(2_000)),
            format!("x = {}1", "not ".repeat(2_000)),
            format!("x = {}1", "lambda a, b: ".repeat(2_000)),
            format!("x = {}1", "1 if a else ".repeat(2_000)),
            format!("x = {}1", "2 ** ".repeat(2_000)),
            format!("x = {}1", "2 ** -".repeat(700)),
            format!("x = {}1", "[-".repeat(700)),
            "while x: ".repeat(2_000),
            "class A: ".repeat(2_000),
            (0..1_200).map(|level| " ".repeat(level) + "if x:\n").collect(),
            format!("x = a{}", ".b".repeat(30_000)),
            format!("x = a{}", "()".repeat(30_000)),
            format!("x = a{}", " + 1".repeat(30_000)),
        ] {
            assert!(is_too_deep(&text), "{:.60}", text);
        }
    }
}
