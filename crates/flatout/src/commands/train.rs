//! `flatout train`

use crate::context::Context;
use crate::output::write_stdout;
use crate::tracking::{Tracker, Trackers};
use crate::training;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use flatout_core::text::clear_line;
use flatout_core::{Explain, Message, Result, message, units};
use flatout_run::trial;
use flatout_train::settings::Values;
use flatout_train::{Configuration, Report, Trainer, checkpoint, trainer};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout generate stocks --out data/stocks
  flatout train --data data/stocks --model-type lstm --epochs 5 --output-dir out/stocks
  flatout train --data data/stocks --model-type transformer --num-heads 4
  flatout train --config examples/stock-lstm.yaml --batch-size 1024
  flatout train --data logs/click.csv --label click --missing mean --bad-rows skip --column-type hour=category
  flatout train --resume out/stocks --epochs 20
  flatout diagnose out/stocks";

/// Flags come from the settings' own table; what is not given there is left to file and defaults.
pub struct Arguments {
    values: Values,
    config: Option<PathBuf>,
    json: bool,
    plain: bool,
    log_to: Vec<Tracker>,
}

pub fn about() -> Message {
    message!(en: "Train a model at the speed of the hardware", zh: "以硬件极限速度训练模型")
}

impl Args for Arguments {
    fn augment_args(mut command: Command) -> Command {
        command = training::settings_arguments(command);
        let file = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .help("YAML file with settings; flags win over it");
        let json = Arg::new("json")
            .long("json")
            .action(ArgAction::SetTrue)
            .help("Print one JSON object per line on stdout");
        let plain = Arg::new("plain")
            .long("plain")
            .action(ArgAction::SetTrue)
            .help("Lines instead of a moving line, also on a terminal");
        let log_to = Arg::new("log_to")
            .long("log-to")
            .value_name("TRACKERS")
            .value_parser(clap::value_parser!(Tracker))
            .value_delimiter(',')
            .help(
                "Also log metrics, findings and telemetry to these trackers at the end, separated by commas",
            );
        command.arg(file).arg(json).arg(plain).arg(log_to)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Arguments {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        Ok(Self {
            values: training::given_settings(matches),
            config: matches.get_one::<String>("config").map(PathBuf::from),
            json: matches.get_flag("json"),
            plain: matches.get_flag("plain"),
            log_to: matches
                .get_many("log_to")
                .into_iter()
                .flatten()
                .copied()
                .collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let mut configuration = configuration(&arguments)?;
    let is_trial = std::env::var_os(trial::ENVIRONMENT).is_some();
    if is_trial {
        configuration.go_on();
    }
    // Before hours of training: what is missing can still be installed.
    let trackers = Trackers::check(&arguments.log_to, &[], context);
    let interrupted = flatout_core::interrupt::flag();
    let moving = std::io::stderr().is_terminal() && !arguments.plain && !arguments.json;
    let output = configuration.settings.output_dir.clone();
    let mut show = |report: &Report| {
        if let (Report::Start { .. }, false) = (report, is_trial) {
            // Without it everything but `flatout runs` works.
            if let Err(error) = flatout_record::put_on_list(&flatout_record::runs_folder(), &output) {
                log::info!("not on the list of runs: {}", error.message().en);
            }
        }
        if arguments.json {
            write_stdout(format!("{}\n", serde_json::to_string(report).unwrap_or_default()).as_bytes());
        } else {
            training::show(report, context.language, moving);
        }
    };
    let outcome = Trainer::new(&configuration, interrupted, &mut show)?.run()?;
    if moving {
        // What is left of the moving line, and the terminal's own ^C.
        eprint!("{}", clear_line());
    }
    if arguments.json {
        let line = serde_json::json!({"event": "end", "schema": 1, "outcome": outcome});
        write_stdout(format!("{line}\n").as_bytes());
    } else if outcome.interrupted {
        eprintln!(
            "{}",
            trainer::resume_hint(&outcome.output_dir).get(context.language)
        );
    } else {
        let (time, folder) = (units::duration(outcome.seconds), outcome.output_dir.display());
        let text = match outcome.samples_s.map(units::count) {
            Some(rate) => {
                message!(en: "done in {time}, {rate} samples/s; checkpoints, metrics and the run record are in {folder}", zh: "完成，用时 {time}，{rate} 样本/秒；检查点、指标和运行记录位于 {folder}")
            }
            None => {
                message!(en: "nothing left to train: {folder} is at its last epoch; train longer with \
                --epochs N", zh: "没有需要继续的训练：{folder} 已到最后一轮；用 --epochs N 继续")
            }
        };
        eprintln!("{}", text.get(context.language));
    }
    if let Some(trackers) = trackers {
        trackers.log_training(&outcome.output_dir, context);
    }
    Ok(if outcome.interrupted {
        ExitCode::from(130)
    } else {
        ExitCode::SUCCESS
    })
}

/// The output folder of `flatout train` with these arguments; `None` where it would refuse them.
pub fn output_dir(arguments: &[String]) -> Option<PathBuf> {
    let command = Arguments::augment_args(Command::new("train").no_binary_name(true));
    let matches = command.try_get_matches_from(arguments).ok()?;
    let arguments = Arguments::from_arg_matches(&matches).ok()?;
    let configuration = configuration(&arguments).ok()?;
    Some(configuration.settings.output_dir)
}

/// A resumed training keeps its settings; flags override them.
fn configuration(arguments: &Arguments) -> Result<Configuration> {
    match (&arguments.config, arguments.values.get("resume")) {
        (None, Some(resume)) => {
            let path = checkpoint::find(resume.as_ref());
            let kept = checkpoint::describe(&path)?;
            Ok(Configuration::of(&path, &kept.configuration, &arguments.values)?)
        }
        (file, _) => Ok(Configuration::read(file.as_deref(), &arguments.values)?),
    }
}
