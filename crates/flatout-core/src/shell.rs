//! Words of a command line, as they are typed into a shell.

/// One word: in quotes where it has signs that mean something to a shell.
pub fn word(text: &str) -> String {
    let plain = |char: char| char.is_alphanumeric() || "_-./=:,@%+".contains(char);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// A whole command.
pub fn line<W: AsRef<str>>(words: &[W]) -> String {
    let words: Vec<String> = words.iter().map(|one| word(one.as_ref())).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_shell_would_take_apart_is_quoted() {
        for plain in [
            "train.py",
            "--lr=1e-3",
            "loader.num_workers=8,amp=bf16",
            "数据/股票.csv",
        ] {
            assert_eq!(word(plain), plain);
        }
        assert_eq!(word(""), "''");
        assert_eq!(word("my data"), "'my data'");
        assert_eq!(word("it's"), r"'it'\''s'");
        assert_eq!(word("$(rm)"), "'$(rm)'");
        assert_eq!(
            line(&["python", "my train.py", "--lr=1"]),
            "python 'my train.py' --lr=1"
        );
    }
}
