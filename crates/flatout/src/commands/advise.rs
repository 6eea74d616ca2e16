//! `flatout advise`

use crate::context::Context;
use crate::output::write_stdout;
use clap::{Args, ValueEnum};
use flatout_core::{Failure, Message, Result, message};
use flatout_record as record;
use flatout_report::text::{self, Align, Paint, Table};
use flatout_tune::advise::{self, Advice, Form, Given, Model, Question};
use flatout_tune::config_file::ConfigFile;
use flatout_tune::machine::Machine;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout advise --model lstm --samples 750000    starting values for this machine, with reasons
  flatout advise --format loader                  the same as a DataLoader call
  flatout advise --from config.yaml               only the differences from a configuration file
  flatout advise --from last                      only the differences from a recorded run
  flatout advise --gpu A100 --gpus 4 --cpus 64    for another machine";

#[derive(Args)]
pub struct Arguments {
    /// What is trained: lstm, mlp, cnn, transformer, resnet50 …
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Number of samples in the dataset
    #[arg(long, value_name = "N")]
    samples: Option<u64>,
    /// A configuration file, a run's folder or name, or `last`: print only the differences
    #[arg(long, value_name = "CONFIG|RUN")]
    from: Option<String>,
    /// How to print the values
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Assume this GPU instead of the one in this machine
    #[arg(long, value_name = "NAME")]
    gpu: Option<String>,
    /// Number of GPUs
    #[arg(long, value_name = "N", default_value_t = 1, requires = "gpu")]
    gpus: usize,
    /// Assume this many usable CPUs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    cpus: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    Table,
    Flags,
    Yaml,
    Python,
    Loader,
    Json,
}

pub fn about() -> Message {
    message!(en: "Starting values for this machine, each with its reason", zh: "本机的起始配置，每一项都附理由")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let machine = machine(&arguments)?;
    let question = Question {
        model: model(arguments.model.as_deref())?,
        samples: arguments.samples,
    };
    let all = advise::advise(&machine, &question);
    let rows: Vec<(Advice, Option<String>)> = match &arguments.from {
        Some(from) => advise::differences(all, &given(from)?),
        None => all.into_iter().map(|advice| (advice, None)).collect(),
    };
    let advice: Vec<Advice> = rows.iter().map(|(advice, _)| advice.clone()).collect();
    let format = if arguments.json {
        Format::Json
    } else {
        arguments.format
    };
    let form = match format {
        Format::Table if rows.is_empty() => {
            let same = message!(en: "no difference from your settings", zh: "与你现有的配置没有差别");
            eprintln!("{}", context.say(&same));
            return Ok(ExitCode::SUCCESS);
        }
        Format::Table => {
            write_stdout(table(&rows, arguments.from.is_some(), context).as_bytes());
            return Ok(ExitCode::SUCCESS);
        }
        Format::Json => {
            write_stdout(as_json(&rows, context).as_bytes());
            return Ok(ExitCode::SUCCESS);
        }
        Format::Flags => Form::Flags,
        Format::Yaml => Form::Yaml,
        Format::Python => Form::Python,
        Format::Loader => Form::Loader,
    };
    write_stdout(advise::render(&advice, form, context.language).as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn machine(arguments: &Arguments) -> Result<Machine> {
    let mut machine = Machine::here();
    if let Some(name) = &arguments.gpu {
        machine = machine.with_gpu(name, arguments.gpus)?;
    }
    Ok(match arguments.cpus {
        Some(cpus) => machine.with_cpus(cpus as usize),
        None => machine,
    })
}

fn model(name: Option<&str>) -> Result<Option<Model>> {
    let Some(name) = name else { return Ok(None) };
    Model::from_name(name).map(Some).ok_or_else(|| {
        Failure::new(message!(en: "no advice for a model called `{name}`", zh: "没有针对模型 `{name}` 的建议"))
            .with_hint(message!(en: "give its kind: lstm, mlp, cnn or transformer", zh: "请给出类型：lstm、mlp、cnn 或 transformer"))
    })
}

/// A file is a configuration, anything else names a run.
fn given(from: &str) -> Result<Given> {
    let path = Path::new(from);
    let given = if ConfigFile::is_meant_by(path) {
        Given::from_file(path)?
    } else {
        Given::from_run(&record::find(from)?.load())
    };
    if given.is_empty() {
        return Err(Failure::new(message!(en: "`{from}` sets none of the values that flatout advises on", zh: "`{from}` 中没有建议所涉及的任何设置"))
            .with_hint(message!(en: "recognized names: batch_size, num_workers, amp, pin_memory …", zh: "查找的名字：batch_size、num_workers、amp、pin_memory……")));
    }
    Ok(given)
}

fn table(rows: &[(Advice, Option<String>)], differences: bool, context: &Context) -> String {
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Left]);
    for (advice, has) in rows {
        let unset = message!(en: "not set", zh: "未设置");
        let has = has.as_deref().unwrap_or_else(|| context.say(&unset));
        let value = if differences {
            format!("{has} → {}", advice.value)
        } else {
            advice.value.clone()
        };
        table.row([
            advice.name(),
            &text::width::printable(&value),
            context.say(&advice.reason),
        ]);
    }
    let next = message!(
        en: "These are rules of thumb within this machine's limits; `flatout tune -- COMMAND` measures.",
        zh: "以上为经验规则与本机限制；`flatout tune -- 命令` 会实际测量。"
    );
    format!(
        "{}\n{}\n",
        table.render(Paint {
            colour: context.colour_on_stdout()
        }),
        context.say(&next)
    )
}

fn as_json(rows: &[(Advice, Option<String>)], context: &Context) -> String {
    let rows: Vec<_> = rows
        .iter()
        .map(|(advice, has)| json!({"setting": advice.key, "name": advice.name(), "value": advice.value, "has": has, "reason": context.say(&advice.reason)}))
        .collect();
    format!(
        "{}\n",
        serde_json::to_string_pretty(&json!({"schema": 1, "advice": rows})).unwrap_or_default()
    )
}
