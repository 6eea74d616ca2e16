//! `sacct` of many jobs, one line at a time: a cluster's week is 100,000 of them. Also from a file that an administrator wrote with
//! `sacct --parsable2`; its first line names the columns. Every column may be missing.

use super::{SlurmError, lines_of};
use memchr::memchr_iter;
use std::io::{self, BufRead};
use std::ops::ControlFlow;

/// What flatout asks for.
const FIELDS: &[&str] = &[
    "JobIDRaw",
    "JobID",
    "Cluster",
    "User",
    "Account",
    "Partition",
    "State",
    "Start",
    "End",
    "ElapsedRaw",
    "AllocTRES",
    "JobName",
    "AdminComment",
];
/// A job's name may hold anything but this.
const DELIMITER: u8 = 0x1f;
/// A longer line is no line of sacct: a comment of jobstats has some 5,000 characters.
const LONGEST_LINE: usize = 4 << 20;

/// Which jobs to ask for.
#[derive(Clone, Debug, Default)]
pub struct HistoryQuery {
    /// As sacct takes it: `now-7days`, `2026-11-01`.
    pub since: Option<String>,
    pub until: Option<String>,
    pub user: Option<String>,
    pub account: Option<String>,
    pub partition: Option<String>,
}

/// One run of a job, as a line has it. Empty where it is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HistoryRow<'a> {
    pub raw_id: &'a str,
    /// As people write it: `4711_3`.
    pub id: &'a str,
    pub cluster: &'a str,
    pub user: &'a str,
    pub account: &'a str,
    pub partition: &'a str,
    pub state: &'a str,
    /// Seconds since 1970; of a file with local times, as if they were UTC.
    pub start: Option<i64>,
    pub end: Option<i64>,
    pub elapsed_s: Option<f64>,
    pub tres: &'a str,
    pub name: &'a str,
    pub comment: &'a str,
}

impl HistoryRow<'_> {
    /// Whether the line is a step (`4711.batch`, `4711.0`), not the job.
    pub fn is_step(&self) -> bool {
        self.raw_id.contains('.')
    }

    /// GPUs that were allocated, and their type where it is known.
    pub fn gpus(&self) -> (u64, Option<&str>) {
        gpus(self.tres)
    }
}

/// What the file or `sacct` printed that is no row of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unreadable {
    pub lines: u64,
}

/// Asks `sacct`, all users unless one is named, and hands over every row. Requeued jobs come once for each of their runs.
pub fn history(query: &HistoryQuery, row: &mut dyn FnMut(&HistoryRow)) -> Result<Unreadable, SlurmError> {
    let mut arguments = vec![
        "--allocations".to_owned(),
        "--duplicates".to_owned(),
        "--truncate".to_owned(),
        "--parsable2".to_owned(),
        format!("--delimiter={}", char::from(DELIMITER)),
        format!("--format={}", FIELDS.join(",")),
    ];
    if query.user.is_none() {
        arguments.push("--allusers".to_owned());
    }
    let options = [
        ("starttime", &query.since),
        ("endtime", &query.until),
        ("user", &query.user),
        ("accounts", &query.account),
        ("partition", &query.partition),
    ];
    for (option, value) in options {
        arguments.extend(value.as_ref().map(|value| format!("--{option}={value}")));
    }
    let (mut reader, mut first) = (Rows::default(), String::new());
    // Seconds since 1970: local times are ambiguous for an hour a year.
    let environment = [("SLURM_TIME_FORMAT", "%s"), ("LC_ALL", "C")];
    lines_of("sacct", &arguments, &environment, &mut |line| {
        reader.line(line, row);
        if reader.columns.is_some() {
            return ControlFlow::Continue(());
        }
        first = String::from_utf8_lossy(line).trim().to_owned();
        ControlFlow::Break(())
    })?;
    match reader.columns {
        // It printed something else than a table.
        None if reader.seen => Err(SlurmError::Refused {
            program: "sacct".to_owned(),
            words: first,
        }),
        _ => Ok(reader.unreadable),
    }
}

/// The same of what somebody saved. `None` where the first line names no column of sacct.
pub fn history_of(
    input: &mut dyn BufRead,
    row: &mut dyn FnMut(&HistoryRow),
) -> io::Result<Option<Unreadable>> {
    let mut reader = Rows::default();
    let mut line = Vec::new();
    while read_line(input, &mut line)? {
        reader.line(&line, row);
        if reader.columns.is_none() && reader.seen {
            return Ok(None);
        }
    }
    Ok(reader.columns.is_some().then_some(reader.unreadable))
}

