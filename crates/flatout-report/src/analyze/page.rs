//! An analysis as one HTML file: the job, its ranks, the first run or GPU log with its charts, and every log.

use super::text::job::meters;
use super::text::{problem_name, problem_place, times};
use super::{Analysis, Epochs, JobReport, Section};
use crate::digest::Digest;
use crate::page::frame::Frame;
use crate::page::{Markup, Options, Writer, data, markup};
use crate::ranks::Ranks;
use flatout_core::{Message, message, units};
use flatout_import::training_log::{Problems, Times};

/// Problems told in full; of more, their number.
const MOST_PROBLEMS: usize = 100;
/// Bars of epochs; of more, the longest of each group.
const MOST_BARS: usize = 300;

/// `digest`: of the first run or GPU log, where there is one.
pub fn html(analysis: &Analysis, digest: Option<&Digest>, options: Options) -> String {
    let writer = Writer {
        language: options.language,
        pdf_ready: options.pdf_ready,
    };
    let title = match (analysis.jobs.first(), analysis.sections.first()) {
        (Some(job), _) => format!("{} {}", job.account.id, job.account.name),
        (None, Some(section)) => section.title.clone(),
        (None, None) => String::new(),
    };
    let mut body = match digest {
        Some(digest) => writer.head(digest),
        None => writer.plain_head(&title),
    };
    body += analysis
        .jobs
        .iter()
        .map(|job| writer.job(job))
        .collect::<Markup>();
    let ranks = Ranks {
        rows: analysis.ranks.clone(),
        notes: Vec::new(),
    };
    body += writer.ranks(&ranks);
    if let Some(digest) = digest {
        body += writer.headline(&digest.figures);
        body += writer.time_bar(digest);
        body += writer.gpus(&digest.verdict);
        body += writer.charts(&digest.charts, &digest.marks);
        // A GPU log has no steps to judge.
        if digest.info.kind != "import" {
            body += writer.findings(&digest.diagnosis);
        }
    }
    for section in &analysis.sections {
        body += writer.log(section);
    }
    body += writer.notes(&analysis.notes);
    let (charts, marks) = digest.map(|digest| (&digest.charts[..], &digest.marks)).unzip();
    let frame = Frame {
        title: format!("{title} – flatout"),
        body,
        data: data::json(
            charts.unwrap_or_default(),
            marks.unwrap_or(&Default::default()),
            digest.and_then(|digest| digest.length_s).unwrap_or(0.0),
            options.language,
        ),
        language: options.language,
        pdf_ready: options.pdf_ready,
        served: None,
    };
    frame.html()
}

impl Writer {
    fn plain_head(&self, title: &str) -> Markup {
        markup!(
            "<header><div><h1>{}</h1></div>{}</header>\n",
            title,
            self.theme_button()
        )
    }

    fn notes(&self, notes: &[Message]) -> Markup {
        notes.iter().map(|note| self.note(note)).collect()
    }

    fn job(&self, report: &JobReport) -> Markup {
        let account = &report.account;
        let (id, name, state) = (&account.id, &account.name, &account.state);
        let title = message!(en: "Slurm job {id}  {name}  {state}", zh: "Slurm 作业 {id}  {name}  {state}");
        let mut rows = Markup::default();
        for (name, used, asked, share) in meters(account) {
            let percent = share.map_or_else(|| "?".to_owned(), units::percent);
            let amounts = message!(en: "{used} of {asked}", zh: "用了 {used}，申请 {asked}");
            rows += markup!(
                "<tr><td>{}</td><td class=\"number\"><b>{}</b></td><td>{}</td></tr>\n",
                self.say(&name),
                percent,
                self.say(&amounts)
            );
        }
        self.section(&title, self.table(rows) + self.notes(&report.notes))
    }

    /// What a log says: its epochs, its phases, what went wrong.
    fn log(&self, section: &Section) -> Markup {
        let mut text = self.notes(&section.notes);
        if let Some(epochs) = &section.epochs {
            text += markup!("<p>{}</p>\n", self.say(&times::summary(epochs)));
            text += self.epoch_bars(epochs);
        } else if section.kind == "training-log" {
            let unknown = message!(en: "time per epoch: unknown", zh: "每个 epoch 的时间：未知");
            text += markup!("<p>{}</p>\n", self.say(&unknown));
        }
        if let Some(log) = &section.training {
            text += self.phases(&log.times);
            text += self.problems(&log.problems, section.kind == "record");
        }
        let title = Message::verbatim(section.title.clone());
        self.section(&title, text)
    }

