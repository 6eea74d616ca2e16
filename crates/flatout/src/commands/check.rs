//! `flatout check CONFIG|RUN|-- COMMAND`

use crate::context::Context;
use crate::output::write_stdout;
use clap::Args;
use flatout_core::{Failure, Finding, Message, Result, message};
use flatout_lint::project::Project;
use flatout_lint::{Settings, written};
use flatout_record::{self as record, Sample};
use flatout_report::text::{Align, Paint, Table, Tone, width};
use flatout_telemetry::{Sampler, SamplerOptions};
use flatout_train::Configuration;
use flatout_train::settings::{self, Values};
use flatout_tune::advise::Given;
use flatout_tune::check::{self, Before, Item, Limits, Status};
use flatout_tune::config_file::ConfigFile;
use flatout_tune::machine::Machine;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

pub const EXAMPLES: &str = "Examples:
  flatout check config.yaml                           before training: settings, data, GPU, disk
  flatout check -- python train.py --num-workers 40   the same for a command: flags, --config and source
  flatout check last                                  after training: utilization, temperature, memory, epochs
  flatout check last --against baseline               also whether it is slower than an earlier run
  flatout check config.yaml && sbatch train.sh        submit only if all checks pass

Limits are in the [check] section of the nearest flatout.toml. Exits 1 if an item fails.";

#[derive(Args)]
pub struct Arguments {
    /// A configuration file, or a run's folder, name or `last`
    #[arg(value_name = "CONFIG|RUN", required_unless_present = "command")]
    what: Option<String>,
    /// The training data [default: from the configuration]
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// Read limits from this file
    #[arg(long, value_name = "FILE")]
    limits: Option<PathBuf>,
    /// Also check that the run is not slower than this one, beyond noise
    #[arg(long, value_name = "RUN")]
    against: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// The command to check
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub fn about() -> Message {
    message!(en: "Run a checklist before training, or on a finished run", zh: "训练前或对已完成的运行做清单检查")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let limits = match &arguments.limits {
        Some(path) => Limits::read(path)?,
        None => Limits::discover(Path::new("."))?,
    };
    let items = match &arguments.what {
        Some(named) if !ConfigFile::is_meant_by(Path::new(named)) => {
            let data = record::find(named)?.load();
            let mut items = check::after(&data, &limits);
            if let Some(baseline) = &arguments.against {
                items.push(check::against(&data, &record::find(baseline)?.load(), &limits));
            }
            items
        }
        _ if arguments.against.is_some() => {
            return Err(Failure::new(
                message!(en: "--against compares two runs: also name the run to check", zh: "--against 比较两次运行：请指定要检查的运行"),
            ));
        }
        Some(file) => before(&arguments, Some(Path::new(file)), &limits)?,
        None => before(&arguments, None, &limits)?,
    };
    let shown = if arguments.json {
        as_json(&items, context)
    } else {
        table(&items, context)
    };
    write_stdout(shown.as_bytes());
    Ok(ExitCode::from(u8::from(check::worst(&items) == Status::Fail)))
}

fn before(arguments: &Arguments, config: Option<&Path>, limits: &Limits) -> Result<Vec<Item>> {
    let flags = flags(&arguments.command);
    let named = flags
        .iter()
        .find(|(name, _)| name == "config")
        .map(|(_, value)| PathBuf::from(value));
    let config = config.map(Path::to_owned).or(named);
    let mut given = match &config {
        Some(path) => Given::from_file(path)?,
        None => Given::default(),
    };
    // The command overrides its configuration.
    given.overlay(&flags);
    let data = arguments
        .data
        .clone()
        .or_else(|| data_in(config.as_deref(), &flags));
    let source = source(config.as_deref(), &arguments.command)?;
    given.underlay(source.written.as_deref().unwrap_or_default());
    let sample = sample();
    let known = Before {
        given: &given,
        machine: &Machine::here(),
        sample: &sample,
        source: &source.findings,
        script: source.written.is_some(),
        data: data.as_deref(),
        folder: Path::new("."),
        command: &arguments.command,
    };
    let mut items = check::before(&known, limits);
    items.extend(config.iter().flat_map(|path| refusals(path, &arguments.command)));
    Ok(items)
}

/// What `flatout train --config` would refuse in a file that is meant for it: named in its command, or with mostly its settings and its data.
fn refusals(path: &Path, command: &[String]) -> Vec<Item> {
    let own = match command {
        [] => {
            let keys = Configuration::known_keys(path);
            keys.is_some_and(|keys| keys.are_settings())
        }
        [program, action, ..] => {
            let is_flatout = Path::new(program)
                .file_stem()
                .is_some_and(|name| name == "flatout");
            is_flatout && ["train", "grid"].contains(&action.as_str())
        }
        _ => false,
    };
    let is_yaml = path.extension().is_some_and(|end| end == "yaml" || end == "yml");
    if !own || !is_yaml {
        return Vec::new();
    }
    // Lists are what a grid combines.
    let lists = std::fs::read_to_string(path)
        .ok()
        .and_then(|text| Configuration::lists(path, &text, &Values::new()).ok())
        .unwrap_or_default();
    let first = lists
        .into_iter()
        .filter_map(|(name, values)| Some((name, values.into_iter().next()?)));
    let typed = flags(command)
        .into_iter()
        .filter_map(|(name, value)| Some((settings::find(&name)?.name, value)));
    let mistakes = Configuration::mistakes(path, &first.chain(typed).collect());
    let what = || message!(en: "settings of `flatout train`", zh: "flatout train 的设置");
    let item = |status: Status, why: Option<Message>| Item {
        id: "configuration",
        status,
        what: what(),
        found: String::new(),
        limit: String::new(),
        why,
    };
    if mistakes.is_empty() {
        return vec![item(Status::Pass, None)];
    }
    mistakes
        .into_iter()
        .map(|why| item(Status::Fail, Some(why)))
        .collect()
}

/// `--num-workers 40`, `--num-workers=40`, `--amp`.
fn flags(command: &[String]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (index, word) in command.iter().enumerate() {
        let Some(name) = word.strip_prefix("--").filter(|name| !name.is_empty()) else {
            continue;
        };
        let following = command.get(index + 1).filter(|next| !next.starts_with("--"));
        let (name, value) = match name.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            None => (name, following.cloned().unwrap_or_else(|| "on".into())),
        };
        all.push((name.to_owned(), value));
    }
    all
}

