//! `flatout run -- COMMAND…`

use crate::commands::diagnose;
use crate::context::Context;
use crate::linted;
use crate::tracking::{Tracker, Trackers};
use crate::usage::Invalid;
use clap::{Args, ValueEnum};
use flatout_core::files::{check_writable, write_atomically};
use flatout_core::plural::counted;
use flatout_core::{Explain, Failure, Finding, Kind, Language, Message, Result, message, secrets, units};
use flatout_diagnose::analysis::collectives::op_name;
use flatout_diagnose::{Diagnosis, stall};
use flatout_record::{Record, RunData, StalledRank, argument_for};
use flatout_report::text;
use flatout_run::auto::{self, Auto};
use flatout_run::{Ended, Live, Options, Outcome, RunError, apply, program};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

pub const EXAMPLES: &str = "Examples:
  flatout run -- python train.py --epochs 3
  flatout run --auto -- python train.py
  flatout run --auto --allow precision -- python train.py
  flatout run --name baseline -- torchrun --nproc_per_node 2 train.py
  flatout run --patience 10m --on-hang stop -- torchrun --nproc_per_node 8 train.py
  flatout run --log-to wandb,tensorboard -- python train.py
  flatout run --apply loader.num_workers=8,amp=bf16 --steps 200 -- python train.py";

#[derive(Args)]
pub struct Arguments {
    /// Name of the run [default: the script's]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Settings to apply without editing the program: loader.num_workers=8,amp=bf16,tf32=on,optimizer.fused=on
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    apply: Vec<String>,
    /// Make the program faster while it runs: change settings that do not affect results, measure each change, and keep what helps
    #[arg(long)]
    auto: bool,
    /// With --auto: also allow changes that affect results, checked against the loss: precision, batch, compile, padding
    #[arg(long, value_name = "KIND", value_delimiter = ',', requires = "auto")]
    allow: Vec<String>,
    /// With --auto: do not change these settings
    #[arg(long, value_name = "KEY", value_delimiter = ',', requires = "auto")]
    without: Vec<String>,
    /// Stop the program after this many optimizer steps
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Print progress and the current bottleneck every few seconds
    #[arg(long)]
    live: bool,
    /// Profile a few steps with PyTorch's profiler: kernels, gaps between them and their cause, tensor cores, copies
    #[arg(long)]
    profile: bool,
    /// Disable Python stack sampling (20 Hz, out of process)
    #[arg(long)]
    no_stacks: bool,
    /// Report the location of every rank after this long without progress: 90s, 5m, 1h or off
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = parse_patience)]
    patience: Patience,
    /// What to do if the program makes no progress
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnHang::Leave)]
    on_hang: OnHang,
    /// Keep the program running if flatout is killed [default: stop it]
    #[arg(long)]
    keep_running: bool,
    /// Write the findings as JSON to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also log findings, account and telemetry to these trackers at the end, separated by commas
    #[arg(long, value_name = "TRACKERS", value_enum, value_delimiter = ',')]
    log_to: Vec<Tracker>,
    /// Print nothing during the run or at its end
    #[arg(short, long)]
    quiet: bool,
    /// The program and its arguments, as you would type them
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// How long to wait for progress; `None` for ever.
#[derive(Clone, Copy)]
struct Patience(Option<Duration>);

fn parse_patience(text: &str) -> std::result::Result<Patience, Invalid> {
    if text.trim() == "off" {
        return Ok(Patience(None));
    }
    super::tune::parse_time(text).map(|time| Patience(Some(time)))
}

#[derive(Clone, Copy, ValueEnum)]
enum OnHang {
    /// Keep the program running
    Leave,
    /// Stop the program, so that a job releases its GPUs
    Stop,
}

pub fn about() -> Message {
    message!(
        en: "Run a training program unchanged and report why its GPU is idle",
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
        patience: arguments.patience.0,
        on_hang: match arguments.on_hang {
            OnHang::Leave => flatout_run::OnHang::Leave,
            OnHang::Stop => flatout_run::OnHang::Stop,
        },
        ..Options::new(arguments.command)
    };
    if let Some(file) = &arguments.json {
        // Report now that it cannot be written, not hours later.
        check_writable(file)?;
    }
    let quiet = arguments.quiet;
    if quiet {
        crate::logging::quiet();
    }
    if std::env::var_os("RUST_BACKTRACE").is_none() {
        std::panic::set_hook(Box::new(|panic| {
            log::warn!("{}", one_line(&format!("flatout failed: {panic}")))
        }));
    }
    let trackers = Trackers::check(&arguments.log_to, &options.command, context);
    let outcome = flatout_run::run(&options, &mut |live| {
        if !quiet {
            eprint!("{}", during(&live, context));
        }
    })?;
    if let Some(folder) = &outcome.folder {
        let json = arguments.json.as_deref();
        let concluded = guarded(|| conclude(&options, &outcome, folder, json, quiet, context));
        if let Some(why) = concluded {
            eprintln!("{}", context.say(&no_summary(&why, folder)));
        }
        if let Some(trackers) = &trackers {
            flatout_run::guarded(|| trackers.log(folder, quiet, context));
        }
    }
    Ok(match outcome.ended {
        Ended::Code(code) => ExitCode::from(code as u8),
        Ended::Signal(signal) => ExitCode::from(program::die_of(signal)),
    })
}

