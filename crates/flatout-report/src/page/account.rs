//! Where the steady steps went, line by line.

use super::{Writer, escape};
use flatout_core::{message, units};
use flatout_diagnose::account::{Account, Row};

/// Lines shown, and the least share of one.
const MOST_LINES: usize = 24;
const LEAST_SHARE: f64 = 0.01;

impl Writer {
    pub(crate) fn account(&self, account: Option<&Account>) -> String {
        let Some(account) = account else {
            return String::new();
        };
        let bar: String = account
            .by_activity()
            .iter()
            .filter(|(_, share)| *share >= LEAST_SHARE)
            .map(|(activity, share)| {
                format!(
                    "<tr><td>{}</td><td class=\"number\">{}</td><td><meter min=\"0\" max=\"1\" value=\"{share:.3}\"></meter></td></tr>\n",
                    self.say(&activity.name()),
                    units::percent(*share)
                )
            })
            .collect();
        let head = [
            message!(en: "line", zh: "代码行"),
            message!(en: "share", zh: "占比"),
            message!(en: "per step", zh: "每步"),
            message!(en: "what it does", zh: "做什么"),
        ];
        let rows: String = account
            .rows
            .iter()
            .filter(|row| row.place.is_some() && row.share >= LEAST_SHARE)
            .take(MOST_LINES)
            .map(|row| self.line(row, account.steps))
            .collect();
        let text = format!(
            "<div class=\"scroll\"><table>{bar}</table></div>\n<div class=\"scroll\"><table>{}{rows}</table></div>\n",
            self.header_row(&head, 1)
        );
        let steps = account.steps;
        let step = units::duration(account.wall_s / steps.max(1) as f64);
        self.section(
            &message!(en: "Where a step goes ({step} per step, {steps} steady steps)", zh: "一步的时间去向（每步 {step}，共 {steps} 个稳定步）"),
            &text,
        )
    }

    fn line(&self, row: &Row, steps: u64) -> String {
        let place = row.place.as_ref().map(ToString::to_string).unwrap_or_default();
        let source = row
            .text
            .as_deref()
            .or(row.function.as_deref())
            .unwrap_or_default();
        let via = row
            .via
            .as_ref()
            .map_or_else(String::new, |via| format!(" · {}", escape(via)));
        format!(
            "<tr><td><code>{}</code><br><code class=\"soft\">{}</code></td><td class=\"number\">{}</td><td class=\"number\">{}</td><td>{}{via}</td></tr>\n",
            escape(source),
            escape(&place),
            units::percent(row.share),
            units::duration(row.seconds / steps.max(1) as f64),
            self.say(&row.activity.name())
        )
    }
}