const DATA_NAMES: [&str; 6] = [
    "data",
    "data_dir",
    "data_path",
    "dataset_path",
    "data_root",
    "train_data",
];
/// In a section of these names, such a value is the data as well.
const DATA_SECTIONS: [&str; 2] = ["data", "dataset"];
const PLACE_NAMES: [&str; 5] = ["path", "dir", "root", "folder", "file"];

fn data_in(config: Option<&Path>, flags: &[(String, String)]) -> Option<PathBuf> {
    let is_data = |name: &str| DATA_NAMES.contains(&name.replace('-', "_").as_str());
    let flag = flags
        .iter()
        .find(|(name, _)| is_data(name))
        .map(|(_, value)| PathBuf::from(value));
    flag.or_else(|| {
        let file = ConfigFile::read(config?).ok()?;
        let in_section = |path: &str| {
            let (section, name) = path.rsplit_once('.').unwrap_or_default();
            DATA_SECTIONS.contains(&section.rsplit('.').next().unwrap_or_default())
                && PLACE_NAMES.contains(&name)
        };
        file.values
            .iter()
            .find(|value| is_data(value.name()) || in_section(&value.path))
            .map(|value| PathBuf::from(&value.text))
    })
}

/// Settings from the program's source.
#[derive(Default)]
struct Source {
    /// About its settings.
    findings: Vec<Finding>,
    /// Those written in the script, if there is one.
    written: Option<Vec<(String, String)>>,
}

