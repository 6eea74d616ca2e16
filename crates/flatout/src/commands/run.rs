//! `flatout run -- COMMAND…`

use crate::context::Context;
use crate::linted;
use clap::Args;
use flatout_core::files::{check_writable, write_atomically};
use flatout_core::{Explain, Finding, Kind, Message, Result, message, units};
use flatout_diagnose::Diagnosis;
use flatout_report::text;
use flatout_run::auto::{self, Auto};
use flatout_run::{Ended, Live, Options, Outcome, RunError, apply, program};
use flatout_telemetry::Record;
use flatout_telemetry::record::RunData;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout run -- python train.py --epochs 3
  flatout run --auto -- python train.py
  flatout run --auto --allow precision -- python train.py
  flatout run --name baseline -- torchrun --nproc_per_node 2 train.py
  flatout run --apply loader.num_workers=8,amp=bf16 --steps 200 -- python train.py";

#[derive(Args)]
pub struct Arguments {
    /// Name of the run [default: the script's]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Settings to put in force without an edit: loader.num_workers=8,amp=bf16,tf32=on,optimizer.fused=on
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    apply: Vec<String>,
    /// Make the program faster while it runs: change settings that leave its results alone, measure each, keep what helps
    #[arg(long)]
    auto: bool,
    /// With --auto: also changes that alter numbers, guarded by the loss: precision, batch, compile, padding
    #[arg(long, value_name = "KIND", value_delimiter = ',', requires = "auto")]
    allow: Vec<String>,
    /// With --auto: leave these settings as they are
    #[arg(long, value_name = "KEY", value_delimiter = ',', requires = "auto")]
    without: Vec<String>,
    /// Stop the program after this many optimizer steps
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Say every few seconds how the run goes and what holds it back
    #[arg(long)]
    live: bool,
    /// Run a few steps under PyTorch's profiler: kernels, gaps between them and their cause, tensor cores, copies
    #[arg(long)]
    profile: bool,
    /// Do not read where the program's Python code stands (20 times a second, from outside)
    #[arg(long)]
    no_stacks: bool,
    /// Let the program go on when flatout is killed (by default it is ended)
    #[arg(long)]
    keep_running: bool,
    /// Write the findings as JSON to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Say nothing, neither during the run nor at its end
    #[arg(short, long)]
    quiet: bool,
    /// The program and its arguments, as you would type them
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub fn about() -> Message {
    message!(
        en: "Run a training program unchanged and say why its GPU idled",
        zh: "原样运行训练程序，并说明 GPU 为什么空闲"
    )
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let options = Options {
        name: arguments.name,
        apply: apply::checked(&arguments.apply)?,
        auto: match arguments.auto {
            true => Some(Auto::parse(&arguments.allow, &arguments.without)?),
            false => None,
        },
        steps: arguments.steps,
        stacks: !arguments.no_stacks,
        profile: arguments.profile,
        live: arguments.live,
        keep_running: arguments.keep_running,
        ..Options::new(arguments.command)
    };
    if let Some(file) = &arguments.json {
        // Hours later would be too late to say that it cannot be written.
        check_writable(file)?;
    }
    let quiet = arguments.quiet;
    let outcome = flatout_run::run(&options, &mut |live| {
        if !quiet {
            eprint!("{}", during(&live, context));
        }
    })?;
    // Whatever becomes of the record, the program's exit code is ours.
    if let Some(folder) = &outcome.folder
        && let Err(error) = conclude(
            &options,
            &outcome,
            folder,
            arguments.json.as_deref(),
            quiet,
            context,
        )
    {
        eprint!("{}", error.render(context.language));
    }
    Ok(match outcome.ended {
        Ended::Code(code) => ExitCode::from(code as u8),
        Ended::Signal(signal) => ExitCode::from(program::die_of(signal)),
    })
}

/// Says what the record shows.
fn conclude(
    options: &Options,
    outcome: &Outcome,
    folder: &Path,
    json: Option<&Path>,
    quiet: bool,
    context: &Context,
) -> Result<()> {
    let data = Record::open(folder)?.load();
    let mut diagnosis = flatout_diagnose::diagnose(&data);
    linted::annotate(&mut diagnosis, &data.lines);
    if let Some(file) = json {
        let text = serde_json::to_string_pretty(&diagnosis).unwrap_or_default() + "\n";
        write_atomically(file, text.as_bytes())?;
    }
    if !quiet {
        let colour = context.colour_on_stderr();
        // One screen; everything with `-v`.
        let (language, width) = (context.language, text::readable_width(None));
        let shown = if context.verbose > 0 {
            text::diagnosis(&diagnosis, language, width, colour)
        } else {
            let rows = text::terminal_rows(&std::io::stderr());
            text::summary(&diagnosis, language, width, rows, colour)
        };
        eprint!("\n{shown}");
        // Asked for, so it is shown, however small the terminal is.
        if let Some(profile) = diagnosis.profile.as_ref().filter(|_| context.verbose == 0) {
            eprint!("\n{}", text::profile(profile, language, colour));
        }
        if options.profile && data.profile.is_none() {
            eprintln!("{}", context.say(&no_profile(&data)));
        }
        for line in flatout_run::not_applied(&options.apply, &data) {
            eprintln!("{}", context.say(&line));
        }
        for line in automatic(options, outcome, &data) {
            eprintln!("{}", context.say(&line));
        }
        eprintln!("{}", context.say(&place(outcome, folder)));
        eprintln!("{}", context.say(&text::next_command(&diagnosis)));
    }
    Ok(())
}

/// What `--auto` did.
fn automatic(options: &Options, outcome: &Outcome, data: &RunData) -> Vec<Message> {
    if options.auto.is_none() {
        return Vec::new();
    }
    let command: Vec<String> = options
        .command
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut told = auto::summary(data, &command);
    told.extend(auto::ended_badly(data, &command, outcome.ended));
    told
}

fn during(live: &Live, context: &Context) -> String {
    match live {
        Live::First(finding) => early(finding, context),
        Live::Unrecorded(error) => unrecorded(error, context),
        Live::State(diagnosis, progress) => state(diagnosis, progress.steps, context),
    }
}

/// One line of `--live`: how fast it goes, and the costliest cause.
fn state(diagnosis: &Diagnosis, steps: u64, context: &Context) -> String {
    let rate = diagnosis.window.as_ref().and_then(|window| window.samples_per_s);
    let speed = match rate.map(units::count) {
        Some(rate) => message!(en: "{steps} steps, {rate} samples/s", zh: "{steps} 步，每秒 {rate} 个样本"),
        None => message!(en: "{steps} steps", zh: "{steps} 步"),
    };
    let Some(finding) = diagnosis.findings.first() else {
        return format!("flatout: {}\n", context.say(&speed));
    };
    let place = finding
        .places
        .last()
        .map(|place| format!(" ({place})"))
        .unwrap_or_default();
    format!(
        "flatout: {} · {}{place} [{}]\n",
        context.say(&speed),
        context.say(&finding.title),
        finding.rule
    )
}

/// One line, while the program runs: what is wrong, and where to read on.
fn early(finding: &Finding, context: &Context) -> String {
    let (en, zh) = (&finding.title.en, &finding.title.zh);
    let title = match finding.kind {
        Kind::Verdict => Message {
            en: format!("so far: {en}"),
            zh: format!("目前：{zh}"),
        },
        Kind::Cause | Kind::Symptom => finding.title.clone(),
    };
    let title = context.say(&title);
    let place = finding
        .places
        .first()
        .map(|place| format!(" ({place})"))
        .unwrap_or_default();
    let rule = &finding.rule;
    format!("flatout: {title}{place} [flatout explain {rule}]\n")
}

/// Why `--profile` has nothing to show.
fn no_profile(data: &RunData) -> Message {
    if data.facts.iter().any(|fact| fact.key == "profile.refused") {
        return message!(
            en: "no profile: the program runs a profiler of its own",
            zh: "没有 profile：程序自己已经在使用 profiler"
        );
    }
    message!(
        en: "no profile: it begins after 30 steps, or 10 s after the first one, and takes 5 steps; the program ended before that",
        zh: "没有 profile：它在 30 步之后（或第一步之后 10 秒）开始，共 5 步；程序在此之前就结束了"
    )
}

/// Why there will be no record, and what to do about it next time.
fn unrecorded(error: &RunError, context: &Context) -> String {
    let mut why = context.say(&error.message()).to_owned();
    if let Some(cause) = error.cause() {
        why += &format!(": {cause}");
    }
    let said = message!(
        en: "flatout: not recording: {why}. The program runs without it.",
        zh: "flatout：无法记录：{why}。程序照常运行。"
    );
    let hint = error.hint();
    let hint = hint.as_ref().map_or("", |hint| context.say(hint));
    format!("{} {hint}\n", context.say(&said))
}

fn place(outcome: &Outcome, folder: &Path) -> Message {
    let (folder, seconds, steps) = (folder.display(), outcome.duration_s, outcome.progress.steps);
    message!(
        en: "{steps} steps in {seconds:.1} s; record in {folder}",
        zh: "{seconds:.1} 秒内共 {steps} 步；记录保存在 {folder}"
    )
}
