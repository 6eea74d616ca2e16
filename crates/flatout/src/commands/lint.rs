//! `flatout lint PATHS`

use crate::context::Context;
use crate::output::write_stdout;
use clap::{Args, ValueEnum};
use flatout_core::{Failure, Message, Result, Severity, message};
use flatout_lint::{Outcome, Settings, fix, format, join};
use flatout_record::{self as record, EventKind};
use std::path::PathBuf;
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout lint                          the current folder
  flatout lint train.py configs/        these files and folders, as one project
  flatout lint --fix --unsafe .         apply fixes; originals are kept as *.flatout-backup
  flatout lint --diff .                 show what --fix would change
  flatout lint --select sync --format github .
  flatout lint --run last .             with the measurements of a recorded run";

#[derive(Args)]
pub struct Arguments {
    /// Files and folders that make up the project
    #[arg(default_value = ".")]
    paths: Vec<PathBuf>,
    /// Apply the fixes that leave results unchanged; the original files are kept as *.flatout-backup
    #[arg(long)]
    fix: bool,
    /// With --fix or --diff: also apply fixes that may change results (precision, memory, the order of sums)
    #[arg(long = "unsafe")]
    with_unsafe: bool,
    /// Show what --fix would change, without changing anything
    #[arg(long, conflicts_with = "fix")]
    diff: bool,
    /// Report only these rules or domains, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "RULES")]
    select: Vec<String>,
    /// Do not report these rules or domains, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "RULES")]
    ignore: Vec<String>,
    /// How to print the findings
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    format: OutputFormat,
    /// Same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Use a recorded run: list what it confirms first, with its cost, and omit what it rules out
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Read settings from this file instead of the nearest flatout.toml or pyproject.toml
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum OutputFormat {
    Text,
    Json,
    Sarif,
    Github,
}

pub fn about() -> Message {
    message!(en: "Find code that will keep the GPU idle, before you run it", zh: "运行之前，从源码里找出会让 GPU 空闲的问题")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let settings = settings(&arguments)?;
    let run = arguments.run.as_deref().map(recorded).transpose()?;
    let look = || -> Result<(Outcome, Option<join::Joined>)> {
        let mut outcome = flatout_lint::lint(&arguments.paths, &settings)?;
        let joined = run.as_ref().map(|run| join::join(&mut outcome, run));
        Ok((outcome, joined))
    };
    let (outcome, joined) = look()?;
    if let Some(join::Joined { proved, dropped }) = joined {
        let say = message!(
            en: "the run confirms {proved} findings, listed first, and rules out {dropped}, which are omitted",
            zh: "这次运行证实了 {proved} 处（排在前面），排除了 {dropped} 处"
        );
        eprintln!("{}", context.say(&say));
    }
    if arguments.diff || arguments.fix {
        let mended = if arguments.fix {
            fix::apply_all(outcome, arguments.with_unsafe, || Ok::<_, Failure>(look()?.0))?
        } else {
            fix::preview(&outcome, arguments.with_unsafe)
        };
        write_stdout(mended.diff.as_bytes());
        eprintln!("{}", context.say(&mended.summary()));
        return Ok(ExitCode::from(u8::from(
            arguments.diff && !mended.diff.is_empty(),
        )));
    }
    let format = if arguments.json {
        OutputFormat::Json
    } else {
        arguments.format
    };
    let text = match format {
        OutputFormat::Text => format::text(
            &outcome,
            context.language,
            format::Paint(context.colour_on_stdout()),
        ),
        OutputFormat::Json => format::json(&outcome),
        OutputFormat::Sarif => format::sarif(&outcome, context.language),
        OutputFormat::Github => format::github(&outcome, context.language),
    };
    write_stdout(text.as_bytes());
    Ok(exit_code(&outcome))
}

/// What a record and its diagnosis contain about the source.
fn recorded(named: &str) -> Result<join::Run> {
    let data = record::find(named)?.load();
    let mut run = join::Run {
        findings: flatout_diagnose::diagnose(&data).findings,
        ..join::Run::default()
    };
    for fact in data.facts {
        let value = fact
            .value
            .as_str()
            .map_or_else(|| fact.value.to_string(), str::to_owned);
        run.facts.entry(fact.key).or_default().push(value);
    }
    for event in data.events {
        if let EventKind::Sync {
            place,
            device: Some(device),
            ..
        } = event.kind
            && device == "cpu"
        {
            run.host_reads.push(place);
        }
    }
    Ok(run)
}

fn settings(arguments: &Arguments) -> Result<Settings> {
    let mut settings = match &arguments.config {
        Some(path) => Settings::read(path)?.ok_or_else(|| {
            let path = path.display();
            Failure::new(message!(en: "`{path}` has no lint section", zh: "`{path}` 中没有 lint 一节"))
                .with_hint(message!(en: "add a `[lint]` section (in pyproject.toml: `[tool.flatout.lint]`)", zh: "请加上 `[lint]`（pyproject.toml 中为 `[tool.flatout.lint]`）"))
        })?,
        None => Settings::discover(arguments.paths.first().map_or(".".as_ref(), PathBuf::as_path))?,
    };
    if !arguments.select.is_empty() {
        settings.select.clone_from(&arguments.select);
    }
    settings.ignore.extend(arguments.ignore.iter().cloned());
    settings.check()?;
    Ok(settings)
}

/// 1 when something costs speed; what is only for information does not fail a check.
fn exit_code(outcome: &Outcome) -> ExitCode {
    let fails = outcome
        .found
        .iter()
        .any(|one| one.finding.severity > Severity::Information);
    ExitCode::from(u8::from(fails))
}