/// What comes after the program's end: whatever fails in it, the program's exit code is ours. Gives an error; a panic has been reported.
fn guarded(work: impl FnOnce() -> Result<()>) -> Option<Failure> {
    flatout_run::guarded(work)?.err()
}

fn no_summary(why: &Failure, folder: &Path) -> Message {
    let folder = folder.display();
    let (en, zh) = (
        why.on_one_line(Language::English),
        why.on_one_line(Language::Chinese),
    );
    Message {
        en: one_line(&format!("flatout: no summary of the record in {folder}: {en}")),
        zh: one_line(&format!("flatout：无法汇总 {folder} 中的记录：{zh}")),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
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
        let output = diagnose::Output {
            run: &data.info.id,
            diagnosis: &diagnosis,
        };
        let text = serde_json::to_string_pretty(&output).unwrap_or_default() + "\n";
        write_atomically(file, text.as_bytes())?;
    }
    if !quiet {
        let colour = context.colour_on_stderr();
        // One screen; everything with `-v`.
        let (language, width) = (context.language, text::readable_width(None));
        let run = argument_for(folder);
        let closing = closing(options, outcome, folder, &data, &diagnosis, context);
        let shown = if context.verbose > 0 {
            text::diagnosis(&diagnosis, language, width, colour)
        } else {
            let rows = text::terminal_rows(&std::io::stderr());
            text::summary_above(&diagnosis, &run, &closing, language, width, rows, colour)
        };
        eprint!("\n{shown}");
        // Asked for, so it is shown, however small the terminal is.
        if let Some(profile) = diagnosis.profile.as_ref().filter(|_| context.verbose == 0) {
            eprint!("\n{}", text::profile(profile, language, colour));
        }
        eprint!("{closing}");
    }
    Ok(())
}

/// What comes after the findings: what became of the options, where the record is, and what to type next.
fn closing(
    options: &Options,
    outcome: &Outcome,
    folder: &Path,
    data: &RunData,
    diagnosis: &Diagnosis,
    context: &Context,
) -> String {
    let mut lines: Vec<Message> = Vec::new();
    if options.profile && data.profile.is_none() {
        lines.push(no_profile(data));
    }
    lines.extend(flatout_run::not_applied(&options.apply, data));
    let most = if context.verbose > 0 {
        usize::MAX
    } else {
        MOST_REASONS
    };
    lines.extend(automatic(options, outcome, data, most));
    lines.push(place(outcome, folder));
    lines.push(text::next_command(diagnosis, &argument_for(folder)));
    lines
        .iter()
        .map(|line| format!("{}\n", context.say(line)))
        .collect()
}

/// Changes that `--auto` did not make whose reasons fit on a screen with all else.
const MOST_REASONS: usize = 3;

/// What `--auto` did.
fn automatic(options: &Options, outcome: &Outcome, data: &RunData, most_reasons: usize) -> Vec<Message> {
    let Some(asked) = &options.auto else {
        return Vec::new();
    };
    let command: Vec<String> = options
        .command
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    // What is printed ends up in the log files of jobs.
    let command = secrets::redact(&command);
    let mut told = auto::summary(data, &command, most_reasons);
    told.extend(auto::ended_badly(data, asked, &command, outcome.ended));
    told
}

fn during(live: &Live, context: &Context) -> String {
    match live {
        Live::First(finding) => early(finding, context),
        Live::Unrecorded(error) => unrecorded(error, context),
        Live::State(diagnosis, progress) => state(diagnosis, progress.steps, context),
        Live::Stalled {
            seconds,
            ranks,
            stopping,
        } => stalled(*seconds, ranks, *stopping, context),
        Live::Resumed(seconds) => {
            let time = units::duration(*seconds);
            let said =
                message!(en: "flatout: progressing again after {time}", zh: "flatout：{time} 之后恢复进展");
            format!("{}\n", context.say(&said))
        }
    }
}

