//! The account of a cluster for a terminal.

use super::{CauseRow, Fleet, Hours, Row, Talk, cause_words};
use crate::text::width::{cut, pad, printable, wrap};
use crate::text::{Align, Paint, Table, Tone};
use flatout_core::{Language, Message, message, units};

/// Rows of a table; of more, their number.
const MOST_ROWS: usize = 12;
/// Jobs worth a talk.
const MOST_TALKS: usize = 8;
/// Of a name in a table.
const LONGEST_NAME: usize = 24;

/// `all`: every row instead of the costliest.
pub fn fleet(fleet: &Fleet, all: bool, language: Language, width: usize, colour: bool) -> String {
    let page = Page {
        language,
        width,
        paint: Paint { colour },
        most_rows: if all { usize::MAX } else { MOST_ROWS },
        most_talks: if all { usize::MAX } else { MOST_TALKS },
    };
    page.fleet(fleet)
}

/// `7.37M`, `1.23k`, `12.3`.
pub(super) fn hours(value: f64) -> String {
    units::count(value)
}

pub(super) fn share(hours: &Hours) -> String {
    hours.utilization().map_or_else(|| "?".to_owned(), units::percent)
}

/// The time that the account is of.
pub(super) fn period(fleet: &Fleet) -> Message {
    match (&fleet.since, &fleet.until) {
        (Some(since), Some(until)) => message!(en: "{since} to {until}", zh: "{since} 至 {until}"),
        (Some(since), None) => message!(en: "since {since}", zh: "自 {since} 起"),
        (None, Some(until)) => message!(en: "until {until}", zh: "至 {until}"),
        (None, None) => message!(en: "all jobs of the file", zh: "文件中的全部作业"),
    }
}

pub(super) fn column_titles() -> [Message; 6] {
    [
        message!(en: "jobs", zh: "作业"),
        message!(en: "GPU-hours", zh: "GPU 小时"),
        message!(en: "used", zh: "已用"),
        message!(en: "wasted", zh: "浪费"),
        message!(en: "unknown", zh: "未知"),
        message!(en: "utilization", zh: "利用率"),
    ]
}

/// What is counted and what is not.
pub(super) fn remarks(fleet: &Fleet) -> Vec<Message> {
    let mut notes = Vec::new();
    if fleet.running > 0 {
        let count = fleet.running;
        notes.push(
            message!(en: "still running, counted until now: {count}", zh: "仍在运行、计至当前：{count}"),
        );
    }
    if fleet.requeued > 0 {
        let count = fleet.requeued;
        notes.push(message!(
            en: "runs that Slurm requeued, each counted separately: {count}",
            zh: "被 Slurm 终止并重新排队、逐次计入的运行：{count}"
        ));
    }
    if fleet.waiting > 0 {
        let count = fleet.waiting;
        notes.push(
            message!(en: "waiting in the queue, not counted: {count}", zh: "仍在排队、未计入：{count}"),
        );
    }
    if fleet.without_gpus > 0 {
        let count = fleet.without_gpus;
        notes.push(message!(en: "without GPUs, not counted: {count}", zh: "没有 GPU、未计入：{count}"));
    }
    if fleet.hours.unknown > 0.0 && fleet.hours.unknown >= 0.01 * fleet.hours.allocated {
        let (unknown, part) = (
            hours(fleet.hours.unknown),
            units::percent(fleet.hours.unknown / fleet.hours.allocated),
        );
        notes.push(message!(
            en: "nothing measured {unknown} GPU-hours ({part}): `flatout slurm wrap` prints what records every job",
            zh: "有 {unknown} GPU 小时（{part}）没有任何测量：`flatout slurm wrap` 会给出记录所有作业的方法"
        ));
    }
    notes.extend(fleet.notes.iter().cloned());
    notes
}

pub(super) fn headline(fleet: &Fleet) -> Message {
    let (allocated, jobs, users) = (hours(fleet.hours.allocated), fleet.jobs, fleet.users.len());
    let mut text = message!(
        en: "{allocated} GPU-hours in {jobs} jobs of {users} users",
        zh: "{users} 个用户的 {jobs} 个作业共占用 {allocated} GPU 小时"
    );
    let period = period(fleet);
    text.en += &format!(", {}", period.en);
    text.zh += &format!("，{}", period.zh);
    text
}

