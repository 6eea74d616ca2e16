//! Where the steady steps went, line by line.

use super::{Markup, Writer, markup};
use flatout_core::{message, units};
use flatout_diagnose::account::device::GpuKind;
use flatout_diagnose::account::{Account, Row};
use flatout_diagnose::analysis::kernels::kind_name;

/// Lines shown, and the least share of one.
const MOST_LINES: usize = 24;
const LEAST_SHARE: f64 = 0.01;

impl Writer {
    pub(crate) fn account(&self, account: Option<&Account>) -> Markup {
        let Some(account) = account else {
            return Markup::default();
        };
        let bar: Markup = account
            .by_activity()
            .iter()
            .filter(|(_, share)| *share >= LEAST_SHARE)
            .map(|(activity, share)| {
                markup!(
                    "<tr><td>{}</td><td class=\"number\">{}</td><td><meter min=\"0\" max=\"1\" value=\"{:.3}\"></meter></td></tr>\n",
                    self.say(&activity.name()),
                    units::percent(*share),
                    *share
                )
            })
            .collect();
        let bar = bar + self.kinds(account);
        let head = [
            message!(en: "line", zh: "代码行"),
            message!(en: "share", zh: "占比"),
            message!(en: "per step", zh: "每步"),
            message!(en: "activity", zh: "活动"),
        ];
        let rows: Markup = account
            .rows
            .iter()
            .filter(|row| row.place.is_some() && row.share >= LEAST_SHARE)
            .take(MOST_LINES)
            .map(|row| self.line(row, account.steps))
            .collect();
        let text = self.table(bar) + self.table(self.header_row(&head, 1) + rows);
        let steps = account.steps;
        let step = units::duration(account.wall_s / steps.max(1) as f64);
        self.section(&crate::words::account_title(account.rank, &step, steps), text)
    }

    /// What the GPU computes, by kind of kernel.
    fn kinds(&self, account: &Account) -> Markup {
        let shown = account.gpu_kinds.iter().filter(|kind| kind.share >= LEAST_SHARE);
        let row = |kind: &GpuKind| {
            markup!(
                "<tr><td class=\"soft\">&nbsp;&nbsp;GPU · {}</td><td class=\"number\">{}</td><td><meter min=\"0\" max=\"1\" value=\"{}\"></meter></td></tr>\n",
                self.say(&kind_name(kind.kind)),
                units::percent(kind.share),
                format!("{:.3}", kind.share)
            )
        };
        shown.map(row).collect()
    }

    fn line(&self, row: &Row, steps: u64) -> Markup {
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
            "<tr><td><code>{}</code><br><code class=\"soft\">{}</code></td><td class=\"number\">{}</td><td class=\"number\">{}</td><td>{}{}</td></tr>\n",
            source,
            place,
            units::percent(row.share),
            units::duration(row.seconds / steps.max(1) as f64),
            self.say(&row.activity.name()),
            via
        )
    }
}
