//! Words for a shell and values for `#SBATCH` lines.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// A word as a shell takes it back unchanged: in single quotes, unless it is plain.
pub fn quoted(word: &OsStr) -> Vec<u8> {
    let bytes = word.as_bytes();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./=:,+@%".contains(byte);
    // `a=b` in front of a command would be an assignment; quoting the whole word makes it a word again.
    if !bytes.is_empty() && bytes.iter().all(plain) && !bytes.contains(&b'=') {
        return bytes.to_vec();
    }
    let mut out = vec![b'\''];
    for byte in bytes {
        match byte {
            b'\'' => out.extend_from_slice(b"'\\''"),
            byte => out.push(*byte),
        }
    }
    out.push(b'\'');
    out
}

/// A value that can stand in an `#SBATCH` line as it is: no blanks, quotes, line ends or anything that Slurm would take apart.
pub fn word(value: &str) -> bool {
    !value.is_empty()
        && value.len() <= 200
        && !value.starts_with('-')
        && value
            .chars()
            .all(|c| c.is_alphanumeric() || "_-./=:,+@%~[]".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    use std::process::Command;

    /// What a real shell makes of the words.
    fn through_a_shell(words: &[OsString]) -> Vec<Vec<u8>> {
        let mut script = b"printf '%s\\0'".to_vec();
        for word in words {
            script.push(b' ');
            script.extend(quoted(word));
        }
        let output = Command::new("sh")
            .arg("-c")
            .arg(OsString::from_vec(script))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        output
            .stdout
            .split(|byte| *byte == 0)
            .map(<[u8]>::to_vec)
            .take(words.len())
            .collect()
    }

    #[test]
    fn hostile_words_stay_words() {
        let words: Vec<OsString> = [
            "",
            " ",
            "a b",
            "'",
            "\"$(touch /tmp/x)\"",
            "`id`",
            "a\nb",
            "*",
            "~",
            "$HOME",
            ";",
            "A=1",
            "#",
            "-n",
            "\\",
            "中文",
        ]
        .iter()
        .map(OsString::from)
        .collect();
        let back = through_a_shell(&words);
        let expected: Vec<Vec<u8>> = words.iter().map(|word| word.clone().into_vec()).collect();
        assert_eq!(back, expected);
        assert_eq!(quoted(OsStr::new("train.py")), b"train.py");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn any_bytes_come_back(words in prop::collection::vec(prop::collection::vec(1u8..=255, 0..20), 1..6)) {
            let words: Vec<OsString> = words.into_iter().map(OsString::from_vec).collect();
            let expected: Vec<Vec<u8>> = words.iter().map(|word| word.clone().into_vec()).collect();
            prop_assert_eq!(through_a_shell(&words), expected);
        }
    }
}
