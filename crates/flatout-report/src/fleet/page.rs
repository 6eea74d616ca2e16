//! The account of a cluster as one HTML file.

use super::text::{column_titles, headline, hours, measured, remarks, share, talk, why};
use super::{Fleet, Hours, Row, Talk, cause_words};
use crate::page::frame::Frame;
use crate::page::{Markup, Options, Writer, data, markup};
use flatout_core::{Message, message, units};

/// Rows of a table; of more, their number.
const MOST_ROWS: usize = 200;

pub fn html(fleet: &Fleet, options: Options) -> String {
    let writer = Writer {
        language: options.language,
        pdf_ready: options.pdf_ready,
    };
    let title = message!(en: "GPU-hours", zh: "GPU 小时");
    let mut body = markup!(
        "<header><div><h1>{}</h1></div>{}</header>\n<p>{}<br>{}</p>\n",
        writer.say(&title),
        writer.theme_button(),
        writer.say(&headline(fleet)),
        writer.say(&measured(fleet))
    );
    body += writer.fleet_tiles(&fleet.hours);
    body += writer.fleet_bar(&fleet.hours);
    let sections = [
        (message!(en: "By user", zh: "按用户"), &fleet.users),
        (message!(en: "By account", zh: "按账户"), &fleet.accounts),
        (message!(en: "By partition", zh: "按分区"), &fleet.partitions),
    ];
    for (title, rows) in sections {
        body += writer.fleet_rows(&title, rows);
    }
    let causes: Vec<Row> = fleet
        .causes
        .iter()
        .map(|row| Row {
            name: cause_words(&row.cause)
                .map_or_else(|| row.cause.clone(), |words| format!("({})", writer.say(&words))),
            jobs: row.jobs,
            hours: row.hours,
        })
        .collect();
    body += writer.fleet_rows(&message!(en: "By cause of the waste", zh: "按浪费原因"), &causes);
    body += writer.fleet_talks(&fleet.talks);
    let notes: Markup = remarks(fleet).iter().map(|note| writer.note(note)).collect();
    body += notes;
    let frame = Frame {
        title: format!("{} – flatout", writer.say(&title)),
        body,
        data: data::json(&[], &Default::default(), 0.0, options.language),
        language: options.language,
        pdf_ready: options.pdf_ready,
        served: None,
    };
    frame.html()
}

impl Writer {
    fn fleet_tiles(&self, of: &Hours) -> Markup {
        let tiles = [
            (
                hours(of.allocated),
                message!(en: "GPU-hours allocated", zh: "已分配 GPU 小时"),
            ),
            (hours(of.used), message!(en: "used", zh: "已用")),
            (hours(of.wasted), message!(en: "wasted", zh: "浪费")),
            (hours(of.unknown), message!(en: "unknown", zh: "未知")),
            (
                share(of),
                message!(en: "utilization, where measured", zh: "利用率（有测量的部分）"),
            ),
        ];
        let tiles: Markup = tiles
            .iter()
            .map(|(value, name)| markup!("<li><b>{}</b><span>{}</span></li>\n", value, self.say(name)))
            .collect();
        markup!("<ul class=\"tiles\">\n{}</ul>\n", tiles)
    }

    /// One bar of all GPU-hours: used, wasted, unknown.
    fn fleet_bar(&self, of: &Hours) -> Markup {
        if of.allocated <= 0.0 {
            return Markup::default();
        }
        let parts = [
            ("p-compute", of.used, message!(en: "used", zh: "已用")),
            ("p-data", of.wasted, message!(en: "wasted", zh: "浪费")),
            ("p-unexplained", of.unknown, message!(en: "unknown", zh: "未知")),
        ];
        let (mut left, mut bar, mut list) = (0.0, Markup::default(), Markup::default());
        for (class, value, name) in parts {
            let part = (value / of.allocated).clamp(0.0, 1.0);
            bar += markup!(
                "<rect class=\"{}\" x=\"{:.2}\" y=\"0\" width=\"{:.2}\" height=\"36\"><title>{}</title></rect>",
                class,
                left,
                part * 1000.0,
                self.say(&name)
            );
            left += part * 1000.0;
            list += markup!(
                "<li><i class=\"swatch {}\"></i><span>{}</span><b>{}</b> <small>{}</small></li>\n",
                class,
                self.say(&name),
                units::percent(part),
                hours(value)
            );
        }
        markup!(
            "<svg class=\"bar\" viewBox=\"0 0 1000 36\" preserveAspectRatio=\"none\" role=\"img\">{}</svg>\n<ul class=\"parts\">\n{}</ul>\n",
            bar,
            list
        )
    }

    fn fleet_rows(&self, title: &Message, rows: &[Row]) -> Markup {
        if rows.is_empty() {
            return Markup::default();
        }
        let mut head = vec![Message::default()];
        head.extend(column_titles());
        head.push(Message::default());
        let mut table = self.header_row(&head, 1);
        for row in rows.iter().take(MOST_ROWS) {
            let known = row.hours.utilization().is_some();
            let value = |value: f64| if known { hours(value) } else { "?".to_owned() };
            table += markup!("<tr><td>{}</td>", row.name);
            let cells = [
                row.jobs.to_string(),
                hours(row.hours.allocated),
                value(row.hours.used),
                value(row.hours.wasted),
                hours(row.hours.unknown),
                share(&row.hours),
            ];
            for cell in cells {
                table += markup!("<td class=\"number\">{}</td>", cell);
            }
            table += markup!("<td></td></tr>\n");
        }
        let mut text = self.table(table);
        let more = rows.len().saturating_sub(MOST_ROWS);
        if more > 0 {
            text += self.note(&message!(en: "and {more} more", zh: "以及另外 {more} 个"));
        }
        self.section(title, text)
    }

    fn fleet_talks(&self, talks: &[Talk]) -> Markup {
        if talks.is_empty() {
            return Markup::default();
        }
        let head = [
            message!(en: "job", zh: "作业"),
            message!(en: "user", zh: "用户"),
            message!(en: "account", zh: "账户"),
            message!(en: "what", zh: "情况"),
            message!(en: "why", zh: "原因"),
        ];
        let mut rows = self.header_row(&head, head.len());
        for of in talks {
            let why = why(of).unwrap_or_default();
            let mut reason = markup!("{}", self.say(&why));
            if let Some(fix) = &of.fix {
                reason += markup!("<br><span class=\"soft\">{}</span>", self.say(fix));
            }
            if let Some(record) = &of.record {
                let command = format!(
                    "flatout diagnose {}",
                    flatout_core::shell::word(&record.to_string_lossy())
                );
                reason += markup!("<br><code>{}</code>", command);
            }
            rows += markup!(
                "<tr><td>{}<br><span class=\"soft\">{}</span></td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                of.job,
                of.name,
                of.user,
                of.account,
                self.say(&talk(of)),
                reason
            );
        }
        self.section(
            &message!(en: "Jobs worth a talk", zh: "值得沟通的作业"),
            self.table(rows),
        )
    }
}
