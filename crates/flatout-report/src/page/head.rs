//! The top of the page: what ran, how it ended, the headline, where the time went, the charts' places.

use super::{Markup, Writer, markup};
use crate::digest::Digest;
use crate::digest::charts::Chart;
use crate::digest::figures::Figure;
use crate::digest::marks::Marks;
use crate::words;
use flatout_core::{message, units};
use flatout_diagnose::analysis::time::TimeRow;

impl Writer {
    pub(crate) fn head(&self, digest: &Digest) -> Markup {
        let info = &digest.info;
        let name = if info.name.is_empty() {
            &info.id
        } else {
            &info.name
        };
        let about = match digest.is_running {
            true => words::about_running(info, digest.length_s),
            false => words::about_run(info, digest.length_s),
        };
        let mut text = markup!(
            "<header><div><h1>{}</h1>\n<p class=\"soft\">{}</p>",
            name,
            self.say(&about)
        );
        if !info.command.is_empty() {
            text += markup!("<p><code>{}</code></p>", flatout_core::shell::line(&info.command));
        }
        text += markup!("</div>{}</header>\n", self.theme_button());
        if !digest.defects.is_empty() {
            let lines: Markup = digest
                .defects
                .iter()
                .map(|defect| markup!("<p>{}</p>", self.say(&defect.say)))
                .collect();
            text += markup!("<div class=\"defects\">{}</div>\n", lines);
        }
        text
    }

    pub(crate) fn headline(&self, figures: &[Figure]) -> Markup {
        if figures.is_empty() {
            return Markup::default();
        }
        let tiles: Markup = figures.iter().map(|figure| self.tile(figure)).collect();
        markup!("<ul class=\"tiles\">\n{}</ul>\n", tiles)
    }

    fn tile(&self, figure: &Figure) -> Markup {
        let spread = figure
            .std
            .map(|std| {
                markup!(
                    " <small>± {}</small>",
                    figure.unit.show(std).trim_end_matches('%')
                )
            })
            .unwrap_or_default();
        let interval = figure.interval.map_or_else(Markup::default, |(low, high)| {
            let (low, high) = (figure.unit.show(low), figure.unit.show(high));
            let title = message!(en: "95% interval of the mean", zh: "均值的 95% 区间");
            markup!("<small title=\"{}\">{} – {}</small>", self.say(&title), low, high)
        });
        markup!(
            "<li><b>{}{}</b><span>{}</span>{}</li>\n",
            figure.unit.show(figure.mean),
            spread,
            self.say(&figure.name),
            interval
        )
    }

    /// One bar of 100%, and a line for each part of it.
    pub(crate) fn time_bar(&self, digest: &Digest) -> Markup {
        let time = &digest.diagnosis.time;
        if !digest.has_steps || time.rows.is_empty() {
            return Markup::default();
        }
        let total = units::duration(time.total_s);
        let title = message!(en: "Where the {total} went", zh: "{total} 的去向");
        let mut left = 0.0;
        let mut bar = Markup::default();
        for row in &time.rows {
            bar += markup!(
                "<rect class=\"p-{}\" x=\"{:.2}\" y=\"0\" width=\"{:.2}\" height=\"36\"><title>{}</title></rect>",
                row.key,
                left,
                row.share * 1000.0,
                self.time_words(row)
            );
            left += row.share * 1000.0;
        }
        let parts: Markup = time
            .rows
            .iter()
            .map(|row| {
                markup!(
                    "<li><i class=\"swatch p-{}\"></i><span>{}</span><b>{:.1}%</b> <small>{}</small></li>\n",
                    row.key,
                    self.say(&row.name),
                    row.share * 100.0,
                    units::duration(row.seconds)
                )
            })
            .collect();
        let bar = markup!(
            "<svg class=\"bar\" viewBox=\"0 0 1000 36\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">{}</svg>\n",
            self.say(&title),
            bar
        );
        self.section(&title, bar + markup!("<ul class=\"parts\">\n{}</ul>\n", parts))
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
    pub(crate) fn charts(&self, charts: &[Chart], marks: &Marks) -> Markup {
        if charts.is_empty() {
            return Markup::default();
        }
        let hint = message!(
            en: "Hover over a curve to read its values; drag to zoom into all charts, double-click to zoom \
            out. The line is the mean over an interval, the band its minimum and maximum.",
            zh: "悬停在曲线上可读数；拖动可同时放大所有图表，双击还原。曲线是一段时间的均值，色带是其最小值和最大值。"
        );
        let mut text = Markup::default();
        if !self.pdf_ready {
            text += self.note(&hint);
        }
        text += self.mark_legend(marks);
        text += markup!("<div class=\"charts\">\n");
        for chart in charts {
            text += markup!(
                "<div class=\"chart\" id=\"chart-{}\"><h3>{}</h3></div>\n",
                chart.key,
                self.say(&chart.title)
            );
        }
        text += markup!("</div>\n");
        self.section(&message!(en: "Over time", zh: "随时间变化"), text)
    }

    fn mark_legend(&self, marks: &Marks) -> Markup {
        let (epochs, evals, checkpoints) = marks.counts;
        let mut entries = Markup::default();
        let mut add = |count: usize, class: &str, name: flatout_core::Message| {
            if count > 0 {
                entries += markup!(
                    "<span class=\"entry\"><i class=\"swatch {}\"></i>{}</span>",
                    class,
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
        markup!(
            "<p class=\"legend\">{}<span class=\"reset\"></span></p>\n",
            entries
        )
    }
}
