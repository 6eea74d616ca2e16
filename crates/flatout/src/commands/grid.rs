//! `flatout grid`

mod tasks;

use crate::context::Context;
use crate::output::write_stdout;
use crate::training;
use crate::usage::Invalid;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use flatout_core::cpus::UsableCpus;
use flatout_core::text::clear_line;
use flatout_core::{Message, Result, message, units};
use flatout_report::text::{self, Align, Paint, Table};
use flatout_train::Report;
use flatout_train::grid::{self, Grid, GridReport, Group, PointResult};
use flatout_train::metrics::Select;
use flatout_train::settings::Values;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use tasks::{SlurmOptions, SlurmTasks};

pub const EXAMPLES: &str = "Examples:
  flatout grid examples/sequence-grid.yaml
  flatout grid grid.yaml --hidden-size 128,256 --sequence-length 30,60,90 --output-dir out/grid
  flatout grid grid.yaml --jobs 2
  flatout grid grid.yaml --jobs auto                    one combination per GPU, if there are several
  flatout grid grid.yaml --slurm --partition gpu --time-limit 2h --max-running 8
To continue a grid that was killed or interrupted, run the same command again.";

pub struct Arguments {
    config: PathBuf,
    values: Values,
    jobs: Jobs,
    json: bool,
    plain: bool,
    /// As tasks of a Slurm array.
    slurm: Option<SlurmOptions>,
    /// This combination alone: what a task does.
    point: Option<usize>,
}

#[derive(Clone, Copy)]
enum Jobs {
    Auto,
    Most(usize),
}

pub fn about() -> Message {
    message!(en: "Train every combination of lists of settings", zh: "训练设置列表的所有组合")
}