pub(super) fn measured(fleet: &Fleet) -> Message {
    let (used, wasted, unknown) = (
        hours(fleet.hours.used),
        hours(fleet.hours.wasted),
        hours(fleet.hours.unknown),
    );
    match fleet.hours.utilization() {
        Some(share) => {
            let share = units::percent(share);
            message!(
                en: "used {used}, wasted {wasted} (utilization {share}), unknown {unknown}",
                zh: "已用 {used}，浪费 {wasted}（利用率 {share}），未知 {unknown}"
            )
        }
        None => message!(
            en: "utilization unknown: no jobstats comment and no flatout record",
            zh: "利用率未知：没有 jobstats 注释，也没有 flatout 记录"
        ),
    }
}

/// `4711_3  train  2 GPUs for 10 h 00 min, utilization 12%, 17.6 GPU-hours wasted`
pub(super) fn talk(talk: &Talk) -> Message {
    let (gpus, time, wasted) = (talk.gpus, units::duration(talk.seconds), hours(talk.hours.wasted));
    let share = units::percent(talk.utilization);
    let mut text = message!(
        en: "{gpus} GPUs for {time}, utilization {share}: {wasted} GPU-hours wasted",
        zh: "{gpus} 个 GPU，{time}，利用率 {share}：浪费 {wasted} GPU 小时"
    );
    let unused = talk.unused_gpus;
    if unused > 0 && unused < gpus {
        let more = message!(en: "; {unused} of the GPUs never used", zh: "；其中 {unused} 个 GPU 从未使用");
        text.en += &more.en;
        text.zh += &more.zh;
    }
    text
}

/// Why, in words: the finding, or what the numbers alone show.
pub(super) fn why(talk: &Talk) -> Option<Message> {
    match (&talk.finding, talk.cause.as_str()) {
        (Some(finding), _) => Some(finding.clone()),
        (None, "gpus-never-used") => Some(message!(
            en: "no GPU was used: does the program find CUDA, and does it need a GPU?",
            zh: "GPU 完全没有使用：程序是否找到了 CUDA？是否真的需要 GPU？"
        )),
        (None, "some-gpus-never-used") => Some(message!(
            en: "the program uses fewer GPUs than the job asked for",
            zh: "程序使用的 GPU 少于作业申请的数量"
        )),
        (None, _) => None,
    }
}

struct Page {
    language: Language,
    width: usize,
    paint: Paint,
    most_rows: usize,
    most_talks: usize,
}