/// Of the folder of the script, or the one that the configuration is used from.
fn source(config: Option<&Path>, command: &[String]) -> Result<Source> {
    let is_script = |word: &String| {
        Path::new(word).extension().is_some_and(|end| end == "py") && Path::new(word).is_file()
    };
    let at = command.iter().position(is_script);
    let script = at.map(|at| Path::new(&command[at]));
    let folder = match script {
        Some(script) => script
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new(".")),
        None => Path::new("."),
    };
    if script.is_none() && !has_python(folder) {
        return Ok(Source::default());
    }
    let paths: Vec<PathBuf> = [Some(folder), config]
        .into_iter()
        .flatten()
        .map(Path::to_owned)
        .collect();
    let outcome = flatout_lint::lint(&paths, &Settings::default()).map_err(Failure::from)?;
    let has_arguments = at.is_some_and(|at| at + 1 < command.len());
    let written = script.map(|script| written::loader_settings(&outcome.project, script, has_arguments));
    let findings = outcome.found.into_iter().map(|one| one.finding);
    let findings = findings
        .filter(|finding| concerns(finding, &outcome.project, config, script))
        .collect();
    Ok(Source { findings, written })
}

/// Whether a finding is about this configuration and the program that this script belongs to: others may be in the same folder.
fn concerns(finding: &Finding, project: &Project, config: Option<&Path>, script: Option<&Path>) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let path_of = |id| real(&project.module(id).source.path);
    let (code, files): (Vec<PathBuf>, Vec<PathBuf>) = finding
        .places
        .iter()
        .map(|place| real(Path::new(&place.file)))
        .partition(|file| file.extension().is_some_and(|end| end == "py"));
    let configured = files.is_empty() || config.is_none_or(|config| files.contains(&real(config)));
    let own = script.and_then(|script| project.module_at(script));
    let programmed = code.is_empty()
        || own.is_none_or(|own| project.program(own).iter().any(|id| code.contains(&path_of(*id))));
    configured && programmed
}

fn has_python(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .into_iter()
        .any(|entry| entry.path().extension().is_some_and(|end| end == "py"))
}

/// The GPUs now.
fn sample() -> Sample {
    let options = SamplerOptions {
        interval: Duration::from_millis(100),
        host: false,
        ..SamplerOptions::default()
    };
    let Ok(mut sampler) = Sampler::start(&options) else {
        return Sample::default();
    };
    sampler.gpus(Duration::from_secs(3));
    sampler.wait();
    sampler.wait().sample
}

fn mark(status: Status) -> (Message, Tone) {
    match status {
        Status::Pass => (message!(en: "pass", zh: "通过"), Tone::Good),
        Status::Skipped => (message!(en: "skipped", zh: "跳过"), Tone::Quiet),
        Status::Warn => (message!(en: "warn", zh: "警告"), Tone::Warning),
        Status::Fail => (message!(en: "fail", zh: "不通过"), Tone::Bad),
    }
}

fn table(items: &[Item], context: &Context) -> String {
    let mut table = Table::new(&[Align::Left, Align::Left, Align::Right, Align::Left, Align::Left]);
    for item in items {
        let (word, tone) = mark(item.status);
        let why = item.why.as_ref().map(|why| context.say(why)).unwrap_or_default();
        let cells = [
            context.say(&word),
            context.say(&item.what),
            &item.found,
            &item.limit,
            why,
        ]
        .map(width::printable);
        let [word, what, found, limit, why] = &cells;
        table.toned_row([
            (word, Some(tone)),
            (what, None),
            (found, None),
            (limit, Some(Tone::Quiet)),
            (why, None),
        ]);
    }
    table.render(Paint {
        colour: context.colour_on_stdout(),
    })
}

fn as_json(items: &[Item], context: &Context) -> String {
    let rows: Vec<_> = items
        .iter()
        .map(|item| json!({"id": item.id, "status": item.status, "what": context.say(&item.what), "found": item.found, "limit": item.limit, "why": item.why.as_ref().map(|why| context.say(why))}))
        .collect();
    let whole = json!({"schema": 1, "status": check::worst(items), "items": rows});
    format!("{}\n", serde_json::to_string_pretty(&whole).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_as_people_write_them() {
        let words = [
            "python",
            "train.py",
            "--num-workers",
            "40",
            "--amp",
            "--batch-size=256",
        ]
        .map(str::to_owned);
        let found = flags(&words);
        assert_eq!(
            found,
            [
                ("num-workers".into(), "40".into()),
                ("amp".into(), "on".into()),
                ("batch-size".into(), "256".into())
            ]
        );
    }
}
