//! By what a line is known for a problem. The words were found already; here it is decided whether they mean it.

use super::{Found, ProblemKind};
use std::hash::Hasher;

pub fn kind(line: &[u8], found: Found) -> Option<ProblemKind> {
    if said_by_flatout(line) {
        return None;
    }
    if found.error() && is_out_of_memory(line) {
        return Some(ProblemKind::OutOfMemory);
    }
    if found.error() && is_error(line) {
        return Some(ProblemKind::Error);
    }
    if found.warning() && is_warning(line) {
        return Some(ProblemKind::Warning);
    }
    (found.nan() && has_nan(line)).then_some(ProblemKind::NotANumber)
}

/// What `flatout run` found stands in the log of its program, and in the record: no need to tell it twice.
fn said_by_flatout(line: &[u8]) -> bool {
    ["! WARNING  ", "✗ CRITICAL  "]
        .iter()
        .any(|sign| line.starts_with(sign.as_bytes()))
        && line.ends_with(b"]")
}

/// `[rank0]: Traceback …`, as PyTorch prefixes lines of a rank.
pub fn without_rank(line: &[u8]) -> &[u8] {
    let Some(rest) = line.strip_prefix(b"[rank") else {
        return line;
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match rest[digits..].strip_prefix(b"]:") {
        Some(text) => text.strip_prefix(b" ").unwrap_or(text),
        None => line,
    }
}

pub fn is_out_of_memory(line: &[u8]) -> bool {
    [
        &b"out of memory"[..],
        b"outofmemory",
        b"oom-kill",
        b"oom_kill",
        b"oom killer",
        b"out_of_memory",
        "显存不足".as_bytes(),
        "内存不足".as_bytes(),
    ]
    .iter()
    .any(|phrase| holds(line, phrase))
        || whole_word(line, b"OOM", true)
}

fn is_error(line: &[u8]) -> bool {
    let phrases: [&[u8]; 7] = [
        b"segmentation fault",
        b"bus error",
        b"core dumped",
        b"cuda error",
        b"nccl error",
        b"due to time limit",
        b"*** job",
    ];
    [&b"ERROR"[..], b"CRITICAL", b"FATAL"]
        .iter()
        .any(|level| whole_word(line, level, true))
        || phrases.iter().any(|phrase| holds(line, phrase))
        || is_exception(line)
        || said_by_a_program(line, b"error:")
        || said_by_a_program(line, b"fatal:")
        || said_in_chinese(line, "错误")
        || said_in_chinese(line, "异常")
        || line.trim_ascii() == b"Killed"
}

fn is_warning(line: &[u8]) -> bool {
    [&b"WARNING"[..], b"WARN"]
        .iter()
        .any(|level| whole_word(line, level, true))
        || said_by_a_program(line, b"warning:")
        || said_in_chinese(line, "警告")
        || memchr::memmem::find(line, b"Warning: ").is_some()
}

/// `RuntimeError: …`, `torch.OutOfMemoryError: …`, `KeyboardInterrupt`: a line that ends a traceback.
pub fn is_exception(line: &[u8]) -> bool {
    let length = line
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
        .count();
    let (name, rest) = line.split_at(length);
    // `Error: 0.31` is a metric.
    let value = rest.get(1..).unwrap_or_default().trim_ascii_start();
    let ends = rest.is_empty() || rest.starts_with(b":") && !value.first().is_some_and(u8::is_ascii_digit);
    let named = [&b"Error"[..], b"Exception", b"Interrupt", b"Exit", b"Iteration"];
    ends && named.iter().any(|ending| name.ends_with(ending))
        && name.first().is_some_and(u8::is_ascii_alphabetic)
}

/// `srun: error: …`, or at the line's start; but `mean error: 0.12` is a metric.
fn said_by_a_program(line: &[u8], word: &[u8]) -> bool {
    let mut from = 0;
    while let Some(at) = find(&line[from..], word).map(|at| at + from) {
        from = at + word.len();
        let before = line[..at].trim_ascii_end();
        let value = line[from..].trim_ascii_start();
        let is_number = value
            .first()
            .is_some_and(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.'));
        if (before.is_empty() || before.ends_with(b":") || before.ends_with(b"]")) && !is_number {
            return true;
        }
    }
    false
}

/// `错误：…`, `[警告] …`; but `训练错误：0.12` is a metric, and so is `错误率 3%`.
fn said_in_chinese(line: &[u8], word: &str) -> bool {
    let Some(at) = memchr::memmem::find(line, word.as_bytes()) else {
        return false;
    };
    let rest = &line[at + word.len()..];
    let marks = ["：", ":", "]", "】"];
    let Some(value) = marks.iter().find_map(|mark| rest.strip_prefix(mark.as_bytes())) else {
        return false;
    };
    let value = value.trim_ascii_start().first();
    !value.is_some_and(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.'))
}

/// `nan` by itself, as a value: not in a path, a name or a word.
fn has_nan(line: &[u8]) -> bool {
    let mut from = 0;
    while let Some(at) = find(&line[from..], b"nan").map(|at| at + from) {
        from = at + 3;
        let joins = |byte: Option<&u8>| {
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_-./\\".contains(byte) || *byte >= 0x80)
        };
        let before = at.checked_sub(1).and_then(|at| line.get(at));
        // `nan.` may end a sentence.
        let after = line
            .get(from)
            .filter(|byte| **byte != b'.' || line.get(from + 1).is_some_and(u8::is_ascii_alphanumeric));
        // `-nan` is what C prints.
        let negative = before == Some(&b'-') && !joins(at.checked_sub(2).and_then(|at| line.get(at)));
        if (negative || !joins(before)) && !joins(after) {
            return true;
        }
    }
    false
}

/// `  File "train.py", line 12, in step` as `train.py:12 in step`.
pub fn python_place(line: &[u8]) -> Option<String> {
    let rest = line.trim_ascii_start().strip_prefix(b"File \"")?;
    let quote = memchr::memchr(b'"', rest)?;
    let number = rest[quote..].strip_prefix(b"\", line ")?;
    let digits = number.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (line, function) = (&number[..digits], number[digits..].strip_prefix(b", in "));
    let file = shown(&rest[..quote], 200);
    let line = String::from_utf8_lossy(line);
    Some(match function {
        Some(function) => format!("{file}:{line} in {}", shown(function, 60)),
        None => format!("{file}:{line}"),
    })
}

/// Two lines that differ in numbers only are the same problem.
pub fn hash_without_numbers(line: &[u8], hasher: &mut impl Hasher) {
    let mut in_number = false;
    let mut kept = [0u8; 512];
    let mut length = 0;
    for byte in line.trim_ascii() {
        let digit = byte.is_ascii_digit()
            || in_number && matches!(byte, b'.' | b',' | b':' | b'a'..=b'f' | b'x' | b'-');
        let write = if digit { b'#' } else { *byte };
        if !(digit && in_number) {
            if length == kept.len() {
                break;
            }
            kept[length] = write;
            length += 1;
        }
        in_number = digit;
    }
    hasher.write(&kept[..length]);
}

/// Fit to be shown: no control characters, not too long, whatever the encoding.
pub fn shown(line: &[u8], most: usize) -> String {
    let line = line.trim_ascii();
    let text = String::from_utf8_lossy(&line[..line.len().min(4 * most)]);
    let clean = text.chars().filter(|c| !c.is_control());
    clean.take(most).collect()
}

fn find(line: &[u8], word: &[u8]) -> Option<usize> {
    // The words are short and lines few that come here.
    line.windows(word.len())
        .position(|window| window.eq_ignore_ascii_case(word))
}

fn holds(line: &[u8], phrase: &[u8]) -> bool {
    find(line, phrase).is_some()
}

/// The word with no letter, digit or underscore around it; with `exact`, in this very case.
fn whole_word(line: &[u8], word: &[u8], exact: bool) -> bool {
    let mut from = 0;
    while let Some(at) = find(&line[from..], word).map(|at| at + from) {
        from = at + word.len();
        let joins = |byte: Option<&u8>| {
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'=' | b'/'))
        };
        let same = !exact || &line[at..from] == word;
        if same && !joins(at.checked_sub(1).and_then(|at| line.get(at))) && !joins(line.get(from)) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_no_errors() {
        for line in [
            "gap_error: 0.12",
            "mean error: 0.12",
            "Error: 0.31",
            "val error=0.2",
            "ERROR=0",
            "error rate 3%",
            "TestError rate",
            "训练错误：0.12",
            "错误率 3%",
            "异常值比例: 0.1",
        ] {
            assert!(!is_error(line.as_bytes()), "{line}");
        }
        for line in [
            "ERROR could not open",
            "[ERROR] x",
            "srun: error: task 0: Killed",
            "RuntimeError: shapes",
            "Segmentation fault (core dumped)",
            "error: no such file",
            "Killed",
            "错误：磁盘已满",
            "2026-11-16 [错误] 无法打开文件",
            "发生异常: 数据不存在",
        ] {
            assert!(is_error(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn findings_of_flatout_are_not_the_programs() {
        for (line, own) in [
            (
                "! WARNING  Other programs use 99% of the 2 CPUs available to this run  [cpu-stolen]",
                true,
            ),
            (
                "✗ CRITICAL  The loader has no workers  [loader-without-workers]",
                true,
            ),
            ("! WARNING  the disk is full", false),
            ("WARNING: this is the end [1]", false),
        ] {
            assert_eq!(said_by_flatout(line.as_bytes()), own, "{line}");
        }
    }

    #[test]
    fn nan_is_a_value_not_a_syllable() {
        for line in [
            "loss: nan",
            "loss=NaN, acc",
            "'loss': nan}",
            "-nan",
            "loss is NaN.",
        ] {
            assert!(has_nan(line.as_bytes()), "{line}");
        }
        for line in ["finance", "/data/nan/x.csv", "nan_to_num", "np.nanmean", "banana"] {
            assert!(!has_nan(line.as_bytes()), "{line}");
        }
    }
}