impl Page {
    fn say<'a>(&self, message: &'a Message) -> &'a str {
        message.get(self.language)
    }

    fn fleet(&self, fleet: &Fleet) -> String {
        let mut text = String::new();
        for line in wrap(self.say(&headline(fleet)), self.width) {
            text += &format!("{}\n", self.paint.tone(Tone::Strong, &line));
        }
        if fleet.jobs == 0 {
            return text + &self.notes(fleet);
        }
        for line in wrap(self.say(&measured(fleet)), self.width.saturating_sub(2)) {
            text += &format!("  {line}\n");
        }
        text += &self.rows(&message!(en: "By user", zh: "按用户"), &fleet.users);
        // With one account there is nothing to compare.
        if fleet.accounts.len() > 1 {
            text += &self.rows(&message!(en: "By account", zh: "按账户"), &fleet.accounts);
        }
        if fleet.partitions.len() > 1 {
            text += &self.rows(&message!(en: "By partition", zh: "按分区"), &fleet.partitions);
        }
        text += &self.causes(&fleet.causes);
        text += &self.talks(&fleet.talks, fleet.talks_left_out);
        text + &self.notes(fleet)
    }

    fn rows(&self, title: &Message, rows: &[Row]) -> String {
        let rows = rows.iter().map(|row| {
            let name = cut(&printable(&row.name), LONGEST_NAME);
            (name, row.jobs, row.hours)
        });
        self.table(title, rows.collect())
    }

    fn causes(&self, causes: &[CauseRow]) -> String {
        let rows = causes.iter().map(|row| {
            let name = cause_words(&row.cause).map_or_else(
                || printable(&row.cause),
                |words| format!("({})", self.say(&words)),
            );
            (name, row.jobs, row.hours)
        });
        self.table(
            &message!(en: "By cause of the waste", zh: "按浪费原因"),
            rows.collect(),
        )
    }

    fn table(&self, title: &Message, rows: Vec<(String, u64, Hours)>) -> String {
        if rows.is_empty() {
            return String::new();
        }
        let hidden = rows.len().saturating_sub(self.most_rows);
        let mut columns = vec![Align::Left];
        columns.extend([Align::Right; 6]);
        let mut table = Table::new(&columns);
        let titles = column_titles();
        let head = std::iter::once((self.say(title).to_owned(), Some(Tone::Strong)));
        table.toned_cells(
            head.chain(
                titles
                    .iter()
                    .map(|title| (self.say(title).to_owned(), Some(Tone::Quiet))),
            ),
        );
        for (name, jobs, of) in rows.into_iter().take(self.most_rows) {
            let known = of.utilization().is_some();
            let measured = |value: f64| if known { hours(value) } else { "?".to_owned() };
            let poor = of.utilization().is_some_and(|share| share < 0.3);
            table.toned_cells(
                [
                    (name, None),
                    (jobs.to_string(), None),
                    (hours(of.allocated), None),
                    (measured(of.used), None),
                    (measured(of.wasted), None),
                    (hours(of.unknown), None),
                    (share(&of), poor.then_some(Tone::Bad)),
                ]
                .into_iter(),
            );
        }
        let mut text = format!("\n{}", table.render(self.paint));
        if hidden > 0 {
            let more = message!(en: "and {hidden} more: --all", zh: "另有 {hidden} 行：--all");
            text += &format!("{}\n", self.paint.tone(Tone::Quiet, self.say(&more)));
        }
        text
    }

    fn talks(&self, talks: &[Talk], left_out: u64) -> String {
        if talks.is_empty() {
            return String::new();
        }
        let title = message!(en: "Jobs worth a talk", zh: "值得沟通的作业");
        let mut text = format!("\n{}\n", self.paint.tone(Tone::Strong, self.say(&title)));
        for of in talks.iter().take(self.most_talks) {
            let job = printable(&of.job);
            let who = pad(&cut(&printable(&of.user), 12), 12);
            let first = format!("{} {who} ", pad(&job, 10));
            let indent = " ".repeat(4);
            let line = talk(of);
            text += &format!("  {first}{}\n", self.say(&line));
            if let Some(why) = why(of) {
                for line in wrap(self.say(&why), self.width.saturating_sub(4).max(30)) {
                    text += &format!("{indent}{}\n", printable(&line));
                }
            }
            if let Some(record) = &of.record {
                let shown = printable(&flatout_core::shell::word(&record.to_string_lossy()));
                text += &format!(
                    "{indent}{}\n",
                    self.paint.tone(Tone::Quiet, &format!("flatout diagnose {shown}"))
                );
            }
        }
        let listed = talks.len().min(self.most_talks);
        let hidden = (talks.len() - listed) as u64 + left_out;
        if hidden > 0 {
            let more = match listed == talks.len() {
                true => message!(en: "and {hidden} more", zh: "另有 {hidden} 个"),
                false => message!(en: "and {hidden} more: --all", zh: "另有 {hidden} 个：--all"),
            };
            text += &format!("  {}\n", self.paint.tone(Tone::Quiet, self.say(&more)));
        }
        text
    }

    fn notes(&self, fleet: &Fleet) -> String {
        let notes = remarks(fleet);
        let mut text = String::new();
        for note in &notes {
            for (index, line) in wrap(self.say(note), self.width.saturating_sub(2).max(30))
                .iter()
                .enumerate()
            {
                let mark = if index == 0 { "· " } else { "  " };
                text += &format!("{}\n", self.paint.tone(Tone::Quiet, &format!("{mark}{line}")));
            }
        }
        if text.is_empty() {
            text
        } else {
            format!("\n{text}")
        }
    }
}
