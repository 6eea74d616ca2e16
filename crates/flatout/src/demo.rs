//! The whole story in one command: a slow training, why it is slow, the fixes, and the proof. Everything shown is measured while it
//! runs; nothing is written outside of its folder.

mod fixes;
mod folder;
mod pytorch;
mod training;

use crate::context::Context;
use crate::output::write_stdout;
use flatout_core::files::write_atomically;
use flatout_core::{Kind, Message, Result, message, units};
use flatout_data::generate::Recipe;
use flatout_data::generate::interactions::Interactions;
use flatout_record as record;
use flatout_report::compare::{Comparison, html, text};
use flatout_report::digest::Digest;
use flatout_report::{page, text as report_text, words};
use std::path::Path;
use training::{Settings, Training};

/// Long enough for a steady part of the slow run; the fast one needs less.
const BEFORE_S: f64 = 20.0;
const AFTER_S: f64 = 12.0;

/// Enough samples that a larger batch still makes two hundred steps per epoch; few enough that the slow run ends several epochs.
fn clicks() -> Interactions {
    Interactions::of_size(60_000, 0)
}

/// As the first script of many a project has it.
fn first_settings(folder: &Path) -> Settings {
    Settings::new(folder, "before")
        .with("model_type", "mlp")
        .with("hidden_size", "256")
        .with("num_layers", "3")
        .with("validation_ratio", "0.4")
        .with("pipeline", "naive")
        .with("batch_size", "4")
        .with("amp", "off")
        .with("eval_interval", "1")
        .with("checkpoint_interval", "1")
}

/// A fast training shows what the slow one hid: it is diagnosed and fixed once more.
const ROUNDS: [&str; 2] = ["after", "after-2"];

/// Runs it all: on a PyTorch program where PyTorch is installed, else, or when asked, with the built-in trainer. `false` when it was
/// interrupted.
pub fn run(folder: &Path, built_in: bool, context: &Context) -> Result<bool> {
    let story = Story { context };
    story.say(message!(
        en: "A slow training, why it is slow, the fixes, and the proof: about one minute.",
        zh: "一次缓慢的训练、慢的原因、改进方法和验证：约一分钟。"
    ));
    folder::prepare(folder)?;
    if let Some(python) = (!built_in).then(pytorch::python).flatten() {
        return story.on_pytorch(&python, folder);
    }
    story.data(folder)?;
    let mut settings = first_settings(folder);
    story.step(
        2,
        message!(
            en: "Train the way a first script does: batches of 4, the loss read back at every step, \
            evaluation and a checkpoint after every epoch",
            zh: "像初版脚本那样训练：batch 为 4、每步读回损失、每个 epoch 都评估并保存 checkpoint"
        ),
    );
    let Some(first) = story.train(&settings, BEFORE_S)? else {
        return Ok(false);
    };
    story.step(3, message!(en: "Why is it slow?", zh: "为什么慢？"));
    story.findings(&settings.output().display().to_string(), &first);
    let (mut runs, mut digests) = (vec![settings.clone()], vec![first]);
    for (round, name) in ROUNDS.into_iter().enumerate() {
        let Some(digest) = digests.last() else { break };
        let changes = fixes::for_findings(&digest.diagnosis.findings, &settings);
        if changes.is_empty() {
            break;
        }
        story.step(
            4,
            match round {
                0 => message!(en: "Apply the fixes and train again", zh: "应用改进，再次训练"),
                _ => message!(en: "The faster run reveals the next bottleneck: fix that one too", zh: "变快之后暴露出新的瓶颈：再改一次"),
            },
        );
        settings = story.change(&settings, &changes).renamed(folder, name);
        let Some(digest) = story.train(&settings, AFTER_S)? else {
            return Ok(false);
        };
        story.findings(&settings.output().display().to_string(), &digest);
        runs.push(settings.clone());
        digests.push(digest);
    }
    story.step(5, message!(en: "Did it help?", zh: "有用吗？"));
    let folders: Vec<String> = runs
        .iter()
        .map(|run| run.output().display().to_string())
        .collect();
    story.compare(folder, &folders, &digests)?;
    Ok(true)
}

struct Story<'a> {
    context: &'a Context,
}

