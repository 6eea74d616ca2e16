//! `flatout fleet`

use crate::context::Context;
use crate::output::write_stdout;
use crate::usage::Invalid;
use clap::Args;
use flatout_core::error::FileError;
use flatout_core::files::write_atomically;
use flatout_core::{Failure, Message, Result, message};
use flatout_record as record;
use flatout_report::fleet::{self, Filter, Fleet, Jobs};
use flatout_report::{page, text};
use flatout_slurm::{HistoryQuery, HistoryRow, SlurmError, history, history_of};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout fleet                                  the last seven days, all users
  flatout fleet --since 2026-11-01 --account lab
  flatout fleet --records /shared/flatout        with the records of all users
  flatout fleet --since 30d --html fleet.html
  flatout fleet --mail                           text for an e-mail to each user
  sacct -aXDTP -S now-7days -o ALL > jobs.txt    on the cluster, for the next line
  flatout fleet --from jobs.txt                  where sacct cannot be called";

const DEFAULT_SINCE: &str = "7d";

#[derive(Args)]
pub struct Arguments {
    /// From when on: 7d, 12h, 4w, or a date as in 2026-11-01 [default: 7d]
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<String>,
    /// Until when [default: now]
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<String>,
    /// Only these users, separated by commas
    #[arg(long, value_name = "NAMES", value_parser = names)]
    user: Option<String>,
    /// Only these accounts
    #[arg(long, value_name = "NAMES", value_parser = names)]
    account: Option<String>,
    /// Only these partitions
    #[arg(long, value_name = "NAMES", value_parser = names)]
    partition: Option<String>,
    /// Folders with flatout's records, of one user or with a folder per user [default: $FLATOUT_HOME/runs, else ./.flatout/runs]
    #[arg(long, value_name = "DIR", num_args = 1..)]
    records: Vec<PathBuf>,
    /// Read this file instead of calling sacct, `-` for stdin: the output of sacct --parsable2 with its header
    #[arg(long, value_name = "FILE", conflicts_with_all = ["since", "until"])]
    from: Option<PathBuf>,
    /// Every user, account and job, not the costliest only
    #[arg(long)]
    all: bool,
    /// Print as JSON
    #[arg(long, conflicts_with = "mail")]
    json: bool,
    /// Also write it as a page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print text for an e-mail to each user whose jobs are worth a talk
    #[arg(long)]
    mail: bool,
}

pub fn about() -> Message {
    message!(
        en: "GPU-hours of a cluster: allocated, used, wasted, by user, account and cause",
        zh: "集群的 GPU 小时：分配、使用、浪费，按用户、账户和原因统计"
    )
}