/// No progress: where every rank is.
fn stalled(seconds: f64, ranks: &[StalledRank], stopping: bool, context: &Context) -> String {
    let (time, who) = (units::duration(seconds), stall::blame(ranks));
    let (en, zh) = (who.en, who.zh);
    let head = Message {
        en: format!("flatout: no progress for {time}: {en}"),
        zh: format!("flatout：{time} 没有进展：{zh}"),
    };
    let mut text = format!("{}\n", text::width::printable(context.say(&head)));
    for rank in ranks {
        // A program with one process has nobody to wait for.
        if ranks.len() > 1 || rank.inside.is_some() {
            let line = format!("  {}", context.say(&where_is(rank)));
            text += &format!("{}\n", text::width::printable(&line));
        }
        for frame in rank
            .threads
            .iter()
            .take(1)
            .flat_map(|thread| innermost(&thread.frames))
        {
            text += &format!("{}\n", text::width::printable(&format!("      {frame}")));
        }
    }
    let then = if stopping {
        message!(en: "flatout: ending the program (--on-hang stop)", zh: "flatout：正在结束程序（--on-hang stop）")
    } else {
        message!(
            en: "flatout: the stacks of all threads are in the record; the program keeps running (--on-hang \
            stop would end it)",
            zh: "flatout：所有线程的调用栈已写入记录；程序不受影响（--on-hang stop 可结束它）"
        )
    };
    text + &format!("{}\n", context.say(&then))
}

/// The most informative frames.
fn innermost(frames: &[String]) -> &[String] {
    const MOST: usize = 4;
    &frames[frames.len().saturating_sub(MOST)..]
}

fn where_is(rank: &StalledRank) -> Message {
    let (number, pid) = (rank.rank, rank.pid);
    if rank.ended {
        return message!(en: "rank {number} (pid {pid}): ended", zh: "rank {number}（pid {pid}）：已结束");
    }
    let done = rank.collectives;
    if done == 0 && rank.inside.is_none() {
        return message!(en: "rank {number} (pid {pid}): no collective yet", zh: "rank {number}（pid {pid}）：还没有集合通信");
    }
    let Some(inside) = &rank.inside else {
        return message!(
            en: "rank {number} (pid {pid}): not in a collective, after {done} collectives",
            zh: "rank {number}（pid {pid}）：不在集合通信中，此前完成 {done} 次"
        );
    };
    let (op, since) = (op_name(&inside.op), units::duration(inside.seconds));
    let place = inside.place.as_ref().map(ToString::to_string).unwrap_or_default();
    Message {
        en: counted(format!(
            "rank {number} (pid {pid}): in {} for {since}, after {done} collectives  {place}",
            op.en
        )),
        zh: format!(
            "rank {number}（pid {pid}）：在 {} 中已 {since}，此前完成 {done} 次集合通信  {place}",
            op.zh
        ),
    }
}

/// One line of `--live`: how fast it goes, and the costliest cause.
fn state(diagnosis: &Diagnosis, steps: u64, context: &Context) -> String {
    let rate = diagnosis.window.as_ref().and_then(|window| window.samples_per_s);
    let round = diagnosis
        .account
        .as_ref()
        .and_then(|account| account.iterations.as_ref());
    let speed = match rate.map(units::count) {
        _ if steps == 0 => match round.map(|round| units::duration(round.ms / 1e3)) {
            Some(time) => message!(en: "{time} per iteration", zh: "每次迭代 {time}"),
            None => message!(en: "no step yet", zh: "还没有步骤"),
        },
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
            en: "no profile: the program runs its own profiler",
            zh: "没有 profile：程序自己已经在使用 profiler"
        );
    }
    message!(
        en: "no profile: profiling starts after 30 steps, or 10 s after the first step, and takes 5 steps; \
        the program ended before that",
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
        en: "flatout: not recording: {why}. The program runs without flatout.",
        zh: "flatout：无法记录：{why}。程序照常运行。"
    );
    let hint = error.hint();
    let hint = hint.as_ref().map_or("", |hint| context.say(hint));
    format!("{} {hint}\n", context.say(&said))
}

