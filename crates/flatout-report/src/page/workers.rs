//! What a loader worker does: tasks, then lines.

use super::{Markup, Writer, markup};
use flatout_core::{message, units};
use flatout_diagnose::account::workers::{WorkerAccount, WorkerRow};

/// Lines shown, and the least share of one.
const MOST_LINES: usize = 16;
const LEAST_SHARE: f64 = 0.01;

impl Writer {
    pub(crate) fn workers(&self, account: Option<&WorkerAccount>) -> Markup {
        let Some(account) = account else {
            return Markup::default();
        };
        let tasks: Markup = account
            .by_task()
            .iter()
            .filter(|(_, share)| *share >= LEAST_SHARE)
            .map(|(task, share)| {
                markup!(
                    "<tr><td>{}</td><td class=\"number\">{}</td><td><meter min=\"0\" max=\"1\" value=\"{:.3}\"></meter></td></tr>\n",
                    self.say(&task.name()),
                    units::percent(*share),
                    *share
                )
            })
            .collect();
        let head = [
            message!(en: "line", zh: "代码行"),
            message!(en: "share", zh: "占比"),
            message!(en: "task", zh: "工作"),
        ];
        let rows: Markup = account
            .rows
            .iter()
            .filter(|row| row.place.is_some() && row.share >= LEAST_SHARE)
            .take(MOST_LINES)
            .map(|row| self.worker_row(row))
            .collect();
        let mut body = self.table(tasks);
        if !rows.is_empty() {
            body += self.table(self.header_row(&head, 1) + rows);
        }
        let samples = account.samples;
        body += self.note(&message!(
            en: "{samples} samples of one DataLoader worker.",
            zh: "对 DataLoader 的一个 worker 采样 {samples} 次。"
        ));
        self.section(
            &message!(en: "What a DataLoader worker does", zh: "DataLoader worker 在做什么"),
            body,
        )
    }

    fn worker_row(&self, row: &WorkerRow) -> Markup {
        let place = row.place.as_ref().map(ToString::to_string).unwrap_or_default();
        let source = row
            .text
            .as_deref()
            .or(row.function.as_deref())
            .unwrap_or_default();
        let via = row
            .via
            .as_ref()
            .map_or_else(String::new, |via| format!(" · {via}"));
        markup!(
            "<tr><td><code>{}</code><br><code class=\"soft\">{}</code></td><td class=\"number\">{}</td><td>{}{}</td></tr>\n",
            source,
            place,
            units::percent(row.share),
            self.say(&row.task.name()),
            via
        )
    }
}
