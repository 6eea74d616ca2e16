//! Text that has to fit, and text that must not command the terminal.

use std::borrow::Cow;
use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// At most this many characters, the last one an ellipsis if text was cut.
pub fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// Marks flatout's own sequences until they are printed. No file can contain it, because each process draws another: otherwise a
/// file name could color the terminal or clear a line.
static MARK: LazyLock<String> =
    LazyLock::new(|| format!("\u{1b}flatout-{:016x};", RandomState::new().hash_one(0)));

/// Text in a color: `1;31` is bold and red. For text that goes through [`visible`].
pub fn colored(code: &str, text: &str) -> String {
    let mark = MARK.as_str();
    format!("{mark}\x1b[{code}m{text}{mark}\x1b[0m")
}

const CLEAR_LINE: &str = "\r\x1b[K";

/// Clears the line that is being rewritten. For text that goes through [`visible`].
pub fn clear_line() -> String {
    format!("{}{CLEAR_LINE}", MARK.as_str())
}

/// Text as it may be printed. Names of files, columns and classes come from anywhere, and a terminal obeys control characters: a CSV
/// header can set the window's title. They are shown as `\x1b`, and characters that turn the direction of writing as `\u202e`, which
/// means the same in JSON. Lines, tabs, [`colored`] text and cleared lines stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    shown(text, true)
}

/// The same without colors and cleared lines, for a file.
pub fn visible_without_colors(text: &str) -> Cow<'_, str> {
    shown(text, false)
}

fn shown(text: &str, keep_own: bool) -> Cow<'_, str> {
    let plain = |c: char| matches!(c, '\n' | '\t') || !is_hidden(c);
    if text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some((sequence, after)) = own_sequence(rest) {
            if keep_own {
                shown.push_str(sequence);
            }
            rest = after;
            continue;
        }
        if plain(c) || rest.starts_with("\r\n") {
            shown.push(c);
        } else if c.is_ascii_control() && c != '\x7f' {
            let _ = write!(shown, "\\x{:02x}", u32::from(c));
        } else {
            let _ = write!(shown, "\\u{:04x}", u32::from(c));
        }
        rest = &rest[c.len_utf8()..];
    }
    Cow::Owned(shown)
}

/// Control characters, and those that change the order in which others are shown. All have at most four digits.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{2028}' | '\u{2029}')
}

/// What flatout itself wrote at the start of the text, and the text after it.
fn own_sequence(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix(MARK.as_str())?;
    if rest.starts_with(CLEAR_LINE) {
        return Some(rest.split_at(CLEAR_LINE.len()));
    }
    let body = rest.strip_prefix("\x1b[")?;
    let is_code = |byte: u8| byte.is_ascii_digit() || byte == b';';
    let digits = body.bytes().take_while(|byte| is_code(*byte)).count();
    let is_color = body.as_bytes().get(digits) == Some(&b'm');
    is_color.then(|| rest.split_at(2 + digits + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown() {
        for same in ["plain", "a\tb\n", "a\r\nb", "损失"] {
            assert_eq!(visible(same), same);
        }
        for (given, shown) in [
            ("\x1b]0;pwn\x07", "\\x1b]0;pwn\\x07"),
            ("a\x1b[2Jb", "a\\x1b[2Jb"),
            ("over\rwrite", "over\\x0dwrite"),
            ("\u{9b}31m", "\\u009b31m"),
            ("txt\u{202e}exe", "txt\\u202eexe"),
            ("\x1b[", "\\x1b["),
            ("\0\x08\x7f", "\\x00\\x08\\u007f"),
        ] {
            assert_eq!(visible(given), shown);
        }
    }

    #[test]
    fn only_our_own_colors_and_cleared_lines_reach_the_terminal() {
        let own = colored("1;31", "red") + &clear_line() + "50%";
        assert_eq!(visible(&own), "\x1b[1;31mred\x1b[0m\r\x1b[K50%");
        assert_eq!(visible_without_colors(&own), "red50%");
        for (data, shown) in [
            ("\x1b[8mhidden\x1b[0m", "\\x1b[8mhidden\\x1b[0m"),
            ("\r\x1b[Kall is well", "\\x0d\\x1b[Kall is well"),
            (
                "\x1bflatout-0000000000000000;\x1b[8m",
                "\\x1bflatout-0000000000000000;\\x1b[8m",
            ),
        ] {
            assert_eq!(visible(data), shown);
            assert_eq!(visible_without_colors(data), shown);
            let inside = colored("2", data);
            assert_eq!(visible(&inside), format!("\x1b[2m{shown}\x1b[0m"));
        }
        // Text that was cut within a sequence.
        let cut = &own[..own.find("red").unwrap() - 1];
        assert!(!visible(cut).contains('\x1b'));
    }

    #[test]
    fn json_means_the_same_afterwards() {
        // What a writer of JSON does not escape.
        let line = "{\"name\": \"a\u{202e}b\u{7f}\u{9b}\"}";
        assert_eq!(visible(line), "{\"name\": \"a\\u202eb\\u007f\\u009b\"}");
    }

    #[test]
    fn truncation_is_marked() {
        assert_eq!(shortened("四个汉字", 4), "四个汉字");
        assert_eq!(shortened("five words", 5), "five…");
        assert_eq!(shortened("", 0), "");
    }
}