fn place(outcome: &Outcome, folder: &Path) -> Message {
    let (folder, seconds, steps) = (folder.display(), outcome.duration_s, outcome.progress.steps);
    if steps == 0 {
        return message!(
            en: "Ran for {seconds:.1} s; record in {folder}",
            zh: "运行了 {seconds:.1} 秒；记录保存在 {folder}"
        );
    }
    message!(
        en: "{steps} steps in {seconds:.1} s; record in {folder}",
        zh: "{seconds:.1} 秒内共 {steps} 步；记录保存在 {folder}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use crate::commands::Command;
    use clap::Parser;
    use flatout_core::Fix;
    use flatout_record::Fact;
    use flatout_vocabulary::settings::{self, Kind as Values};
    use serde_json::json;
    use std::collections::BTreeSet;

    #[test]
    fn trouble_after_the_program_is_one_line_and_no_panic() {
        assert!(guarded(|| Ok(())).is_none());
        assert!(guarded(|| panic!("on purpose")).is_none());
        let failed = guarded(|| {
            let cause = std::io::Error::other("disk\nfull");
            Err(Failure::new(message!(en: "no record", zh: "没有记录")).caused_by(&cause))
        });
        let text = no_summary(&failed.unwrap(), Path::new("runs/a\nb"));
        assert_eq!(
            text.en,
            "flatout: no summary of the record in runs/a b: no record: disk full"
        );
        assert_eq!(
            text.zh,
            "flatout：无法汇总 runs/a b 中的记录：没有记录：disk full"
        );
    }

    /// What a shell makes of these commands, each as words.
    fn typed(commands: &BTreeSet<String>) -> Vec<Vec<String>> {
        let script: String = commands
            .iter()
            .map(|command| format!("printf '%s\\0' {command}; printf '\\n'\n"))
            .collect();
        let done = std::process::Command::new("sh")
            .arg("-c")
            .arg(script)
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let text = String::from_utf8(done.stdout).unwrap();
        let lines = text
            .lines()
            .map(|line| line.split_terminator('\0').map(str::to_owned).collect());
        lines.collect()
    }

    /// The settings and the program of a command, as the parser reads them.
    fn parsed(words: &[String]) -> (Vec<String>, Vec<OsString>) {
        let cli = Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
        let Some(Command::Run(arguments)) = cli.command else {
            panic!("{words:?}");
        };
        let checked = apply::checked(&arguments.apply).unwrap_or_else(|error| panic!("{words:?}: {error}"));
        (checked, arguments.command)
    }

    fn every_record(mut look: impl FnMut(&RunData)) {
        let faults = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../faults");
        for group in [faults.clone(), faults.join("lines")] {
            for entry in std::fs::read_dir(group).unwrap().flatten() {
                for name in ["record", "record-gpu"] {
                    if let Ok(record) = Record::open(&entry.path().join(name)) {
                        look(&record.load());
                    }
                }
            }
        }
    }

    #[test]
    fn every_command_that_a_rule_prints_is_one_that_the_parser_takes() {
        let mut commands = BTreeSet::new();
        every_record(|data| {
            for mut data in [data.clone(), data.clone()] {
                if !commands.is_empty() {
                    data.info.command.push("it's $(a) word".into());
                }
                for finding in flatout_diagnose::diagnose(&data).findings {
                    let printed = finding.fixes.into_iter().filter_map(|fix| match fix {
                        Fix::Command { command, .. } => Some(command),
                        _ => None,
                    });
                    commands.extend(printed.filter(|command| command.starts_with("flatout run")));
                }
            }
        });
        assert!(commands.len() > 20, "{}", commands.len());
        for words in typed(&commands) {
            let (settings, command) = parsed(&words);
            assert!(!settings.is_empty() && !command.is_empty(), "{words:?}");
        }
    }

    #[test]
    fn every_command_that_auto_prints_is_one_that_the_parser_takes() {
        let program = ["python".to_owned(), "my train.py".to_owned()];
        let value = |setting: &settings::Setting| match setting.kind {
            Values::Count { .. } => "2",
            Values::Switch => "on",
            Values::Word => "bf16",
        };
        let kept = |key: &str, value: &str| Fact {
            t: 0.0,
            key: format!("auto.{key}"),
            value: json!({"state": "kept", "setting": format!("{key}={value}"), "gain": [1.1, 1.2, 1.3]}),
            scope: None,
            place: None,
        };
        let keys = settings::applied().map(|setting| (setting.key, value(setting)));
        for (key, value) in keys.chain([("copy.non_blocking", "on")]) {
            let data = RunData {
                facts: vec![kept(key, value)],
                ..RunData::default()
            };
            let lines = auto::summary(&data, &program, 9);
            let commands: BTreeSet<String> = lines
                .iter()
                .filter_map(|line| {
                    line.en
                        .split_once(": flatout run ")
                        .map(|(_, rest)| format!("flatout run {rest}"))
                })
                .collect();
            assert_eq!(
                commands.len(),
                usize::from(key != "copy.non_blocking"),
                "{lines:?}"
            );
            for words in typed(&commands) {
                let own: Vec<OsString> = program.iter().map(OsString::from).collect();
                assert_eq!(parsed(&words), (vec![format!("{key}={value}")], own));
            }
            let asked = Auto::default();
            let died = auto::ended_badly(&data, &asked, &program, Ended::Code(1))
                .unwrap()
                .en;
            let (_, command) = died.split_once(": ").unwrap();
            for words in typed(&BTreeSet::from([command.to_owned()])) {
                let cli = Cli::try_parse_from(&words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
                assert!(matches!(cli.command, Some(Command::Run(run)) if run.auto && run.without == [key]));
            }
        }
    }
}
