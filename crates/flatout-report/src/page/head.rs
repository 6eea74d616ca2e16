//! The top of the page: what ran, how it ended, the headline, where the time went, the charts' places.

use super::{Writer, escape, frame};
use crate::digest::Digest;
use crate::digest::charts::Chart;
use crate::digest::figures::Figure;
use crate::digest::marks::Marks;
use crate::words;
use flatout_core::{message, units};
use flatout_diagnose::analysis::time::TimeRow;

impl Writer {
    pub(crate) fn head(&self, digest: &Digest) -> String {
        let info = &digest.info;
        let name = if info.name.is_empty() {
            &info.id
        } else {
            &info.name
        };
        let button = if self.pdf_ready {
            String::new()
        } else {
            frame::theme_button(self.language)
        };
        let mut text = format!(
            "<header><div><h1>{}</h1>\n<p class=\"soft\">{}</p>",
            escape(name),
            self.say(&words::about_run(info, digest.length_s))
        );
        if !info.command.is_empty() {
            text += &format!("<p><code>{}</code></p>", escape(&info.command.join(" ")));
        }
        text += &format!("</div>{button}</header>\n");
        if !digest.defects.is_empty() {
            let lines: String = digest
                .defects
                .iter()
                .map(|defect| format!("<p>{}</p>", self.say(&defect.say)))
                .collect();
            text += &format!("<div class=\"defects\">{lines}</div>\n");
        }
        text
    }

    pub(crate) fn headline(&self, figures: &[Figure]) -> String {
        if figures.is_empty() {
            return String::new();
        }
        let tiles: String = figures.iter().map(|figure| self.tile(figure)).collect();
        format!("<ul class=\"tiles\">\n{tiles}</ul>\n")
    }

    fn tile(&self, figure: &Figure) -> String {
        let spread = figure
            .std
            .map(|std| {
                format!(
                    " <small>± {}</small>",
                    figure.unit.show(std).trim_end_matches('%')
                )
            })
            .unwrap_or_default();
        let interval = figure.interval.map_or_else(String::new, |(low, high)| {
            let (low, high) = (figure.unit.show(low), figure.unit.show(high));
            let title = message!(en: "95% interval of the mean", zh: "均值的 95% 区间");
            format!("<small title=\"{}\">{low} – {high}</small>", self.say(&title))
        });
        format!(
            "<li><b>{}{spread}</b><span>{}</span>{interval}</li>\n",
            figure.unit.show(figure.mean),
            self.say(&figure.name)
        )
    }

    /// One bar of 100%, and a line for each part of it.
    pub(crate) fn time_bar(&self, digest: &Digest) -> String {
        let time = &digest.diagnosis.time;
        if !digest.has_steps || time.rows.is_empty() {
            return String::new();
        }
        let total = units::duration(time.total_s);
        let title = message!(en: "Where the {total} went", zh: "{total} 的去向");
        let mut left = 0.0;
        let mut bar = String::new();
        for row in &time.rows {
            bar += &format!(
                "<rect class=\"p-{}\" x=\"{left:.2}\" y=\"0\" width=\"{:.2}\" height=\"36\"><title>{}</title></rect>",
                escape(&row.key),
                row.share * 1000.0,
                self.time_words(row)
            );
            left += row.share * 1000.0;
        }
        let parts: String = time
            .rows
            .iter()
            .map(|row| {
                format!(
                    "<li><i class=\"swatch p-{}\"></i><span>{}</span><b>{:.1}%</b> <small>{}</small></li>\n",
                    escape(&row.key),
                    self.say(&row.name),
                    row.share * 100.0,
                    units::duration(row.seconds)
                )
            })
            .collect();
        let bar = format!(
            "<svg class=\"bar\" viewBox=\"0 0 1000 36\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">{bar}</svg>\n",
            self.say(&title)
        );
        self.section(&title, &format!("{bar}<ul class=\"parts\">\n{parts}</ul>\n"))
    }

    fn time_words(&self, row: &TimeRow) -> String {
        format!(
            "{}: {:.1}%, {}",
            self.say(&row.name),
            row.share * 100.0,
            units::duration(row.seconds)
        )
    }

    /// Empty places; the script draws into them.
    pub(crate) fn charts(&self, charts: &[Chart], marks: &Marks) -> String {
        if charts.is_empty() {
            return String::new();
        }
        let hint = message!(
            en: "Point at a curve to read its values; drag to zoom into all charts, double-click to zoom out. The line is the mean of a stretch of time, the band its least and greatest value.",
            zh: "指向曲线可读数；拖动可同时放大所有图表，双击还原。曲线是一段时间的均值，色带是其最小值和最大值。"
        );
        let mut text = String::new();
        if !self.pdf_ready {
            text += &format!("<p class=\"soft\">{}</p>\n", self.say(&hint));
        }
        text += &self.mark_legend(marks);
        text += "<div class=\"charts\">\n";
        for chart in charts {
            text += &format!(
                "<div class=\"chart\" id=\"chart-{}\"><h3>{}</h3></div>\n",
                chart.key,
                self.say(&chart.title)
            );
        }
        text += "</div>\n";
        self.section(&message!(en: "Over time", zh: "随时间变化"), &text)
    }

    fn mark_legend(&self, marks: &Marks) -> String {
        let (epochs, evals, checkpoints) = marks.counts;
        let mut entries = String::new();
        let mut add = |count: usize, class: &str, name: flatout_core::Message| {
            if count > 0 {
                entries += &format!(
                    "<span class=\"entry\"><i class=\"swatch {class}\"></i>{}</span>",
                    self.say(&name)
                );
            }
        };
        add(
            epochs,
            "p-other limit",
            message!(en: "end of an epoch ({epochs})", zh: "epoch 结束（{epochs}）"),
        );
        add(
            evals,
            "p-eval",
            message!(en: "evaluation ({evals})", zh: "评估（{evals}）"),
        );
        add(
            checkpoints,
            "p-checkpoint",
            message!(en: "checkpoint ({checkpoints})", zh: "checkpoint（{checkpoints} 次）"),
        );
        format!("<p class=\"legend\">{entries}<span class=\"reset\"></span></p>\n")
    }
}
