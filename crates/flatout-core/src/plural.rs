//! English numbers: "1 file", "2 files". Messages are written in the plural; [`counted`] puts what follows a 1 into the singular.

/// Plural and singular of the nouns that messages count.
const NOUNS: &[(&str, &str)] = &[
    ("CPUs", "CPU"),
    ("GPUs", "GPU"),
    ("batches", "batch"),
    ("changes", "change"),
    ("channels", "channel"),
    ("checkpoints", "checkpoint"),
    ("classes", "class"),
    ("collections", "collection"),
    ("collectives", "collective"),
    ("columns", "column"),
    ("combinations", "combination"),
    ("days", "day"),
    ("edits", "edit"),
    ("entities", "entity"),
    ("epochs", "epoch"),
    ("errors", "error"),
    ("features", "feature"),
    ("fields", "field"),
    ("files", "file"),
    ("findings", "finding"),
    ("folders", "folder"),
    ("hours", "hour"),
    ("images", "image"),
    ("iterations", "iteration"),
    ("jobs", "job"),
    ("kernels", "kernel"),
    ("lanes", "lane"),
    ("lines", "line"),
    ("minutes", "minute"),
    ("parameters", "parameter"),
    ("parts", "part"),
    ("points", "point"),
    ("predictions", "prediction"),
    ("processes", "process"),
    ("ranks", "rank"),
    ("records", "record"),
    ("rows", "row"),
    ("rules", "rule"),
    ("runs", "run"),
    ("samples", "sample"),
    ("seconds", "second"),
    ("settings", "setting"),
    ("shapes", "shape"),
    ("steps", "step"),
    ("tasks", "task"),
    ("threads", "thread"),
    ("times", "time"),
    ("tokens", "token"),
    ("trials", "trial"),
    ("users", "user"),
    ("values", "value"),
    ("warnings", "warning"),
    ("windows", "window"),
    ("workers", "worker"),
];

/// The text with nouns that agree with their number: "1 files" becomes "1 file", "2 thread(s)" becomes "2 threads". Only a whole
/// number right before the noun counts: "101 files", "0.1 steps" and paths stay as they are.
pub fn counted(text: String) -> String {
    if !text.contains("1 ") && !text.contains("(s)") {
        return text;
    }
    let mut result = String::with_capacity(text.len());
    let mut rest = text.as_str();
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let number: &str = &rest[..rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len()];
        let starts = !number.is_empty() && (before == ' ' || before == '(' || before == '\n');
        if let Some((counted, length)) = starts.then(|| agreeing(number, &rest[number.len()..])).flatten() {
            result.push_str(number);
            result.push(' ');
            result.push_str(counted);
            rest = &rest[number.len() + length..];
            before = 's';
            continue;
        }
        let length = if number.is_empty() {
            first.len_utf8()
        } else {
            number.len()
        };
        before = rest[..length].chars().next_back().unwrap_or(' ');
        result.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    result
}

/// The noun after a number, and how much of the text it replaces.
fn agreeing(number: &str, after: &str) -> Option<(&'static str, usize)> {
    let rest = after.strip_prefix(' ')?;
    let ends = |tail: &str| {
        !tail
            .chars()
            .next()
            .is_some_and(|next| next.is_alphanumeric() || "_-/\\(".contains(next))
    };
    NOUNS.iter().find_map(|(plural, singular)| {
        let chosen = if number == "1" { *singular } else { *plural };
        let open = rest
            .strip_prefix(singular)
            .and_then(|tail| tail.strip_prefix("(s)"));
        if let Some(tail) = open.filter(|tail| ends(tail)) {
            return Some((chosen, after.len() - tail.len()));
        }
        let tail = rest.strip_prefix(plural).filter(|tail| ends(tail))?;
        (number == "1").then_some((chosen, after.len() - tail.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn nouns_agree_with_their_number() {
        for (written, shown) in [
            ("wrote 1 files with 1 rows", "wrote 1 file with 1 row"),
            ("wrote 2 files with 11 rows", "wrote 2 files with 11 rows"),
            (
                "in all_reduce after 1 collectives",
                "in all_reduce after 1 collective",
            ),
            ("1 thread(s) (1 batches)", "1 thread (1 batch)"),
            ("8 thread(s), last of 1 time(s)", "8 threads, last of 1 time"),
            (
                "num_workers=1 workers; 101 files, 0.1 steps, 2.1 steps",
                "num_workers=1 workers; 101 files, 0.1 steps, 2.1 steps",
            ),
            ("/data/1 files/x and 1 rows-old", "/data/1 files/x and 1 rows-old"),
            ("第 1 files", "第 1 file"),
            ("1 ", "1 "),
        ] {
            assert_eq!(counted(written.to_owned()), shown);
        }
    }
}