/// A line without its end; of a line that is too long, its beginning.
pub(super) fn read_line(input: &mut (impl BufRead + ?Sized), line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut any = false;
    loop {
        let buffer = match input.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if buffer.is_empty() {
            return Ok(any);
        }
        any = true;
        let end = memchr::memchr(b'\n', buffer);
        let taken = end.unwrap_or(buffer.len());
        let room = LONGEST_LINE.saturating_sub(line.len()).min(taken);
        line.extend_from_slice(&buffer[..room]);
        let used = end.map_or(taken, |end| end + 1);
        input.consume(used);
        if end.is_some() {
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            return Ok(true);
        }
    }
}

/// Where each value is in a line.
#[derive(Debug)]
struct Columns {
    delimiter: u8,
    count: usize,
    raw_id: Option<usize>,
    id: Option<usize>,
    cluster: Option<usize>,
    user: Option<usize>,
    account: Option<usize>,
    partition: Option<usize>,
    state: Option<usize>,
    start: Option<usize>,
    end: Option<usize>,
    elapsed_s: Option<usize>,
    elapsed: Option<usize>,
    tres: Option<usize>,
    name: Option<usize>,
    comment: Option<usize>,
}

impl Columns {
    fn of(header: &str) -> Option<Self> {
        let delimiter = [DELIMITER, b'|', b'\t', b',', b';']
            .into_iter()
            .find(|delimiter| header.as_bytes().contains(delimiter))?;
        let names: Vec<String> = header
            .split(char::from(delimiter))
            .map(|name| name.trim().to_ascii_lowercase())
            .collect();
        let at = |wanted: &str| names.iter().position(|name| name == wanted);
        let columns = Self {
            delimiter,
            count: names.len(),
            raw_id: at("jobidraw"),
            id: at("jobid"),
            cluster: at("cluster"),
            user: at("user"),
            account: at("account"),
            partition: at("partition"),
            state: at("state"),
            start: at("start"),
            end: at("end"),
            elapsed_s: at("elapsedraw"),
            elapsed: at("elapsed"),
            tres: at("alloctres"),
            name: at("jobname"),
            comment: at("admincomment"),
        };
        (columns.raw_id.is_some() || columns.id.is_some()).then_some(columns)
    }
}

#[derive(Default)]
struct Rows {
    columns: Option<Columns>,
    /// Whether there was a line with something in it.
    seen: bool,
    unreadable: Unreadable,
    /// Where the delimiters of the line are.
    ends: Vec<usize>,
}

impl Rows {
    fn line(&mut self, line: &[u8], row: &mut dyn FnMut(&HistoryRow)) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let text = String::from_utf8_lossy(line);
        let header = !std::mem::replace(&mut self.seen, true);
        if header {
            // A file of Windows begins with a mark.
            self.columns = Columns::of(text.trim_start_matches('\u{feff}'));
            return;
        }
        let Some(columns) = &self.columns else { return };
        self.ends.clear();
        self.ends.extend(memchr_iter(columns.delimiter, text.as_bytes()));
        self.ends.push(text.len());
        match values(&text, columns, &self.ends) {
            Some(found) => row(&found),
            None => self.unreadable.lines += 1,
        }
    }
}

/// A line taken apart. A name that contains the delimiter has more cells than the header: those in the middle are the name's.
fn values<'a>(text: &'a str, columns: &Columns, ends: &[usize]) -> Option<HistoryRow<'a>> {
    let extra = ends.len().checked_sub(columns.count)?;
    if extra > 0 && columns.name.is_none() {
        return None;
    }
    let cell = |index: usize| {
        let begin = match index {
            0 => 0,
            index => ends.get(index - 1)? + 1,
        };
        text.get(begin..*ends.get(index)?)
    };
    let field = |column: Option<usize>| {
        let column = column?;
        let value = match columns.name {
            Some(name) if column == name => {
                let begin = if name == 0 { 0 } else { ends.get(name - 1)? + 1 };
                text.get(begin..*ends.get(name + extra)?)?
            }
            Some(name) if column > name => cell(column + extra)?,
            _ => cell(column)?,
        };
        Some(value.trim()).filter(|value| !matches!(*value, "" | "Unknown" | "None" | "(null)"))
    };
    let raw_id = field(columns.raw_id).or_else(|| field(columns.id))?;
    if !raw_id.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let or_empty = |column| field(column).unwrap_or("");
    let elapsed = field(columns.elapsed_s).and_then(|value| value.parse::<f64>().ok());
    let elapsed = elapsed.or_else(|| super::accounting::clock_s(field(columns.elapsed)?));
    Some(HistoryRow {
        raw_id,
        id: field(columns.id).unwrap_or(raw_id),
        cluster: or_empty(columns.cluster),
        user: or_empty(columns.user),
        account: or_empty(columns.account),
        partition: or_empty(columns.partition),
        state: or_empty(columns.state),
        start: field(columns.start).and_then(moment),
        end: field(columns.end).and_then(moment),
        elapsed_s: elapsed.filter(|seconds| seconds.is_finite() && *seconds >= 0.0),
        tres: or_empty(columns.tres),
        name: or_empty(columns.name),
        comment: or_empty(columns.comment),
    })
}

