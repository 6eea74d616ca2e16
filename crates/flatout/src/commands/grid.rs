//! `flatout grid`

use crate::context::Context;
use crate::output::write_stdout;
use crate::training;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use flatout_core::cpus::UsableCpus;
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

pub const EXAMPLES: &str = "Examples:
  flatout grid examples/sequence-grid.yaml
  flatout grid grid.yaml --hidden-size 128,256 --sequence-length 30,60,90 --output-dir out/grid
  flatout grid grid.yaml --jobs 2
To continue a grid that was killed or interrupted, run the same command again.";

pub struct Arguments {
    config: PathBuf,
    values: Values,
    jobs: usize,
    json: bool,
    plain: bool,
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
                "Trainings side by side at most, as many as is measured to be fastest; auto: up to one a CPU",
            );
        let json = Arg::new("json")
            .long("json")
            .action(ArgAction::SetTrue)
            .help("Print one JSON object per line on stdout");
        let plain = Arg::new("plain")
            .long("plain")
            .action(ArgAction::SetTrue)
            .help("Lines instead of a moving line, also on a terminal");
        training::settings_arguments(command.arg(config).arg(jobs).arg(json).arg(plain))
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
            jobs: matches.get_one::<usize>("jobs").copied().unwrap_or(1),
            json: matches.get_flag("json"),
            plain: matches.get_flag("plain"),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// A number from 1, or `auto`.
fn parse_jobs(text: &str) -> std::result::Result<usize, String> {
    match text {
        "auto" => Ok(UsableCpus::here().count().max(2)),
        _ => text
            .parse()
            .ok()
            .filter(|jobs| *jobs > 0)
            .ok_or_else(|| "expected a whole number from 1, or auto".to_owned()),
    }
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let grid = Grid::read(&arguments.config, &arguments.values)?;
    let interrupted = flatout_core::interrupt::flag();
    let mut jobs = arguments.jobs;
    let mut told = Vec::new();
    let mut show = |report: &GridReport| {
        if let GridReport::SideBySide { jobs: chosen, .. } = report {
            jobs = *chosen;
        }
        let report = &without_repeated_notes(report.clone(), &mut told);
        let moving = jobs == 1 && std::io::stderr().is_terminal() && !arguments.plain && !arguments.json;
        if arguments.json {
            write_stdout(format!("{}\n", serde_json::to_string(report).unwrap_or_default()).as_bytes());
        } else {
            show(report, context, moving, jobs);
        }
    };
    let results = grid::run(&grid, arguments.jobs, interrupted, &mut show)?;
    grid::write_csv(&grid, &results)?;
    if arguments.json {
        let selected = results.first().map_or("loss", |result| result.selected.as_str());
        let seeds = grid::over_seeds(&results, Select::named(selected));
        let line = serde_json::json!({"event": "grid", "schema": 1, "results": results, "seeds": seeds});
        write_stdout(format!("{line}\n").as_bytes());
    } else {
        write_stdout(summary(&grid, &results, context).as_bytes());
    }
    if interrupted.load(Ordering::Relaxed) {
        let (done, of) = (results.len(), grid.points.len());
        let stopped = message!(en: "stopped after {done} of {of}; run the same command again to continue", zh: "已停止，完成 {done}/{of}；再次运行同一命令即可继续");
        eprintln!("{}", context.say(&stopped));
        return Ok(ExitCode::from(130));
    }
    let failed = results.iter().any(|result| result.error.is_some());
    Ok(if failed {
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    })
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
        GridReport::SideBySide { told, .. } => told.clone(),
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
    eprintln!("{}{}", if moving { "\r\x1b[K" } else { "" }, context.say(&text));
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
    let groups = grid::over_seeds(results, select);
    let seeds = match groups.is_empty() {
        true => String::new(),
        false => format!("\n{}", seeds_table(&groups, select, context)),
    };
    format!(
        "{}\n{title}\n{}{seeds}",
        points_table(grid, &sorted, select, &best, context),
        text::dots(&named, width, |value| format!("{value:.6}"))
    )
}

fn points_table(
    grid: &Grid,
    sorted: &[&PointResult],
    select: Select,
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
fn seeds_table(groups: &[Group], select: Select, context: &Context) -> String {
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
            found.map_or_else(
                || "-".to_owned(),
                |(_, mean, deviation)| format!("{mean:.4} ± {deviation:.4}"),
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
