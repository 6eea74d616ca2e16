//! What a job asked for and what it used, and its ranks side by side.

use super::Page;
use crate::analyze::JobReport;
use crate::ranks::RankRow;
use crate::text::width::printable;
use crate::text::{Align, Table, Tone};
use flatout_core::{Message, message, units};
use flatout_slurm::JobAccount;

const BAR_CELLS: f64 = 20.0;

impl Page {
    pub(super) fn job(&self, report: &JobReport) -> String {
        let account = &report.account;
        let (id, name, state) = (
            printable(&account.id),
            printable(&account.name),
            printable(&account.state),
        );
        let title = message!(en: "Slurm job {id}  {name}  {state}", zh: "Slurm 作业 {id}  {name}  {state}");
        let mut text = self.head(self.say(&title));
        let about: Vec<String> = [
            &account.partition,
            &account.user,
            &account.node_list,
            &account.start,
        ]
        .into_iter()
        .flatten()
        .map(|value| printable(value))
        .collect();
        if !about.is_empty() {
            text += &format!("  {}\n", self.paint.tone(Tone::Quiet, &about.join(" · ")));
        }
        let mut table = Table::new(&[Align::Left, Align::Right, Align::Left, Align::Left]).indented(2);
        for (name, used, asked, share) in meters(account) {
            let bar = share.map_or_else(String::new, bar);
            let percent = share.map_or_else(String::new, units::percent);
            let amounts = message!(en: "{used} of {asked}", zh: "用了 {used}，申请 {asked}");
            table.toned_row([
                (self.say(&name), None),
                (&percent, Some(Tone::Strong)),
                (&bar, Some(Tone::Quiet)),
                (self.say(&amounts), None),
            ]);
        }
        text += &table.render(self.paint);
        for note in &report.notes {
            let mark = Message {
                en: format!("! {}", note.en),
                zh: format!("! {}", note.zh),
            };
            text += &self.paragraph(&mark, 2);
        }
        text
    }

    pub(super) fn ranks(&self, rows: &[RankRow]) -> String {
        let mut text = self.head(self.say(&message!(en: "Ranks", zh: "各 rank")));
        let mut table = Table::new(&[
            Align::Right,
            Align::Left,
            Align::Right,
            Align::Right,
            Align::Right,
            Align::Right,
            Align::Right,
            Align::Right,
            Align::Left,
        ])
        .indented(2);
        let head = [
            message!(en: "rank", zh: "rank"),
            message!(en: "host", zh: "主机"),
            message!(en: "steps", zh: "步数"),
            message!(en: "per step", zh: "每步"),
            message!(en: "own work", zh: "自身耗时"),
            message!(en: "waiting", zh: "等待"),
            message!(en: "data", zh: "取数据"),
            message!(en: "GPU", zh: "GPU"),
            Message::default(),
        ];
        table.toned_row(head.each_ref().map(|title| (self.say(title), Some(Tone::Quiet))));
        let straggler = message!(en: "slows the others down", zh: "拖慢其他 rank");
        for row in rows {
            let unknown = || "–".to_owned();
            let time = |ms: Option<f64>| ms.map_or_else(unknown, |ms| units::duration(ms / 1e3));
            let (mark, tone) = if row.straggler {
                (self.say(&straggler), Some(Tone::Bad))
            } else {
                ("", None)
            };
            table.toned_row([
                (&row.rank.to_string(), None),
                (&row.host.as_deref().map_or_else(unknown, printable), None),
                (&row.steps.to_string(), None),
                (&time(row.step_ms), None),
                (&time(row.own_ms), tone),
                (&time(row.wait_ms), None),
                (&time(row.data_ms), None),
                (&row.utilisation.map_or_else(unknown, units::percent), None),
                (mark, tone),
            ]);
        }
        text += &table.render(self.paint);
        text
    }
}

pub(crate) type Meter = (Message, String, String, Option<f64>);

/// What was used of what was asked for: name, used, asked for, share.
pub(crate) fn meters(account: &JobAccount) -> Vec<Meter> {
    let unknown = || "?".to_owned();
    let share = |used: Option<f64>, asked: Option<f64>| {
        used.zip(asked.filter(|asked| *asked > 0.0))
            .map(|(used, asked)| used / asked)
    };
    let seconds = |value: Option<f64>| value.map_or_else(unknown, units::duration);
    let bytes = |value: Option<f64>| value.map_or_else(unknown, units::bytes);
    let busy = account
        .cpu_s
        .zip(account.elapsed_s.filter(|elapsed| *elapsed > 0.0))
        .map(|(cpu, elapsed)| cpu / elapsed);
    let cpus = account.cpus.map(|cpus| cpus as f64);
    let many_tasks = account.tasks.is_some_and(|tasks| tasks > 1);
    let memory_name = if many_tasks {
        message!(en: "memory, largest task", zh: "内存（最大的任务）")
    } else {
        message!(en: "memory", zh: "内存")
    };
    let mut meters = vec![
        (
            message!(en: "time", zh: "时间"),
            seconds(account.elapsed_s),
            seconds(account.limit_s),
            share(account.elapsed_s, account.limit_s),
        ),
        (
            memory_name,
            bytes(account.memory_peak_bytes),
            bytes(account.memory_bytes),
            share(account.memory_peak_bytes, account.memory_bytes),
        ),
        (
            message!(en: "CPUs", zh: "CPU 数"),
            busy.map_or_else(unknown, units::significant),
            cpus.map_or_else(unknown, units::significant),
            share(busy, cpus),
        ),
    ];
    if let Some(gpus) = account.gpus {
        let busy = account.gpu_utilisation.map(|share| share * gpus as f64);
        meters.push((
            message!(en: "GPUs", zh: "GPU 数"),
            busy.map_or_else(unknown, units::significant),
            gpus.to_string(),
            account.gpu_utilisation,
        ));
    }
    meters
}

fn bar(share: f64) -> String {
    let cells = (share.clamp(0.0, 1.0) * BAR_CELLS).round() as usize;
    format!(
        "[{}{}]",
        "|".repeat(cells),
        " ".repeat(BAR_CELLS as usize - cells)
    )
}