/// `7d`, or what sacct takes as a time.
fn moment(text: &str) -> std::result::Result<String, Invalid> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[number.len()..];
    let ago = is_number(number);
    match (ago, unit) {
        (true, "m" | "h" | "d" | "w") => Ok(text.to_owned()),
        // A number alone is a time of day for sacct: nobody means that.
        (true, _) => Err(Invalid(
            message!(en: "expected a unit: 30m, 12h, 7d or 4w", zh: "需要单位：30m、12h、7d 或 4w"),
        )),
        (false, _) if is_time_of_sacct(text) => Ok(text.to_owned()),
        (false, _) => Err(Invalid(message!(
            en: "expected 7d, 12h, 4w, or a date such as 2026-11-01 or 2026-11-01T08:00",
            zh: "应写成 7d、12h、4w，或日期，如 2026-11-01、2026-11-01T08:00"
        ))),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `today`, `now-7days`, `08:30`, `11/01`, `11/01/26-08:30`, `2026-11-01T08:30:00`. sacct itself takes some other words for now.
fn is_time_of_sacct(text: &str) -> bool {
    if let Some(rest) = text.strip_prefix("now") {
        let Some(count) = rest.strip_prefix(['-', '+']) else {
            return rest.is_empty();
        };
        let number = count.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = &count[number.len()..];
        let unit = unit.strip_suffix('s').unwrap_or(unit);
        return is_number(number) && ["", "second", "minute", "hour", "day", "week"].contains(&unit);
    }
    if [
        "today",
        "tomorrow",
        "midnight",
        "noon",
        "fika",
        "teatime",
        "elevenses",
    ]
    .contains(&text)
    {
        return true;
    }
    let (date, clock) = match text.split_once('T') {
        Some((date, clock)) => (date, Some(clock)),
        None if text.contains(['/', '.']) => match text.split_once('-') {
            Some((date, clock)) => (date, Some(clock)),
            None => (text, None),
        },
        None if text.contains(':') => return is_clock(text),
        None => (text, None),
    };
    is_date(date) && clock.is_none_or(is_clock)
}

fn numbers(text: &str, between: char) -> Option<Vec<u32>> {
    text.split(between)
        .map(|part| part.parse().ok().filter(|_| is_number(part)))
        .collect()
}

/// `2026-11-01`, `11/01`, `11/01/26` or `11.01.26`.
fn is_date(text: &str) -> bool {
    let day = |month: u32, day: u32| (1..=12).contains(&month) && (1..=31).contains(&day);
    let short = numbers(text, '/').or_else(|| numbers(text, '.'));
    match (numbers(text, '-').as_deref(), short.as_deref()) {
        (Some([year, month, of]), _) => (1970..=9999).contains(year) && day(*month, *of),
        (_, Some([month, of] | [month, of, _])) => day(*month, *of),
        _ => false,
    }
}

/// `08:30`, `08:30:15`, `08:30PM`.
fn is_clock(text: &str) -> bool {
    let text = text
        .strip_suffix("AM")
        .or(text.strip_suffix("PM"))
        .unwrap_or(text);
    match numbers(text, ':').as_deref() {
        Some([hour, minute]) => *hour < 24 && *minute < 60,
        Some([hour, minute, second]) => *hour < 24 && *minute < 60 && *second < 60,
        _ => false,
    }
}

/// `7d` as sacct takes it.
fn for_sacct(text: &str) -> String {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[number.len()..] {
        "m" => "minutes",
        "h" => "hours",
        "d" => "days",
        "w" => "weeks",
        _ => return text.to_owned(),
    };
    match number.bytes().all(|byte| byte.is_ascii_digit()) {
        true => format!("now-{number}{unit}"),
        false => text.to_owned(),
    }
}

fn names(text: &str) -> std::result::Result<String, Invalid> {
    let good = |c: char| c.is_alphanumeric() || "_.,@-".contains(c);
    if text.is_empty() || text.starts_with('-') || !text.chars().all(good) {
        return Err(Invalid(
            message!(en: "expected names, separated by commas", zh: "应为用逗号分隔的名字"),
        ));
    }
    Ok(text.to_owned())
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let fleet = gather(&arguments)?;
    if let Some(path) = &arguments.html {
        let options = page::Options {
            language: context.language,
            pdf_ready: false,
        };
        write_atomically(path, fleet::page::html(&fleet, options).as_bytes())?;
        let path = path.display();
        eprintln!(
            "{}",
            context.say(&message!(en: "page written to {path}", zh: "页面已写入 {path}"))
        );
    }
    let shown = if arguments.json {
        serde_json::to_string_pretty(&fleet).unwrap_or_default() + "\n"
    } else if arguments.mail {
        let mails = fleet::mail::mails(&fleet, context.language);
        if mails.is_empty() {
            let none = message!(en: "no job is worth an e-mail: none wasted a GPU-hour that was measured", zh: "没有需要写邮件的作业：有测量的作业中没有浪费超过 1 GPU 小时的");
            eprintln!("{}", context.say(&none));
        }
        mails
    } else {
        let width = text::readable_width(text::terminal_columns(&std::io::stdout()));
        fleet::text::fleet(
            &fleet,
            arguments.all,
            context.language,
            width,
            context.colour_on_stdout(),
        )
    };
    write_stdout(shown.as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn gather(arguments: &Arguments) -> Result<Fleet> {
    let mut jobs = Jobs::new(Filter {
        user: arguments.user.clone(),
        account: arguments.account.clone(),
        partition: arguments.partition.clone(),
    });
    let (since, until) = match &arguments.from {
        Some(path) => {
            read(path, &mut jobs)?;
            (None, None)
        }
        None => {
            let since = arguments.since.as_deref().unwrap_or(DEFAULT_SINCE);
            let query = HistoryQuery {
                since: Some(for_sacct(since)),
                until: arguments.until.as_deref().map(for_sacct),
                user: arguments.user.clone(),
                account: arguments.account.clone(),
                partition: arguments.partition.clone(),
            };
            let unreadable = history(&query, &mut |row| jobs.add(row)).map_err(without_sacct)?;
            jobs.add_unreadable(unreadable.lines);
            (Some(since.to_owned()), arguments.until.clone())
        }
    };
    let folders = match arguments.records.is_empty() {
        true => vec![record::runs_folder()],
        false => arguments.records.clone(),
    };
    if let Some(folder) = arguments.records.iter().find(|folder| !folder.is_dir()) {
        return Err(FileError::reading(folder, std::io::ErrorKind::NotFound.into()).into());
    }
    let records = fleet::find_records(&folders);
    Ok(fleet::fleet(jobs, &records, since, until))
}

fn read(path: &Path, jobs: &mut Jobs) -> Result<()> {
    let failed = |source| Failure::from(FileError::reading(path, source));
    let mut input: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(BufReader::with_capacity(
            1 << 16,
            File::open(path).map_err(failed)?,
        ))
    };
    let mut add = |row: &HistoryRow| jobs.add(row);
    let unreadable = history_of(&mut *input, &mut add).map_err(failed)?;
    let Some(unreadable) = unreadable else {
        let path = path.display();
        return Err(Failure::new(message!(
            en: "`{path}` is not output of sacct: its first line names no columns",
            zh: "`{path}` 不是 sacct 的输出：第一行没有列名"
        ))
        .with_hint(message!(
            en: "write it with --parsable2 and keep the header: flatout fleet --help has the command",
            zh: "请用 --parsable2 写出并保留表头：完整命令见 flatout fleet --help"
        )));
    };
    jobs.add_unreadable(unreadable.lines);
    Ok(())
}

fn without_sacct(error: SlurmError) -> Failure {
    let missing = matches!(error, SlurmError::NotInstalled { .. });
    let failure = Failure::from(error);
    match missing {
        true => failure.with_hint(message!(
            en: "run this on the cluster's login node, or save sacct's output there and give it with --from FILE",
            zh: "请在集群登录节点上运行，或在那里保存 sacct 的输出并用 --from FILE 给出"
        )),
        false => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_sacct_takes_and_refuses_the_rest() {
        for good in [
            "7d",
            "12h",
            "30m",
            "4w",
            "2026-11-01",
            "2026-11-01T08:30",
            "2026-11-01T08:30:59",
            "11/01",
            "11/01/26",
            "11/01/26-08:30",
            "11.01",
            "11.01.26-08:30",
            "08:30",
            "today",
            "now",
            "now-7days",
            "now-1hour",
            "noon",
        ] {
            assert_eq!(moment(good).as_deref(), Ok(good));
        }
        for wrong in [
            "",
            "foo",
            "7",
            "7x",
            "7days",
            "yesterday",
            "2026-13-01",
            "2026-11",
            "2026-11-01T25:00",
            "now-",
            "now-x",
            "nowhere",
            "-7d",
            "now-7 days",
            "2026-11-01; id",
            "７d",
        ] {
            assert!(moment(wrong).unwrap_err().0.en.starts_with("expected"), "{wrong}");
        }
    }
}
