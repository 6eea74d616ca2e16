//! Text that has to fit.

/// At most so many characters, the last of them a sign that there were more.
pub fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!(shortened("四个汉字", 4), "四个汉字");
        assert_eq!(shortened("five words", 5), "five…");
        assert_eq!(shortened("", 0), "");
    }
}