impl Story<'_> {
    fn say(&self, message: Message) {
        write_stdout(format!("{}\n", self.context.say(&message)).as_bytes());
    }

    fn step(&self, number: u32, what: Message) {
        let paint = report_text::Paint {
            colour: self.context.colour_on_stdout(),
        };
        let width = report_text::readable_width(None);
        let lines = report_text::width::wrap(&format!("{number}/5  {}", self.context.say(&what)), width);
        for (index, line) in lines.iter().enumerate() {
            let (before, line) = if index == 0 {
                ("\n", line.clone())
            } else {
                ("", format!("     {line}"))
            };
            write_stdout(format!("{before}{}\n", paint.tone(report_text::Tone::Strong, &line)).as_bytes());
        }
    }

    /// What one would type for the same.
    fn command(&self, command: &str) {
        let paint = report_text::Paint {
            colour: self.context.colour_on_stdout(),
        };
        let width = report_text::readable_width(None).saturating_sub(7);
        for (index, line) in report_text::width::wrap(command, width).iter().enumerate() {
            let mark = if index == 0 { "$ " } else { "    " };
            write_stdout(
                format!(
                    "     {}\n",
                    paint.tone(report_text::Tone::Name, &format!("{mark}{line}"))
                )
                .as_bytes(),
            );
        }
    }

    fn line(&self, message: &Message) {
        let width = report_text::readable_width(None).saturating_sub(5);
        for line in report_text::width::wrap(self.context.say(message), width) {
            write_stdout(format!("     {line}\n").as_bytes());
        }
    }

    fn data(&self, folder: &Path) -> Result<()> {
        self.step(
            1,
            message!(en: "Generate data: who clicked which video, in three CSV parts joined with \
        two tables", zh: "生成数据：谁点击了哪个视频，三个 CSV 分片，外加两张待关联的表"),
        );
        let (out, recipe) = (folder.join("data"), clicks());
        let (path, size) = (out.display(), recipe.interactions);
        self.command(&format!(
            "flatout generate interactions --out {path} --size {size}"
        ));
        let made = Recipe::Interactions(recipe).generate(&out, None)?;
        let (files, rows) = (made.files, made.rows);
        self.line(&message!(en: "{files} files, {rows} rows", zh: "{files} 个文件，{rows} 行"));
        Ok(())
    }

    /// Trains for a while and digests the record; `None` when it was interrupted.
    fn train(&self, settings: &Settings, seconds: f64) -> Result<Option<Digest>> {
        self.command(&format!("flatout train {}", settings.flags()));
        let Some(training) = Training::run(settings, seconds, self.context)? else {
            return Ok(None);
        };
        let digest = Digest::read(&record::find(&settings.output().to_string_lossy())?);
        let (device, time) = (&training.device, units::duration(training.seconds));
        let rate = digest
            .figure("samples_per_s")
            .map_or_else(|| "?".to_owned(), |figure| figure.unit.show(figure.mean));
        self.line(&message!(
            en: "{device}: {rate} samples/s, stopped after {time}",
            zh: "{device}：{rate} 样本/秒，{time} 后停止"
        ));
        Ok(Some(digest))
    }

    /// One line a cause: the page has the evidence.
    fn findings(&self, run: &str, digest: &Digest) {
        self.command(&format!("flatout diagnose {run}"));
        let paint = report_text::Paint {
            colour: self.context.colour_on_stdout(),
        };
        let width = report_text::readable_width(None).saturating_sub(7);
        for finding in digest
            .diagnosis
            .findings
            .iter()
            .filter(|finding| finding.kind != Kind::Symptom)
        {
            let (sign, _) = words::severity(finding.severity);
            let title = format!("{}  [{}]", finding.title.get(self.context.language), finding.rule);
            let lines = report_text::width::wrap(&title, width);
            write_stdout(
                format!(
                    "     {} {}\n",
                    paint.tone(report_text::Tone::Warning, sign),
                    lines.join("\n       ")
                )
                .as_bytes(),
            );
        }
        let shares: Vec<String> = digest
            .diagnosis
            .time
            .rows
            .iter()
            .filter(|row| row.share >= 0.02)
            .map(|row| {
                format!(
                    "{} {}",
                    row.name.get(self.context.language),
                    units::percent(row.share)
                )
            })
            .collect();
        let shares = shares.join(" · ");
        self.line(&message!(en: "time: {shares}", zh: "时间：{shares}"));
    }

    fn change(&self, settings: &Settings, changes: &[fixes::Change]) -> Settings {
        let mut changed = settings.clone();
        for change in changes {
            let from = changed.value(change.setting).unwrap_or_default().to_owned();
            changed = changed.with(change.setting, &change.to);
            let (setting, to, why) = (
                change.setting.replace('_', "-"),
                &change.to,
                change.why.get(self.context.language),
            );
            self.line(&Message::verbatim(format!("--{setting}: {from} → {to}  {why}")));
        }
        changed
    }

    fn compare(&self, folder: &Path, runs: &[String], digests: &[Digest]) -> Result<()> {
        self.command(&format!("flatout compare {}", runs.join(" ")));
        let comparison = Comparison::of(digests);
        let width = report_text::readable_width(None);
        let shown = text::text(
            &comparison,
            self.context.language,
            width,
            self.context.colour_on_stdout(),
        );
        write_stdout(format!("\n{shown}\n").as_bytes());
        let options = page::Options {
            language: self.context.language,
            pdf_ready: false,
        };
        let (report, compared) = (folder.join("report.html"), folder.join("compare.html"));
        if let Some(first) = digests.first() {
            write_atomically(&report, page::html(first, options).as_bytes())?;
        }
        write_atomically(&compared, html::html(&comparison, digests, options).as_bytes())?;
        let (report, compared) = (report.display(), compared.display());
        self.say(message!(
            en: "Report of the slow run:   {report}\nComparison of the runs:   {compared}\nYour own \
            program:         flatout run -- python train.py",
            zh: "慢运行的报告页面：{report}\n前后对比页面：    {compared}\n诊断您的程序：    flatout run -- python train.py"
        ));
        Ok(())
    }
}
