//! Text for an e-mail to each user whose jobs are worth a talk. An administrator reads it, changes it and sends it: flatout sends nothing.

use super::text::{hours, period, talk, why};
use super::{Fleet, Talk};
use crate::text::width::{printable, wrap};
use flatout_core::{Language, message, units};
use std::collections::BTreeMap;

/// Jobs named in one e-mail.
const MOST_JOBS: usize = 5;
const WIDTH: usize = 76;

/// One text per user, a line of equals signs between two.
pub fn mails(fleet: &Fleet, language: Language) -> String {
    let mut by_user: BTreeMap<&str, Vec<&Talk>> = BTreeMap::new();
    for talk in &fleet.talks {
        by_user.entry(&talk.user).or_default().push(talk);
    }
    // In the order of the table: who wasted most comes first.
    let mails = fleet.users.iter().filter_map(|row| {
        let talks = by_user.get(row.name.as_str())?;
        Some(mail(fleet, &row.name, talks, language))
    });
    let mails: Vec<String> = mails.collect();
    mails.join(&format!("\n{}\n\n", "=".repeat(WIDTH)))
}

fn mail(fleet: &Fleet, user: &str, talks: &[&Talk], language: Language) -> String {
    let row = fleet.users.iter().find(|row| row.name == user);
    let sums = row.map(|row| row.hours).unwrap_or_default();
    let (wasted, allocated) = (hours(sums.wasted), hours(sums.allocated));
    let name = printable(user);
    let period = match (&fleet.since, &fleet.until) {
        (None, None) => String::new(),
        _ => match language {
            Language::English => format!(" ({})", period(fleet).en),
            Language::Chinese => format!("（{}）", period(fleet).zh),
        },
    };
    let share = sums.utilization().map_or_else(|| "?".to_owned(), units::percent);
    let subject = message!(
        en: "Your GPU jobs: {wasted} of {allocated} GPU-hours went unused",
        zh: "你的 GPU 作业：{allocated} GPU 小时中有 {wasted} 未被使用"
    );
    let opening = message!(
        en: "Your jobs{period} held {allocated} GPU-hours. Where it was measured, the GPUs were busy {share} of the time: {wasted} GPU-hours were held without being used.",
        zh: "你的作业{period}占用了 {allocated} GPU 小时。在有测量的部分，GPU 的忙碌时间为 {share}：{wasted} GPU 小时被占用却没有使用。"
    );
    let listed = message!(en: "The jobs with most unused time:", zh: "未使用时间最多的作业：");
    let hello = message!(en: "Hello {name},", zh: "{name}，你好：");
    let mut text = format!(
        "To: {name}\nSubject: {}\n\n{}\n\n",
        subject.get(language),
        hello.get(language)
    );
    text += &paragraph(opening.get(language), 0);
    text += &format!("\n{}\n\n", listed.get(language));
    for of in talks.iter().take(MOST_JOBS) {
        let job = printable(&of.job);
        let title = if of.name.is_empty() {
            job
        } else {
            format!("{job} ({})", printable(&of.name))
        };
        let line = talk(of);
        text += &paragraph(&format!("{title}: {}", line.get(language)), 2);
        if let Some(why) = why(of) {
            text += &paragraph(&printable(why.get(language)), 4);
        }
        if let Some(fix) = &of.fix {
            let fix = printable(fix.get(language));
            let todo = message!(en: "To do: {fix}", zh: "建议：{fix}");
            text += &paragraph(todo.get(language), 4);
        }
    }
    if talks.len() > MOST_JOBS {
        let more = talks.len() - MOST_JOBS;
        let more = message!(en: "and {more} more jobs", zh: "另有 {more} 个作业");
        text += &format!("  {}\n", more.get(language));
    }
    let unrecorded = talks.iter().any(|talk| talk.record.is_none());
    let ask = if unrecorded {
        message!(
            en: "To see why, put `flatout run --` in front of the command: flatout run -- python train.py. It needs no change of the program, and its report names the line that the GPU waits for. If a job needs fewer GPUs or none, please ask for that many only.",
            zh: "要查明原因，请在命令前加上 `flatout run --`：flatout run -- python train.py。无需修改程序，报告会指出 GPU 在等待哪一行代码。如果作业只需要更少的 GPU 或不需要 GPU，请只申请所需的数量。"
        )
    } else {
        message!(
            en: "`flatout diagnose` shows the details of each job, and `flatout compare` whether a change helped.",
            zh: "`flatout diagnose` 可查看每个作业的细节，`flatout compare` 可检验修改是否有效。"
        )
    };
    text += &format!("\n{}", paragraph(ask.get(language), 0));
    text
}

fn paragraph(text: &str, indent: usize) -> String {
    let lines = wrap(text, WIDTH - indent);
    lines
        .iter()
        .map(|line| format!("{}{line}\n", " ".repeat(indent)))
        .collect()
}
