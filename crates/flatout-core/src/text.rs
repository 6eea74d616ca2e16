//! Text that has to fit, and text that must not command the terminal.

use std::borrow::Cow;
use std::fmt::Write;

/// At most this many characters, the last one an ellipsis if text was cut.
pub fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// Clears the line that is being rewritten; flatout's own.
const CLEAR_LINE: &str = "\r\x1b[K";

/// Text as it may be printed. Names of files, columns and classes come from anywhere, and a terminal obeys control characters: a CSV
/// header can set the window's title. They are shown as `\x1b`, and characters that turn the direction of writing as `\u{202e}`.
/// Lines, tabs, flatout's own colors and its cleared lines stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    let plain = |c: char| matches!(c, '\n' | '\t') || !is_hidden(c);
    if text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let own = own_sequence(rest);
        if own > 0 {
            shown.push_str(&rest[..own]);
            rest = &rest[own..];
            continue;
        }
        if plain(c) {
            shown.push(c);
        } else if c.is_ascii() {
            let _ = write!(shown, "\\x{:02x}", u32::from(c));
        } else {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
        }
        rest = &rest[c.len_utf8()..];
    }
    Cow::Owned(shown)
}

/// Control characters, and those that change the order in which others are shown.
fn is_hidden(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

/// Bytes of a sequence at the start of the text that flatout itself writes: a color, a cleared line, a line break of Windows.
fn own_sequence(text: &str) -> usize {
    if text.starts_with(CLEAR_LINE) {
        return CLEAR_LINE.len();
    }
    if text.starts_with("\r\n") {
        return 2;
    }
    let Some(body) = text.strip_prefix("\x1b[") else {
        return 0;
    };
    let digits = body
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || *byte == b';')
        .count();
    match body.as_bytes().get(digits) {
        Some(b'm') if digits < 20 => 2 + digits + 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_colors_stay() {
        for same in [
            "plain",
            "a\tb\n",
            "\x1b[1;31mred\x1b[0m",
            "\r\x1b[K50%",
            "a\r\nb",
            "损失",
        ] {
            assert!(
                matches!(visible(same), Cow::Borrowed(_)) || visible(same) == same,
                "{same:?}"
            );
        }
        for (given, shown) in [
            ("\x1b]0;pwn\x07", "\\x1b]0;pwn\\x07"),
            ("a\x1b[2Jb", "a\\x1b[2Jb"),
            ("over\rwrite", "over\\x0dwrite"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("txt\u{202e}exe", "txt\\u{202e}exe"),
            ("\x1b[", "\\x1b["),
            ("\0\x08", "\\x00\\x08"),
        ] {
            assert_eq!(visible(given), shown);
        }
    }

    #[test]
    fn truncation_is_marked() {
        assert_eq!(shortened("四个汉字", 4), "四个汉字");
        assert_eq!(shortened("five words", 5), "five…");
        assert_eq!(shortened("", 0), "");
    }
}
