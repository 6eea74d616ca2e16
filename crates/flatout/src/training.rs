//! A training as a person sees it: its settings as flags, its reports as lines, and Ctrl-C as a wish to stop.

use clap::{Arg, ArgAction, ArgMatches, Command};
use flatout_core::text::clear_line;
use flatout_core::{Language, Message, message, units};
use flatout_report::text::terminal_columns;
use flatout_report::text::width::cut;
use flatout_train::settings::{self, Kind, Values};
use flatout_train::{Report, SETTINGS};

/// A flag for every setting.
pub fn settings_arguments(command: Command) -> Command {
    // As with argparse, the last of several counts; those that are lists are added up.
    let command = command.args_override_self(true).next_line_help(true);
    SETTINGS
        .iter()
        .fold(command, |command, setting| command.arg(argument(setting)))
}

/// The settings that were given as flags.
pub fn given_settings(matches: &ArgMatches) -> Values {
    let given = SETTINGS.iter().filter_map(|setting| {
        let words: Vec<&str> = matches
            .get_many::<String>(setting.name)?
            .map(String::as_str)
            .collect();
        Some((setting.name, words.join(",")))
    });
    given.collect()
}

fn argument(setting: &'static settings::Setting) -> Arg {
    let dashed = |name: &str| name.replace('_', "-");
    let mut aliases = Vec::new();
    for name in std::iter::once(&setting.name).chain(setting.aliases) {
        aliases.extend([dashed(name), (*name).to_owned()]);
    }
    let mut help = (setting.help)().en;
    if !setting.default.is_empty() {
        help += &format!(" [default: {}]", setting.default);
    }
    if setting.pointless.is_some() {
        help += " (accepted, not needed)";
    }
    let mut argument = Arg::new(setting.name)
        .long(dashed(setting.name))
        .aliases(aliases)
        .help(help);
    argument = match setting.kind {
        Kind::Flag | Kind::Amp => argument
            .num_args(0..=1)
            .default_missing_value("true")
            .value_name("VALUE"),
        Kind::Choice(allowed) => argument.value_name(allowed.join("|")),
        Kind::Count => argument.value_name("N").allow_hyphen_values(true),
        Kind::Real => argument.value_name("X").allow_hyphen_values(true),
        Kind::List(word) => argument.value_name(word).action(ArgAction::Append),
        Kind::Text => argument.value_name("VALUE"),
    };
    argument
}

