//! `flatout bench`

use crate::context::Context;
use crate::output::write_stdout;
use clap::Args;
use flatout_core::cpus::UsableCpus;
use flatout_core::error::FileError;
use flatout_core::files::write_atomically;
use flatout_core::{Explain, Message, Result, message, units};
use flatout_engine::ceilings::{self, Ceiling, gpu};
use flatout_report::text::{Align, Paint, Table, Tone, width};
use flatout_telemetry::doctor;
use flatout_tune::ceilings::{Compared, Load, Watch, compare};
use flatout_tune::gpus;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout bench                     peak performance of this machine, in under a minute
  flatout bench --path data/        also how fast these files can be read, cold and warm
  flatout bench --json

The result is stored as machine.json in $FLATOUT_HOME, or in .flatout.";

#[derive(Args)]
pub struct Arguments {
    /// Measure how fast these files, or the files in this folder, can be read
    #[arg(long, value_name = "PATH")]
    path: Option<PathBuf>,
    /// Do not measure the GPUs
    #[arg(long)]
    no_gpu: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub fn about() -> Message {
    message!(en: "Measure the peak performance of this machine", zh: "测量本机的性能上限")
}

/// Everything that was measured.
#[derive(Default)]
struct Measured {
    rows: Vec<(Ceiling, Option<Compared>)>,
    notes: Vec<Message>,
    cards: Vec<String>,
    load: Load,
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    if let Some(path) = &arguments.path {
        // Not only once everything else was measured.
        std::fs::metadata(path).map_err(|source| FileError::reading(path, source))?;
    }
    let cpus = UsableCpus::here();
    let mut measured = Measured::default();
    let tell = |what: Message| eprintln!("{}", context.say(&what));
    tell(message!(en: "measuring the CPUs …", zh: "正在测量 CPU ……"));
    measured.rows.extend(
        ceilings::cpu::measure(cpus.count())?
            .into_iter()
            .map(|one| (one, None)),
    );
    tell(message!(en: "measuring memory …", zh: "正在测量内存 ……"));
    measured.rows.extend(
        ceilings::memory::measure(cpus.count())
            .into_iter()
            .map(|one| (one, None)),
    );
    if let Some(path) = &arguments.path {
        tell(message!(en: "measuring the disk …", zh: "正在测量磁盘 ……"));
        let found = ceilings::disk::measure(path).map_err(|source| FileError::reading(path, source))?;
        if found.is_empty() {
            measured.notes.push(message!(en: "less than 1 MB to read: the disk was not measured", zh: "可读内容不足 1 MB：未测量磁盘"));
        }
        measured.rows.extend(found.into_iter().map(|one| (one, None)));
    }
    if !arguments.no_gpu {
        cards(&mut measured, &tell);
    }
    page_cache(&mut measured);
    let whole = as_json(&measured, &cpus, context);
    keep(&whole)?;
    let shown = if arguments.json {
        whole
    } else {
        table(&measured, &cpus, context)
    };
    write_stdout(shown.as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn cards(measured: &mut Measured, tell: &dyn Fn(Message)) {
    let watch = Watch::begin();
    for ordinal in 0.. {
        let card = match gpu::open(ordinal) {
            Ok(card) => card,
            Err(error) if ordinal == 0 => {
                let why = error.message();
                measured.notes.push(Message {
                    en: format!("no GPU measured: {}", why.en),
                    zh: format!("未测量 GPU：{}", why.zh),
                });
                break;
            }
            Err(_) => break,
        };
        let figures = gpus::find(card.name());
        measured.cards.push(card.name().to_owned());
        for (part, measure) in gpu::PARTS {
            tell(message!(en: "GPU {ordinal}: measuring {part} …", zh: "GPU {ordinal}：正在测量 {part} ……"));
            match measure(&card, ordinal) {
                Ok(found) => {
                    for one in found {
                        let what = one.id.rsplit('.').next().unwrap_or_default().to_owned();
                        let compared = figures.and_then(|figures| compare(figures, &what, one.value));
                        measured.rows.push((one, compared));
                    }
                }
                Err(error) => measured.notes.push(error.message()),
            }
        }
    }
    measured.load = watch.end();
}

/// How much of the files the kernel can keep.
fn page_cache(measured: &mut Measured) {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    for (name, id) in [
        ("Cached:", "page-cache.now"),
        ("MemAvailable:", "page-cache.most"),
    ] {
        let kilobytes = text.lines().find_map(|line| {
            line.strip_prefix(name)?
                .split_whitespace()
                .next()?
                .parse::<f64>()
                .ok()
        });
        if let Some(kilobytes) = kilobytes {
            measured.rows.push((
                Ceiling {
                    id: id.into(),
                    value: kilobytes / 1048576.0,
                    unit: "GiB".into(),
                },
                None,
            ));
        }
    }
}

fn name(id: &str) -> Message {
    let end = id
        .strip_prefix("gpu.")
        .map_or(id, |rest| rest.split_once('.').map_or(rest, |(_, end)| end));
    let card = id
        .strip_prefix("gpu.")
        .and_then(|rest| rest.split('.').next())
        .map(|ordinal| format!("GPU {ordinal}: "))
        .unwrap_or_default();
    let words = match end {
        "cpu.usable" => message!(en: "CPUs available", zh: "实际可用 CPU"),
        "cpu.f32" => message!(en: "f32 matmul", zh: "f32 矩阵乘法"),
        "memory.copy" => message!(en: "memory copy", zh: "内存拷贝"),
        "disk.cold" => message!(en: "disk, uncached", zh: "磁盘（未缓存）"),
        "disk.warm" => message!(en: "disk, cached", zh: "磁盘（已缓存）"),
        "disk.files" => message!(en: "files read", zh: "读取的文件数"),
        "page-cache.now" => message!(en: "page cache now", zh: "当前页缓存"),
        "page-cache.most" => message!(en: "page cache, maximum", zh: "页缓存上限"),
        "memory" => message!(en: "GPU memory", zh: "显存带宽"),
        "copy.pageable" => message!(en: "host to GPU, pageable", zh: "主机到 GPU（非锁页）"),
        "copy.pinned" => message!(en: "host to GPU, pinned", zh: "主机到 GPU（锁页）"),
        "launch" => message!(en: "kernel launch", zh: "单次 kernel 下发"),
        "f32" | "tf32" | "bf16" | "f16" => message!(en: "{end} matmul", zh: "{end} 矩阵乘法"),
        other => Message::verbatim(other),
    };
    Message {
        en: format!("{card}{}", words.en),
        zh: format!("{card}{}", words.zh),
    }
}

fn table(measured: &Measured, cpus: &UsableCpus, context: &Context) -> String {
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Left, Align::Left]);
    for (ceiling, compared) in &measured.rows {
        let name = name(&ceiling.id);
        let (beside, tone) = match compared {
            Some(compared) => {
                let (share, vendor) = (
                    units::percent(compared.share),
                    units::significant(compared.vendor),
                );
                let words =
                    message!(en: "{share} of the vendor's {vendor}", zh: "厂商标称 {vendor} 的 {share}");
                let slow = if compared.slow {
                    context.say(&message!(en: " – slow", zh: "——偏慢")).to_owned()
                } else {
                    String::new()
                };
                (
                    format!("{}{slow}", context.say(&words)),
                    compared.slow.then_some(Tone::Warning),
                )
            }
            None if ceiling.id == "cpu.usable" => {
                let (allowed, online) = (cpus.count(), cpus.online);
                (context.say(&message!(en: "{allowed} allowed, {online} online", zh: "允许 {allowed} 个，共 {online} 个")).to_owned(), None)
            }
            None => (String::new(), None),
        };
        let value = units::significant(ceiling.value);
        table.toned_row([
            (context.say(&name), None),
            (&value, None),
            (&ceiling.unit, None),
            (&beside, tone),
        ]);
    }
    let mut text = measured
        .cards
        .iter()
        .map(|card| format!("{card}\n"))
        .collect::<String>();
    text += &table.render(Paint {
        colour: context.colour_on_stdout(),
    });
    for note in measured.load.words().iter().chain(&measured.notes) {
        text += &format!("{}\n", context.say(note));
    }
    text + &state(context)
}

/// As `flatout doctor` sees the machine.
fn state(context: &Context) -> String {
    let mut text = format!(
        "\n{}\n",
        context.say(&message!(en: "State, as in `flatout doctor`:", zh: "状态（同 `flatout doctor`）："))
    );
    for check in doctor::examine() {
        text += &format!("  {}\n", width::printable(context.say(&check.text)));
    }
    text
}

fn as_json(measured: &Measured, cpus: &UsableCpus, context: &Context) -> String {
    let rows: Vec<_> = measured
        .rows
        .iter()
        .map(|(ceiling, compared)| json!({"id": ceiling.id, "value": ceiling.value, "unit": ceiling.unit, "compared": compared}))
        .collect();
    let state: Vec<_> = doctor::examine()
        .iter()
        .map(|check| json!({"id": check.id, "health": check.health, "text": context.say(&check.text)}))
        .collect();
    let notes: Vec<&str> = measured.notes.iter().map(|note| context.say(note)).collect();
    let whole = json!({"schema": 1, "cpus": cpus, "gpus": measured.cards, "ceilings": rows, "load": measured.load, "notes": notes, "state": state});
    format!("{}\n", serde_json::to_string_pretty(&whole).unwrap_or_default())
}

/// For later: `$FLATOUT_HOME/machine.json`.
fn keep(text: &str) -> Result<()> {
    let home = std::env::var_os("FLATOUT_HOME").map_or_else(|| PathBuf::from(".flatout"), PathBuf::from);
    std::fs::create_dir_all(&home).map_err(|source| FileError::writing(&home, source))?;
    flatout_record::hide_from_git(&home);
    write_atomically(&home.join("machine.json"), text.as_bytes())?;
    Ok(())
}
