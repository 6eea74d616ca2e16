//! Why advice, a check or a search could not be given.

use crate::trial::Outcome;
use flatout_core::error::FileError;
use flatout_core::{Explain, Message, explained, message};
use std::path::PathBuf;

#[derive(Debug)]
pub enum TuneError {
    File(FileError),
    /// A configuration file that is not what its name says.
    Syntax {
        path: PathBuf,
        text: String,
    },
    /// Not a format that can be read.
    Format {
        path: PathBuf,
    },
    UnknownGpu {
        name: String,
        known: String,
    },
    UnknownKnob {
        name: String,
    },
    /// A knob's range that cannot be.
    Range {
        knob: String,
        range: String,
    },
    Objective {
        word: String,
    },
    NoPrice,
    /// The objective is energy, and nothing tells it.
    NoEnergy,
    /// The program as it is could not be measured.
    Start(Box<Outcome>),
    Interrupted,
    /// Another search runs.
    Busy {
        process: String,
    },
}

impl Explain for TuneError {
    fn message(&self) -> Message {
        match self {
            Self::File(error) => error.message(),
            Self::Syntax { path, text } => {
                let path = path.display();
                message!(en: "`{path}` cannot be read: {text}", zh: "无法解析 `{path}`：{text}")
            }
            Self::Format { path } => {
                let path = path.display();
                message!(en: "`{path}` is neither YAML, JSON nor TOML", zh: "`{path}` 不是 YAML、JSON 或 TOML")
            }
            Self::UnknownGpu { name, .. } => {
                message!(en: "no data for a GPU named `{name}`", zh: "没有名为 `{name}` 的 GPU 的数据")
            }
            Self::UnknownKnob { name } => {
                message!(en: "unknown knob: `{name}`", zh: "没有名为 `{name}` 的可调项")
            }
            Self::Range { knob, range } => {
                message!(en: "`{range}` is not a valid range for {knob}", zh: "`{range}` 不是 {knob} 的有效范围")
            }
            Self::Objective { word } => {
                message!(en: "unknown objective: `{word}`", zh: "没有名为 `{word}` 的目标")
            }
            Self::NoPrice => message!(en: "--objective cost needs a price", zh: "以成本为目标需要给出价格"),
            Self::NoEnergy => {
                message!(en: "energy cannot be measured: no GPU here has an energy counter", zh: "无法测量能耗：没有 GPU 提供能耗计数")
            }
            Self::Start(outcome) => start(outcome),
            Self::Interrupted => {
                message!(en: "interrupted before the first trial ended", zh: "第一次试验结束前被中断")
            }
            Self::Busy { process } => {
                message!(en: "another `flatout tune` is running (process {process})", zh: "另一个 `flatout tune` 正在运行（进程 {process}）")
            }
        }
    }

    fn hint(&self) -> Option<Message> {
        match self {
            Self::UnknownGpu { known, .. } => {
                Some(message!(en: "known GPUs: {known}", zh: "已知的 GPU：{known}"))
            }
            Self::UnknownKnob { .. } => {
                let known = crate::knobs::KNOBS
                    .iter()
                    .flat_map(|knob| knob.keys)
                    .copied()
                    .collect::<Vec<_>>()
                    .join(", ");
                Some(message!(en: "available knobs: {known}", zh: "可调项有：{known}"))
            }
            Self::Range { .. } => Some(
                message!(en: "write the range as lowest..highest: --knobs batch_size=32..4096", zh: "请写成 最小..最大：--knobs batch_size=32..4096"),
            ),
            Self::Objective { .. } => Some(
                message!(en: "available objectives: samples/s, energy, cost", zh: "可用的目标：samples/s、energy、cost"),
            ),
            Self::NoPrice => Some(
                message!(en: "give the price per hour: --objective cost --price 2.50", zh: "请给出每小时价格：--objective cost --price 2.50"),
            ),
            Self::NoEnergy => {
                Some(message!(en: "use --objective samples/s", zh: "请使用 --objective samples/s"))
            }
            Self::Start(outcome) => start_hint(outcome),
            Self::Busy { .. } => Some(
                message!(en: "two searches would disturb each other's measurements; wait until the other one \
                ends", zh: "两个搜索会互相干扰测量；请等它结束"),
            ),
            Self::Format { .. } => Some(message!(
                en: "pass a .yaml, .json or .toml file, or the name of a run (see `flatout runs`)",
                zh: "请给出 .yaml、.json 或 .toml 文件，或运行记录的名字（flatout runs）"
            )),
            _ => None,
        }
    }

    fn cause(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(error) => error.cause(),
            _ => None,
        }
    }
}
explained!(TuneError);

fn start(outcome: &Outcome) -> Message {
    match outcome {
        Outcome::Failed { how, tail } => Message {
            en: format!("the program fails on its own: {}{}", how.en, last_lines(tail)),
            zh: format!("程序本身就运行失败：{}{}", how.zh, last_lines(tail)),
        },
        Outcome::TooShort { steps: 0, tail } => {
            let tail = last_lines(tail);
            message!(en: "the program ended without a training step{tail}", zh: "程序已结束，但没有看到任何训练步{tail}")
        }
        Outcome::TooShort { steps, tail } => {
            let tail = last_lines(tail);
            message!(en: "the program ended after {steps} steps, too few to measure{tail}", zh: "程序运行 {steps} 步后就结束，来不及测量{tail}")
        }
        Outcome::Hung { seconds, tail } => {
            let tail = last_lines(tail);
            message!(en: "no training step for {seconds:.0} s; the program was stopped{tail}", zh: "{seconds:.0} 秒内没有任何训练步；程序已被停止{tail}")
        }
        Outcome::OutOfMemory { message, .. } => {
            message!(en: "the program runs out of memory on its own, and its batch size cannot be halved: \
            {message}", zh: "程序本身就内存不足，且无法减半 batch：{message}")
        }
        Outcome::Measured(_) | Outcome::Interrupted => message!(en: "interrupted", zh: "已中断"),
    }
}

fn start_hint(outcome: &Outcome) -> Option<Message> {
    match outcome {
        Outcome::TooShort { steps: 0, .. } | Outcome::Hung { .. } => Some(message!(
            en: "flatout sees steps of PyTorch optimizers and calls of flatout.step(); check with `flatout \
            run -- COMMAND`, or give it more time with --patience",
            zh: "训练步来自 PyTorch 优化器或 flatout.step()；请用 `flatout run -- 命令` 确认，或用 --patience 给出更长的时间"
        )),
        Outcome::TooShort { .. } => Some(
            message!(en: "train longer: more epochs or more data", zh: "请让它训练更久：更多轮数或更多数据"),
        ),
        Outcome::Failed { .. } => {
            Some(message!(en: "run the command without flatout first", zh: "请先单独运行该命令"))
        }
        _ => None,
    }
}

/// The last lines of what a program printed, set in below the message.
fn last_lines(tail: &str) -> String {
    let lines: Vec<&str> = tail
        .lines()
        .rev()
        .filter(|line| !line.trim().is_empty())
        .take(6)
        .collect();
    lines
        .iter()
        .rev()
        .map(|line| format!("\n    {}", printable(line)))
        .collect()
}

/// A program may print anything; nothing of it may reach the terminal as a command.
fn printable(line: &str) -> String {
    line.chars()
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect()
}

impl From<FileError> for TuneError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}