/// A line for each report worth one; `moving` writes progress over itself.
pub fn show(report: &Report, language: Language, moving: bool) {
    let text = match report {
        Report::Start {
            device,
            model,
            parameters,
            samples,
            validation_samples,
            batch_size,
            micro_batch_size,
            steps_an_epoch,
            data_bytes,
            memory_bytes,
            seconds,
            notes,
            ..
        } => {
            for note in notes {
                eprintln!("{}", note.get(language));
            }
            let (parameters, samples, rest) = (
                units::count(*parameters as f64),
                units::count(*samples as f64),
                units::count(*validation_samples as f64),
            );
            let (data, memory, ready) = (
                units::bytes(*data_bytes as f64),
                units::bytes(*memory_bytes as f64),
                units::duration(*seconds),
            );
            let micro = if micro_batch_size == batch_size {
                String::new()
            } else {
                format!(
                    " ({micro_batch_size} × {})",
                    batch_size.div_ceil(*micro_batch_size)
                )
            };
            let steps = match steps_an_epoch {
                1 => message!(en: "1 step per epoch", zh: "每轮 1 步"),
                count => message!(en: "{count} steps per epoch", zh: "每轮 {count} 步"),
            };
            let steps = steps.get(language);
            message!(
                en: "{device}: {model} with {parameters} parameters; {samples} training samples ({rest} for \
                validation), {data}; batch size {batch_size}{micro}, {steps}; {memory} planned; ready in \
                {ready}",
                zh: "{device}：{model}，{parameters} 个参数；{samples} 个训练样本（{rest} 个验证样本），{data}；batch {batch_size}{micro}，{steps}；计划占用 {memory}；{ready} 后就绪"
            )
        }
        Report::Steps { line, .. } => {
            let text = steps_line(report);
            if moving {
                let columns = usize::from(terminal_columns(&std::io::stderr()).unwrap_or(80)) - 1;
                eprint!("{}{}", clear_line(), cut(text.get(language), columns));
                return;
            }
            if !line {
                return;
            }
            text
        }
        Report::Epoch {
            phase,
            epoch,
            epochs,
            loss,
            samples_s,
            scores,
            targets,
            ..
        } => {
            let rate = units::count(*samples_s);
            let scored = scores.map(|scores| {
                let text = scores.text();
                Message {
                    en: format!("; {}", text.en),
                    zh: format!("；{}", text.zh),
                }
            });
            let mut scored = scored.unwrap_or_default();
            // Of several targets each has a score of its own.
            for (name, scores) in targets {
                let (score, value) = scores.headline();
                scored.en += &format!("; {name} {} {value}", score.en);
                scored.zh += &format!("；{name} {} {value}", score.zh);
            }
            let scores = scored.get(language);
            message!(en: "{phase} {epoch}/{epochs}: loss {loss:.5}, {rate} samples/s{scores}", zh: "{phase} {epoch}/{epochs}：损失 {loss:.5}，{rate} 样本/秒{scores}")
        }
        // It is told when it is written, behind epochs that may be worse.
        Report::Saved {
            path,
            best: true,
            phase,
            epoch,
        } => {
            let path = path.display();
            match phase {
                Some(phase) => {
                    message!(en: "best so far, {phase} epoch {epoch}: {path}", zh: "目前最佳（{phase} 第 {epoch} 轮）：{path}")
                }
                None => {
                    message!(en: "best so far, epoch {epoch}: {path}", zh: "目前最佳（第 {epoch} 轮）：{path}")
                }
            }
        }
        Report::Saved { .. } => return,
        Report::Warning { message } => {
            let (en, zh) = (&message.en, &message.zh);
            Message {
                en: format!("warning: {en}"),
                zh: format!("警告：{zh}"),
            }
        }
        Report::Test { scores, targets } => {
            let mut text = scores.loss_first();
            for (name, scores) in targets {
                let (score, value) = scores.headline();
                text.en += &format!("; {name} {} {value}", score.en);
                text.zh += &format!("；{name} {} {value}", score.zh);
            }
            let (samples, text) = (scores.samples, text.get(language));
            message!(en: "test split, {samples} samples, best checkpoint: {text}", zh: "测试部分（{samples} 个样本，最佳检查点）：{text}")
        }
        Report::Stopped { .. } => {
            message!(en: "stopped early: the score no longer improves", zh: "提前停止：得分不再提高")
        }
    };
    let start = if moving { clear_line() } else { String::new() };
    eprintln!("{start}{}", text.get(language));
}

/// `epoch 3/10 ████░░░░ 120/400 steps · 12.3k samples/s · loss 0.01234 · busy 98% · 31% of peak · 1.2 GiB · 412 W · 2 min 05 s left`
fn steps_line(report: &Report) -> Message {
    let Report::Steps {
        epoch,
        epochs,
        step,
        of,
        samples_s,
        loss,
        busy_ratio,
        peak_ratio,
        memory_bytes,
        power_w,
        seconds_left,
        ..
    } = report
    else {
        return Message::default();
    };
    let bar = bar(*step as f64 / (*of).max(1) as f64);
    let (rate, left) = (units::count(*samples_s), units::duration(*seconds_left));
    let mut text = message!(en: "epoch {epoch}/{epochs} {bar} {step}/{of} · {rate} samples/s", zh: "第 {epoch}/{epochs} 轮 {bar} {step}/{of} · {rate} 样本/秒");
    let mut add = |part: Message| {
        text.en += &format!(" · {}", part.en);
        text.zh += &format!(" · {}", part.zh);
    };
    if let Some(loss) = loss {
        add(message!(en: "loss {loss:.5}", zh: "损失 {loss:.5}"));
    }
    if let Some(busy) = busy_ratio {
        let busy = units::percent(*busy);
        add(message!(en: "busy {busy}", zh: "忙碌 {busy}"));
    }
    if let Some(peak) = peak_ratio {
        let peak = units::percent(*peak);
        add(message!(en: "{peak} of peak", zh: "峰值的 {peak}"));
    }
    if let Some(bytes) = memory_bytes {
        add(Message::verbatim(units::bytes(*bytes as f64)));
    }
    if let Some(power) = power_w {
        add(Message::verbatim(format!("{power:.0} W")));
    }
    add(message!(en: "{left} left", zh: "剩余 {left}"));
    text
}

fn bar(share: f64) -> String {
    const WIDTH: usize = 16;
    let filled = ((share * WIDTH as f64).round() as usize).min(WIDTH);
    "█".repeat(filled) + &"░".repeat(WIDTH - filled)
}