impl Args for Arguments {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new("config")
            .value_name("CONFIG")
            .required(true)
            .help("YAML file; settings that are lists are combined");
        let jobs = Arg::new("jobs")
            .long("jobs")
            .short('j')
            .value_name("N")
            .default_value("1")
            .value_parser(parse_jobs)
            .help(
                "Trainings side by side at most, as many as is measured to be fastest; auto: one per GPU, or up to one per CPU without several GPUs",
            );
        let json = Arg::new("json")
            .long("json")
            .action(ArgAction::SetTrue)
            .help("Print one JSON object per line on stdout");
        let plain = Arg::new("plain")
            .long("plain")
            .action(ArgAction::SetTrue)
            .help("Lines instead of a moving line, also on a terminal");
        let command = slurm_arguments(command.arg(config).arg(jobs));
        training::settings_arguments(command.arg(json).arg(plain))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Arguments {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        Ok(Self {
            config: matches
                .get_one::<String>("config")
                .map(PathBuf::from)
                .unwrap_or_default(),
            values: training::given_settings(matches),
            jobs: matches.get_one::<Jobs>("jobs").copied().unwrap_or(Jobs::Most(1)),
            json: matches.get_flag("json"),
            plain: matches.get_flag("plain"),
            slurm: matches.get_flag("slurm").then(|| slurm_options(matches)),
            point: matches.get_one::<usize>("point").copied(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// `--slurm` and what goes with it. Times have `--time-limit`: `--time` is the column of time.
fn slurm_arguments(command: Command) -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name(value)
            .help(help)
            .requires("slurm")
    };
    let slurm = Arg::new("slurm")
        .long("slurm")
        .action(ArgAction::SetTrue)
        .conflicts_with("jobs")
        .help("Train the combinations as tasks of a Slurm array; defaults are in [slurm] of the nearest flatout.toml");
    let count = |name, value, help, least: i64| {
        text(name, value, help).value_parser(clap::value_parser!(u32).range(least..=4096))
    };
    let point = Arg::new("point")
        .long("point")
        .value_name("N")
        .hide(true)
        .conflicts_with_all(["slurm", "jobs"])
        .value_parser(clap::value_parser!(usize))
        .help("Train only this combination, counted from 1");
    command
        .arg(slurm)
        .arg(text("partition", "NAME", "Partition"))
        .arg(text("account", "NAME", "Account"))
        .arg(text("qos", "NAME", "Quality of service"))
        .arg(count(
            "gpus",
            "N",
            "GPUs of each task [default: 1, or 0 for device cpu]",
            0,
        ))
        .arg(count(
            "cpus-per-gpu",
            "N",
            "CPUs per GPU [default: a GPU's share of the partition's nodes, at most 16]",
            1,
        ))
        .arg(text(
            "mem",
            "SIZE",
            "Memory of each task, as in 32G [default: the GPUs' share of the partition's nodes]",
        ))
        .arg(text(
            "time-limit",
            "TIME",
            "Time limit of each task: 2h, 90m, or as Slurm writes it [default: 24:00:00]",
        ))
        .arg(count(
            "max-running",
            "N",
            "Maximum number of array tasks to run at once",
            1,
        ))
        .arg(
            text(
                "sbatch",
                "OPTION",
                "Additional sbatch options, such as constraint=a100",
            )
            .action(ArgAction::Append),
        )
        .arg(point)
}

fn slurm_options(matches: &ArgMatches) -> SlurmOptions {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let count = |name: &str| matches.get_one::<u32>(name).copied();
    SlurmOptions {
        partition: text("partition"),
        account: text("account"),
        qos: text("qos"),
        gpus: count("gpus"),
        cpus_per_gpu: count("cpus-per-gpu").map(u64::from),
        mem: text("mem"),
        time: text("time-limit"),
        max_running: count("max-running"),
        sbatch: matches
            .get_many::<String>("sbatch")
            .map(|options| options.cloned().collect())
            .unwrap_or_default(),
    }
}

/// A number from 1, or `auto`.
fn parse_jobs(text: &str) -> std::result::Result<Jobs, Invalid> {
    match text {
        "auto" => Ok(Jobs::Auto),
        _ => text
            .parse()
            .ok()
            .filter(|jobs| *jobs > 0)
            .map(Jobs::Most)
            .ok_or_else(|| Invalid(message!(en: "expected auto or a whole number of at least 1", zh: "应为 auto 或不小于 1 的整数"))),
    }
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let grid = Grid::read(&arguments.config, &arguments.values)?;
    let interrupted = flatout_core::interrupt::flag();
    let mut shown = Shown {
        json: arguments.json,
        plain: arguments.plain,
        jobs: 1,
        by_tasks: false,
        told: Vec::new(),
    };
    if let Some(number) = arguments.point {
        let mut show = |report: &GridReport| shown.report(report, context);
        let result = grid::run_one(&grid, number, interrupted, &mut show)?;
        return Ok(match result {
            Some(result) => ExitCode::from(u8::from(result.error.is_some())),
            None => ExitCode::from(130),
        });
    }
    if let Some(options) = arguments.slurm {
        let mut tasks = SlurmTasks::open(&grid, &arguments.config, &arguments.values, options)?;
        shown.by_tasks = true;
        let mut show = |report: &GridReport| shown.report(report, context);
        let results = grid::run_by_tasks(&grid, &mut tasks, interrupted, &mut show)?;
        let all = results.len() == grid.points.len();
        conclude(&grid, &results, arguments.json, context)?;
        if !all {
            eprintln!("{}", context.say(&tasks.left(results.len(), grid.points.len())));
            return Ok(ExitCode::from(130));
        }
        return Ok(exit_code(&results));
    }
    let local = match arguments.jobs {
        Jobs::Auto => tasks::on_all_gpus(&grid, &arguments.config, &arguments.values)?,
        Jobs::Most(_) => None,
    };
    let results = match local {
        Some(mut tasks) => {
            shown.by_tasks = true;
            let mut show = |report: &GridReport| shown.report(report, context);
            grid::run_by_tasks(&grid, &mut tasks, interrupted, &mut show)?
        }
        None => {
            let jobs = match arguments.jobs {
                Jobs::Auto => UsableCpus::here().count().max(2),
                Jobs::Most(jobs) => jobs,
            };
            shown.jobs = jobs;
            let mut show = |report: &GridReport| shown.report(report, context);
            grid::run(&grid, jobs, interrupted, &mut show)?
        }
    };
    conclude(&grid, &results, arguments.json, context)?;
    if interrupted.load(Ordering::Relaxed) {
        tasks::stopped(context, results.len(), grid.points.len());
        return Ok(ExitCode::from(130));
    }
    Ok(exit_code(&results))
}

fn exit_code(results: &[PointResult]) -> ExitCode {
    ExitCode::from(u8::from(results.iter().any(|result| result.error.is_some())))
}

/// `grid.csv`, and the table or its JSON form.
fn conclude(grid: &Grid, results: &[PointResult], json: bool, context: &Context) -> Result<()> {
    grid::write_csv(grid, results)?;
    if json {
        let selected = results.first().map_or("loss", |result| result.selected.as_str());
        let seeds = grid::over_seeds(results, &Select::named(selected));
        let line = serde_json::json!({"event": "grid", "schema": 1, "results": results, "seeds": seeds});
        write_stdout(format!("{line}\n").as_bytes());
    } else {
        write_stdout(summary(grid, results, context).as_bytes());
    }
    Ok(())
}

/// How the progress is shown.
struct Shown {
    json: bool,
    plain: bool,
    /// Trainings at once in this process.
    jobs: usize,
    by_tasks: bool,
    told: Vec<Message>,
}

impl Shown {
    fn report(&mut self, report: &GridReport, context: &Context) {
        if let GridReport::SideBySide { jobs, .. } = report {
            self.jobs = *jobs;
        }
        let report = &without_repeated_notes(report.clone(), &mut self.told);
        if self.json {
            let line = serde_json::to_string(report).unwrap_or_default();
            return write_stdout(format!("{line}\n").as_bytes());
        }
        let moving = self.jobs == 1 && std::io::stderr().is_terminal() && !self.plain;
        match self.by_tasks {
            true => show_task(report, context, moving),
            false => show(report, context, moving, self.jobs),
        }
    }
}

/// The progress of a grid that others train: a line for each result, and how the queue stands.
fn show_task(report: &GridReport, context: &Context, moving: bool) {
    let text = match report {
        GridReport::Queue {
            done,
            of,
            running,
            waiting,
            reason,
        } => {
            let mut text = message!(
                en: "{done} of {of} done, {running} running, {waiting} waiting",
                zh: "已完成 {done}/{of}，运行中 {running}，等待 {waiting}"
            );
            if let Some(reason) = reason {
                text.en += &format!(" ({reason})");
                text.zh += &format!("（{reason}）");
            }
            if moving {
                eprint!("{}{}", clear_line(), context.say(&text));
                return;
            }
            text
        }
        GridReport::End {
            point,
            of,
            result,
            before: false,
        } if result.error.is_none() => {
            let (name, select) = (&result.name, &result.selected);
            let best = result
                .best
                .map_or_else(|| "?".to_owned(), |best| format!("{best:.6}"));
            let time = units::duration(result.seconds);
            message!(en: "[{point}/{of}] {name}: best {select} {best} in {time}", zh: "[{point}/{of}] {name}：最佳 {select} {best}，用时 {time}")
        }
        _ => return show(report, context, moving, 1),
    };
    let start = if moving { clear_line() } else { String::new() };
    eprintln!("{start}{}", context.say(&text));
}

/// What holds for every combination is printed once.
fn without_repeated_notes(mut report: GridReport, told: &mut Vec<Message>) -> GridReport {
    if let GridReport::Training {
        report: Report::Start { notes, .. },
        ..
    } = &mut report
    {
        notes.retain(|note| !told.contains(note));
        told.extend(notes.iter().cloned());
    }
    report
}

fn show(report: &GridReport, context: &Context, moving: bool, jobs: usize) {
    let text = match report {
        GridReport::SideBySide { told, .. } | GridReport::Note { told } => told.clone(),
        GridReport::Queue { .. } => return,
        GridReport::Begin {
            point,
            of,
            name,
            resumed: false,
        } => Message::verbatim(format!("[{point}/{of}] {name}")),
        GridReport::Begin { point, of, name, .. } => {
            message!(en: "[{point}/{of}] {name}, resuming from its last checkpoint", zh: "[{point}/{of}] {name}，从上次的检查点继续")
        }
        GridReport::End {
            point,
            of,
            result,
            before: true,
        } => {
            let name = &result.name;
            message!(en: "[{point}/{of}] {name}: already done", zh: "[{point}/{of}] {name}：此前已完成")
        }
        GridReport::End {
            point, of, result, ..
        } => match &result.error {
            None => return,
            Some(error) => {
                let name = &result.name;
                message!(en: "[{point}/{of}] {name} failed: {error}", zh: "[{point}/{of}] {name} 失败：{error}")
            }
        },
        // Side by side, lines without their name would be a riddle.
        GridReport::Training { name, report, .. } if jobs > 1 => {
            if matches!(report, Report::Epoch { .. } | Report::Warning { .. }) {
                eprint!("{name}: ");
                training::show(report, context.language, false);
            }
            return;
        }
        GridReport::Training {
            report: Report::Saved { .. },
            ..
        } => return,
        GridReport::Training { report, .. } => return training::show(report, context.language, moving),
    };
    let start = if moving { clear_line() } else { String::new() };
    eprintln!("{start}{}", context.say(&text));
}

/// The table, best first, the position of each between best and worst, and means over seeds.
fn summary(grid: &Grid, results: &[PointResult], context: &Context) -> String {
    let selected = results.first().map_or("loss", |result| result.selected.as_str());
    let select = Select::named(selected);
    let mut sorted: Vec<&PointResult> = results.iter().collect();
    sorted.sort_by(|a, b| select.order(a.best, b.best));
    let best = match select.name() {
        "loss" => message!(en: "best loss", zh: "最佳损失"),
        name => message!(en: "best {name}", zh: "最佳 {name}"),
    };
    let named = sorted.iter().filter_map(|result| {
        let values: Vec<&str> = result.values.iter().map(|(_, value)| value.as_str()).collect();
        Some((values.join(" "), result.best?))
    });
    let named: Vec<(String, f64)> = named.collect();
    let width = text::readable_width(text::terminal_columns(&std::io::stdout()));
    let axes: Vec<&str> = grid.axes.iter().map(|(name, _)| *name).collect();
    let title = format!("{} ({})", context.say(&best), axes.join(" "));
    let groups = grid::over_seeds(results, &select);
    let seeds = match groups.is_empty() {
        true => String::new(),
        false => format!("\n{}", seeds_table(&groups, &select, context)),
    };
    format!(
        "{}\n{title}\n{}{seeds}",
        points_table(grid, &sorted, &select, &best, context),
        text::dots(&named, width, |value| format!("{value:.6}"))
    )
}

fn points_table(
    grid: &Grid,
    sorted: &[&PointResult],
    select: &Select,
    best: &Message,
    context: &Context,
) -> String {
    let mut header: Vec<String> = grid.axes.iter().map(|(name, _)| (*name).to_owned()).collect();
    let speed = message!(en: "samples/s", zh: "样本/秒");
    let time = message!(en: "time", zh: "用时");
    let scores = sorted.iter().find_map(|result| result.best_scores);
    let scores = scores.map(|scores| scores.figures()).unwrap_or_default();
    let more = scores.iter().map(|(name, _)| *name);
    let more: Vec<&str> = more.filter(|name| *name != select.name()).collect();
    header.push(context.say(best).to_owned());
    header.extend(more.iter().map(|name| (*name).to_owned()));
    header.extend([&speed, &time].map(|title| context.say(title).to_owned()));
    let mut table = Table::new(&vec![Align::Right; header.len()]);
    table.toned_cells(header.into_iter().map(|title| (title, None)));
    for result in sorted {
        let figures = result
            .best_scores
            .map(|scores| scores.figures())
            .unwrap_or_default();
        let figure = |name: &&str| {
            let found = figures.iter().find(|(key, _)| key == name);
            found.map_or_else(|| "-".to_owned(), |(_, value)| format!("{value:.4}"))
        };
        let mut cells: Vec<String> = result.values.iter().map(|(_, value)| value.clone()).collect();
        cells.push(
            result
                .best
                .map_or_else(|| "-".to_owned(), |value| format!("{value:.6}")),
        );
        cells.extend(more.iter().map(figure));
        match &result.error {
            None => cells.extend([
                result.samples_s.map_or_else(|| "-".to_owned(), units::count),
                units::duration(result.seconds),
            ]),
            Some(_) => cells.extend([
                context.say(&message!(en: "failed", zh: "失败")).to_owned(),
                "-".to_owned(),
            ]),
        }
        table.toned_cells(cells.into_iter().map(|cell| (cell, None)));
    }
    table.render(Paint { colour: false })
}

/// Mean ± standard deviation over the seeds.
fn seeds_table(groups: &[Group], select: &Select, context: &Context) -> String {
    let Some(first) = groups.first() else {
        return String::new();
    };
    let others = first.figures.iter().map(|(name, ..)| name.as_str());
    let names: Vec<&str> = std::iter::once(select.name())
        .chain(others.filter(|name| *name != select.name()))
        .collect();
    let seeds = message!(en: "seeds", zh: "种子数");
    let mut header: Vec<String> = first.values.iter().map(|(name, _)| name.clone()).collect();
    header.push(context.say(&seeds).to_owned());
    header.extend(names.iter().map(|name| (*name).to_owned()));
    let mut table = Table::new(&vec![Align::Right; header.len()]);
    table.toned_cells(header.into_iter().map(|title| (title, None)));
    for group in groups {
        let mut cells: Vec<String> = group.values.iter().map(|(_, value)| value.clone()).collect();
        cells.push(group.seeds.to_string());
        cells.extend(names.iter().map(|name| {
            let found = group.figures.iter().find(|(key, ..)| key == name);
            let found = found.map(|(_, mean, deviation)| (*mean, *deviation));
            // Of one label among several: it is not among the scores of all.
            let found = found.or(group.best.filter(|_| *name == select.name()));
            found.map_or_else(
                || "-".to_owned(),
                |(mean, deviation)| format!("{mean:.4} ± {deviation:.4}"),
            )
        }));
        table.toned_cells(cells.into_iter().map(|cell| (cell, None)));
    }
    let title = message!(en: "mean ± standard deviation over seeds", zh: "各种子的均值 ± 标准差");
    format!(
        "{}\n{}",
        context.say(&title),
        table.render(Paint { colour: false })
    )
}
