//! What `monitor` and `replay` share: the choice of a view, the verdict at the end, the exit code.

use crate::context::Context;
use crate::logging;
use crate::output::write_stdout;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use flatout_core::interrupt::Interrupt;
use flatout_core::{Failure, Message, Result, message};
use flatout_diagnose::verdict::{Aspect, Verdict};
use flatout_record::Skipped;
use flatout_report::text;
use flatout_tui::lines::{self, Lines, Plain};
use flatout_tui::screen::{Screen, State, Theme};
use flatout_tui::watch::{Moment, View, Wish};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Args)]
pub struct Shape {
    /// Print one JSON object per line, the verdict last
    #[arg(long, group = "shape")]
    pub json: bool,
    /// CSV rows; the verdict goes to stderr
    #[arg(long, group = "shape")]
    pub csv: bool,
    /// Plain lines also on a terminal
    #[arg(long, group = "shape")]
    pub plain: bool,
}

impl Shape {
    /// Whether the samples are drawn on the terminal.
    pub fn is_screen(&self) -> bool {
        !(self.json || self.csv || self.plain)
            && std::io::stdout().is_terminal()
            && std::io::stdin().is_terminal()
    }

    /// `title` is the command's name, for the screen.
    pub fn view(&self, title: &str, context: &Context) -> Result<Box<dyn View>> {
        if self.is_screen() {
            let theme = Theme {
                colour: context.colour_on_stdout(),
            };
            let state = State::new(title, context.language, theme);
            return Ok(Box::new(OnScreen {
                screen: Screen::open(state).map_err(no_screen)?,
                _quiet: logging::hold(),
            }));
        }
        let (out, interrupt, language) = (std::io::stdout(), Interrupt::catch(), context.language);
        Ok(if self.json {
            Box::new(Lines::new(out, lines::Json, interrupt, language))
        } else if self.csv {
            Box::new(Lines::new(out, lines::Csv::default(), interrupt, language))
        } else {
            Box::new(Lines::new(out, Plain { language }, interrupt, language))
        })
    }

    /// The verdict, as data where data goes.
    pub fn end(&self, verdict: &Verdict, context: &Context) {
        if self.json {
            return write_stdout(lines::verdict_line(verdict).as_bytes());
        }
        let render =
            |columns, colour| text::verdict(verdict, context.language, text::readable_width(columns), colour);
        if self.csv {
            eprint!(
                "{}",
                render(
                    text::terminal_columns(&std::io::stderr()),
                    context.colour_on_stderr()
                )
            );
        } else {
            write_stdout(
                render(
                    text::terminal_columns(&std::io::stdout()),
                    context.colour_on_stdout(),
                )
                .as_bytes(),
            );
        }
    }
}

/// Lines of a record that could not be read: the torn last one of a killed run is no news, others are.
pub fn say_skipped<'a>(skipped: impl Iterator<Item = &'a Skipped>, context: &Context) {
    let (torn, foreign): (Vec<_>, Vec<_>) = skipped.partition(|skipped| skipped.torn);
    if let Some(line) = torn.first() {
        let place = &line.place;
        eprintln!("{}", context.say(&message!(en: "the last line is incomplete ({place}); the run was killed", zh: "最后一行不完整（{place}）；运行被强行终止")));
    }
    if let Some(first) = foreign.first() {
        let (count, place, reason) = (foreign.len(), &first.place, &first.reason);
        eprintln!(
            "{}",
            context.say(&message!(
                en: "skipped {count} unreadable lines; the first: {place}: {reason}",
                zh: "{count} 行无法读取，已跳过；第一处：{place}：{reason}"
            ))
        );
    }
}

/// The screen, with warnings kept back until it is gone. The fields are dropped in this order.
struct OnScreen {
    screen: Screen,
    _quiet: logging::Hold,
}

impl View for OnScreen {
    fn show(&mut self, moment: &Moment) {
        self.screen.show(moment);
    }

    fn wait(&mut self, at_most: Duration) -> Wish {
        self.screen.wait(at_most)
    }
}

fn no_screen(error: std::io::Error) -> Failure {
    Failure::new(message!(en: "cannot draw on this terminal", zh: "无法在此终端上绘制"))
        .caused_by(&error)
        .with_hint(message!(en: "run without the screen: --plain", zh: "不使用画面：--plain"))
}

/// `--fail-on` by the faults' names; `low-utilisation` was the first spelling of one.
pub fn fault_parser() -> impl TypedValueParser<Value = Aspect> {
    let names = Aspect::ALL.map(Aspect::fault);
    let values = Aspect::ALL.map(|aspect| match aspect {
        Aspect::Utilisation => PossibleValue::new(aspect.fault()).alias("low-utilisation"),
        _ => PossibleValue::new(aspect.fault()),
    });
    PossibleValuesParser::new(values).map(move |name| {
        let position = names.iter().position(|known| *known == name);
        // The parser accepts the names and the alias of utilization only.
        position.map_or(Aspect::Utilisation, |position| Aspect::ALL[position])
    })
}

/// 1 when one of the faults asked for is there, and each is named.
pub fn exit_code(verdict: &Verdict, fail_on: &[Aspect], context: &Context) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for (gpu, mark) in verdict.faults() {
        if fail_on.contains(&mark.aspect) {
            let fault = mark.aspect.fault();
            let said: Message = message!(en: "failed: GPU {gpu} is {fault}", zh: "未通过：GPU {gpu} {fault}");
            eprintln!("{}", context.say(&said));
            code = ExitCode::from(1);
        }
    }
    code
}

/// Seconds that one can wait for.
pub fn duration(seconds: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero()).ok_or_else(|| {
        Failure::new(message!(en: "{seconds} s is not a valid duration", zh: "时长不能是 {seconds} 秒"))
            .with_hint(message!(en: "use more than 0 seconds: --duration 300", zh: "请给出大于 0 的秒数，例如 --duration 300"))
    })
}
