//! Widths in terminal cells: a Chinese character takes two. Padding, cutting and wrapping go by cells, never by bytes.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub fn width(text: &str) -> usize {
    text.width()
}

/// `text` followed by spaces up to `cells`.
pub fn pad(text: &str, cells: usize) -> String {
    format!("{text}{}", " ".repeat(cells.saturating_sub(width(text))))
}

/// Spaces up to `cells`, then `text`.
pub fn pad_left(text: &str, cells: usize) -> String {
    format!("{}{text}", " ".repeat(cells.saturating_sub(width(text))))
}

/// The beginning of `text` that fits into `cells`, with `…` where something was cut.
pub fn cut(text: &str, cells: usize) -> String {
    if width(text) <= cells {
        return text.to_owned();
    }
    let Some(room) = cells.checked_sub(1) else {
        return String::new();
    };
    let mut kept = String::new();
    let mut used = 0;
    for character in text.chars() {
        used += character.width().unwrap_or(0);
        if used > room {
            break;
        }
        kept.push(character);
    }
    kept + "…"
}

/// Control characters, which a program's name or a file may hold, made harmless: they must not reach the terminal.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '\n' | '\t' | '\r' => ' ',
            character if character.is_control() => '\u{fffd}',
            character => character,
        })
        .collect()
}

/// Lines of at most `cells`. Breaks at spaces, and between Chinese characters but not before their closing
/// punctuation. A word that is wider than a line is cut into pieces. Newlines in the text stay.
pub fn wrap(text: &str, cells: usize) -> Vec<String> {
    let cells = cells.max(2);
    text.lines()
        .flat_map(|line| wrap_line(&printable(line), cells))
        .collect()
}

fn wrap_line(text: &str, cells: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for piece in pieces(text) {
        let piece_cells = width(piece.trim_end());
        if used > 0 && used + piece_cells > cells {
            lines.push(String::new());
            used = 0;
        }
        for character in piece.chars() {
            let character_cells = character.width().unwrap_or(0);
            if used + character_cells > cells {
                if character == ' ' {
                    continue;
                }
                lines.push(String::new());
                used = 0;
            }
            if let Some(line) = lines.last_mut() {
                line.push(character);
            }
            used += character_cells;
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// What may not be torn apart: a word with the spaces behind it, or one Chinese character with the punctuation behind it.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut previous: Option<char> = None;
    for (index, character) in text.char_indices() {
        if previous.is_some_and(|before| may_break(before, character)) {
            pieces.push(&text[start..index]);
            start = index;
        }
        previous = Some(character);
    }
    if start < text.len() {
        pieces.push(&text[start..]);
    }
    pieces
}

fn may_break(before: char, after: char) -> bool {
    const CLOSING: &str = "，。、；：！？）》」』】”’%";
    const OPENING: &str = "（《「『【“‘";
    if after == ' ' || CLOSING.contains(after) || OPENING.contains(before) {
        return false;
    }
    let wide = |character: char| character.width().unwrap_or(0) > 1;
    before == ' ' || wide(before) || wide(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_not_bytes() {
        assert_eq!(width("显存 GPU"), 8);
        assert_eq!(pad("显存", 6), "显存  ");
        assert_eq!(pad_left("显存", 6), "  显存");
        assert_eq!(cut("显存利用率", 6), "显存…");
        assert_eq!(cut("utilisation", 6), "utili…");
        assert_eq!(cut("x", 0), "");
    }

    #[test]
    fn wrapping_keeps_words_and_chinese_punctuation_together() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("等待数据，很久。", 8), ["等待数", "据，很", "久。"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("a\n\nb", 10), ["a", "", "b"]);
    }

    #[test]
    fn no_line_is_too_wide_whatever_the_text() {
        for text in [
            "GPU 在等数据 GPU waits, 61% 的时间（很多）",
            "（（（（（（",
            "。。。。。。。。",
            "a  b   c    d",
        ] {
            for cells in 2..20 {
                assert!(
                    wrap(text, cells).iter().all(|line| width(line) <= cells),
                    "{text} at {cells}"
                );
            }
        }
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\tc"), "a\u{fffd}[2Jb c");
    }
}
