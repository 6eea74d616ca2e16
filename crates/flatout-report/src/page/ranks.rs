//! The ranks of a job, a row each.

use super::{Markup, Writer, markup};
use crate::ranks::Ranks;
use flatout_core::{Message, message, units};

impl Writer {
    pub(crate) fn ranks(&self, ranks: &Ranks) -> Markup {
        if ranks.rows.is_empty() {
            return Markup::default();
        }
        let head = [
            Message::verbatim("rank"),
            message!(en: "host", zh: "主机"),
            message!(en: "steps", zh: "步数"),
            message!(en: "per step", zh: "每步"),
            message!(en: "own work", zh: "自身耗时"),
            message!(en: "waiting for ranks", zh: "等待其他 rank"),
            message!(en: "transferring", zh: "传输"),
            message!(en: "data", zh: "取数据"),
            Message::verbatim("GPU"),
            Message::default(),
        ];
        let mut rows = self.header_row(&head, 2);
        let unknown = || "?".to_owned();
        let time = |ms: Option<f64>| ms.map_or_else(unknown, |ms| units::duration(ms / 1e3));
        let straggler = message!(en: "✗ slows the others down", zh: "✗ 拖慢其他 rank");
        for row in &ranks.rows {
            let host = row.host.as_deref().unwrap_or("?");
            rows += markup!("<tr><td>{}</td><td>{}</td>", row.rank, host);
            let numbers = [
                row.steps.to_string(),
                time(row.step_ms),
                time(row.own_ms),
                time(row.wait_ms),
                time(row.transfer_ms),
                time(row.data_ms),
                row.utilisation.map_or_else(unknown, units::percent),
            ];
            for number in numbers {
                rows += markup!("<td class=\"number\">{}</td>", number);
            }
            let mark = if row.straggler { self.say(&straggler) } else { "" };
            rows += markup!("<td><b class=\"bad\">{}</b></td></tr>\n", mark);
        }
        let mut text = self.table(rows);
        let hint = message!(
            en: "Own work is the time of a step without waiting for the GPU and without collectives. Ranks \
            advance in lockstep, so a slow rank shows only in this column.",
            zh: "“自身耗时”不含等待 GPU 和集合通信的时间：各 rank 步调一致，慢的 rank 只在这一列看得出来。"
        );
        text += self.note(&hint);
        for note in &ranks.notes {
            text += self.note(note);
        }
        self.section(&message!(en: "Ranks", zh: "各 rank"), text)
    }
}