/// `1794712320`, or `2026-11-15T03:12:00`.
fn moment(text: &str) -> Option<i64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok();
    }
    let (date, clock) = text.split_once('T')?;
    let mut date = date.splitn(3, '-').map(str::parse::<i64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let mut clock = clock.splitn(3, ':').map(str::parse::<i64>);
    let (hour, minute, second) = (clock.next()?.ok()?, clock.next()?.ok()?, clock.next()?.ok()?);
    if !(1970..10_000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days since 1970 of a civil date (Howard Hinnant's algorithm).
    let year = if month > 2 { year } else { year - 1 };
    let era = year.div_euclid(400);
    let year_of_era = year - era * 400;
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

/// `gres/gpu=4` of `cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=1G` is the sum; sites that count types only have no sum.
fn gpus(tres: &str) -> (u64, Option<&str>) {
    let (mut sum, mut typed, mut kind) = (None, 0u64, None);
    for entry in tres.split(',') {
        let Some(rest) = entry.trim().strip_prefix("gres/gpu") else {
            continue;
        };
        let Some((name, count)) = rest.split_once('=') else {
            continue;
        };
        let Ok(count) = count.parse::<u64>() else { continue };
        match name.strip_prefix(':') {
            None if name.is_empty() => sum = Some(count),
            Some(name) => {
                typed = typed.saturating_add(count);
                kind = Some(name);
            }
            None => {}
        }
    }
    // More than this is no allocation of one job.
    (sum.unwrap_or(typed).min(1_000_000), kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows(text: &str) -> Option<(Vec<String>, u64)> {
        let mut found = Vec::new();
        let unreadable = history_of(&mut text.as_bytes(), &mut |row| {
            found.push(format!(
                "{} {} {} {:?} {:?} {}",
                row.id,
                row.user,
                row.name,
                row.elapsed_s,
                row.gpus(),
                row.comment
            ));
        });
        unreadable.unwrap().map(|unreadable| (found, unreadable.lines))
    }

    #[test]
    fn columns_are_found_by_their_names() {
        let text = "User|JobID|Elapsed|AllocTRES|JobName|AdminComment\nann|7|01:00:00|cpu=1,gres/gpu:a100=2|train|JS1:x\n";
        assert_eq!(
            rows(text).unwrap().0,
            ["7 ann train Some(3600.0) (2, Some(\"a100\")) JS1:x"]
        );
    }

    #[test]
    fn a_name_may_contain_the_delimiter() {
        let text = "JobIDRaw|User|JobName|ElapsedRaw|AllocTRES\n7|ann|a|b|c|60|gres/gpu=1\n8|bob\n";
        let (found, unreadable) = rows(text).unwrap();
        assert_eq!(found, ["7 ann a|b|c Some(60.0) (1, None) "]);
        assert_eq!(unreadable, 1);
    }

    #[test]
    fn what_is_not_of_sacct_is_refused() {
        assert_eq!(rows("hello\nworld\n"), None);
        assert_eq!(rows("a|b|c\n1|2|3\n"), None);
        assert_eq!(rows(""), None);
        assert_eq!(rows("JobID|User\n"), Some((Vec::new(), 0)));
    }

    #[test]
    fn gpus_are_counted_once() {
        assert_eq!(
            gpus("billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=1G"),
            (4, Some("a100"))
        );
        assert_eq!(gpus("gres/gpu:a100=3,gres/gpu:v100=1"), (4, Some("v100")));
        assert_eq!(gpus("gres/gpumem=4G,gres/gpuutil=9"), (0, None));
        assert_eq!(gpus("gres/gpu=x"), (0, None));
    }

    #[test]
    fn moments_are_seconds() {
        assert_eq!(moment("1794712320"), Some(1_794_712_320));
        assert_eq!(moment("2026-11-15T03:12:00"), Some(1_794_712_320));
        assert_eq!(moment("2000-02-29T00:00:00"), Some(951_782_400));
        assert_eq!((moment("Unknown"), moment("2026-13-01T00:00:00")), (None, None));
    }

    proptest! {
        #[test]
        fn any_text_is_fine(text in "(JobID|User|JobName)?[0-9a-zA-Z.:=,|\u{1f}\n_\\[\\]é-]{0,300}") {
            let _ = rows(&text);
        }
    }
}