    fn phases(&self, times: &Times) -> Markup {
        let mut rows = Markup::default();
        for (part, time) in &times.parts {
            let (mean, count) = (units::duration(time.mean_s()), time.count);
            let (sum, max) = (units::duration(time.sum_s), units::duration(time.max_s));
            let detail = message!(en: "{count}×, {sum} in total, longest {max}", zh: "{count} 次，共 {sum}，最长 {max}");
            rows += markup!(
                "<tr><td>{}</td><td class=\"number\"><b>{}</b></td><td class=\"soft\">{}</td></tr>\n",
                self.say(&times::name(*part)),
                mean,
                self.say(&detail)
            );
        }
        if rows.is_empty() {
            return rows;
        }
        let title = message!(en: "Time by phase, according to the log", zh: "各阶段时间（按日志所述）");
        markup!("<h3>{}</h3>{}", self.say(&title), self.table(rows))
    }

    fn problems(&self, problems: &Problems, of_record: bool) -> Markup {
        let none = message!(en: "No errors, no warnings.", zh: "没有错误，也没有警告。");
        if problems.list.is_empty() {
            return self.note(&none);
        }
        let mut rows = Markup::default();
        for problem in problems.list.iter().take(MOST_PROBLEMS) {
            rows += markup!(
                "<tr><td><b>{}</b></td><td class=\"soft\">{}</td><td><code>{}</code></td></tr>\n",
                self.say(&problem_name(problem.kind)),
                self.say(&problem_place(problem, of_record)),
                problem.text
            );
        }
        let title = message!(en: "Errors and warnings", zh: "错误与警告");
        let mut text = markup!("<h3>{}</h3>{}", self.say(&title), self.table(rows));
        let more = problems.list.len().saturating_sub(MOST_PROBLEMS) as u64 + problems.left_out;
        if more > 0 {
            let more = message!(en: "and {more} more", zh: "以及另外 {more} 个");
            text += self.note(&more);
        }
        text
    }

    /// Drawn here, so that it is there without the script.
    fn epoch_bars(&self, epochs: &Epochs) -> Markup {
        const WIDTH: f64 = 700.0;
        const BOTTOM: f64 = 140.0;
        let longest = epochs.seconds.max.max(1e-9);
        let group = epochs.all.len().div_ceil(MOST_BARS).max(1);
        let groups: Vec<_> = epochs.all.chunks(group).collect();
        let step = (WIDTH - 24.0) / groups.len().max(1) as f64;
        let mut svg = Markup::default();
        let mut labelled = f64::NEG_INFINITY;
        for (index, group) in groups.iter().enumerate() {
            let Some(slowest) = group.iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds)) else {
                continue;
            };
            let height = (slowest.seconds / longest * (BOTTOM - 12.0)).max(1.0);
            let left = 12.0 + index as f64 * step;
            let (number, time) = (slowest.number, units::duration(slowest.seconds));
            let title = message!(en: "epoch {number}: {time}", zh: "第 {number} 个 epoch：{time}");
            svg += markup!(
                "<rect class=\"c0\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{}</title></rect>",
                left,
                BOTTOM - height,
                (step * 0.85).max(0.8),
                height,
                self.say(&title)
            );
            let middle = left + step * 0.42;
            if middle - labelled > 40.0 {
                let first = group.first().map_or(number, |epoch| epoch.number);
                svg += markup!(
                    "<text class=\"tick\" x=\"{:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>",
                    middle,
                    BOTTOM + 18.0,
                    first
                );
                labelled = middle;
            }
        }
        let title = message!(en: "Time per epoch", zh: "每个 epoch 的时间");
        let title = self.say(&title);
        markup!(
            "<h3>{}</h3><svg class=\"histogram\" viewBox=\"0 0 {} 170\" role=\"img\" aria-label=\"{}\">{}\
             <line class=\"axis\" x1=\"12\" x2=\"688\" y1=\"{}\" y2=\"{}\"/></svg>\n",
            title,
            WIDTH,
            title,
            svg,
            BOTTOM,
            BOTTOM
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::{Options as ReadOptions, SCHEMA, log};
    use flatout_core::Language;
    use std::fs;

    fn page(text: &str, language: Language) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("<b>train.log");
        fs::write(&path, text).unwrap();
        let analysis = Analysis {
            schema: SCHEMA,
            jobs: Vec::new(),
            ranks: Vec::new(),
            sections: vec![log(&path, &ReadOptions::default()).unwrap().section],
            notes: Vec::new(),
        };
        let options = Options {
            language,
            pdf_ready: false,
        };
        html(&analysis, None, options)
    }

    #[test]
    fn a_training_log_alone_is_a_page() {
        let log = "Epoch 1/2 | time 25.5s | val time 3.0s\nEpoch 2/2 | time 24.5s\nRuntimeError: <script>alert(1)</script>\n";
        let english = page(log, Language::English);
        assert!(
            english.contains("2 epochs") && english.contains("Time per epoch"),
            "{english}"
        );
        assert!(!english.contains("<script>alert") && !english.contains("<b>train"));
        assert_eq!(english.matches("<script").count(), 2);
        let chinese = page("hello\n", Language::Chinese);
        assert!(
            chinese.contains("未知") && chinese.contains("没有错误"),
            "{chinese}"
        );
    }
}
