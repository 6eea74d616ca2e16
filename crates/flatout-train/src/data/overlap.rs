//! Whether files are one per entity or the parts of one table, told by their first and last lines: the days of two stocks are the same,
//! the days of two parts of a log follow each other.

use flatout_data::time::parse_any_us;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Columns that mean "the time of the row".
const TIME_NAMES: [&str; 6] = ["date", "datetime", "time", "timestamp", "trade_date", "day"];
/// Enough for a header and some lines.
const PIECE_BYTES: u64 = 64 << 10;

/// Whether the first two files have a column of time, and their times overlap.
pub fn in_time(files: &[PathBuf]) -> bool {
    let [first, second, ..] = files else {
        return false;
    };
    match (span(first), span(second)) {
        (Some(one), Some(other)) => one.0 < other.1 && other.0 < one.1,
        _ => false,
    }
}

/// The earlier and the later of the times in the first and the last line; `None` where there is no column of time, or no plain text.
fn span(path: &Path) -> Option<(i64, i64)> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let head = piece(&mut file, 0)?;
    let tail = piece(&mut file, length.saturating_sub(PIECE_BYTES))?;
    let mut lines = head.lines();
    let header = lines.next()?;
    let separator = ['\t', ';', ','].into_iter().find(|sign| header.contains(*sign))?;
    let plain = |cell: &str| cell.trim().trim_matches('"').to_ascii_lowercase();
    let column = header
        .split(separator)
        .position(|name| TIME_NAMES.contains(&plain(name).as_str()))?;
    let time = |line: &str| parse_any_us(plain(line.split(separator).nth(column)?).as_bytes());
    let (first, last) = (time(lines.next()?)?, time(tail.lines().last()?)?);
    Some((first.min(last), first.max(last)))
}

fn piece(file: &mut File, from: u64) -> Option<String> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from)).ok()?;
    file.take(PIECE_BYTES).read_to_end(&mut bytes).ok()?;
    (!bytes.contains(&0)).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stocks_share_their_days_and_parts_of_a_log_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, days: std::ops::Range<u32>, column: &str| {
            let rows: String = days.map(|day| format!("2024-01-{day:02},{day}\n")).collect();
            let path = folder.path().join(name);
            std::fs::write(&path, format!("{column},close\n{rows}")).unwrap();
            path
        };
        let stocks = [write("a.csv", 1..20, "date"), write("b.csv", 3..25, "date")];
        let log = [write("c.csv", 1..10, "date"), write("d.csv", 10..20, "date")];
        let timeless = [write("e.csv", 1..10, "x"), write("f.csv", 1..10, "x")];
        assert!(in_time(&stocks) && !in_time(&log) && !in_time(&timeless) && !in_time(&stocks[..1]));
    }
}
