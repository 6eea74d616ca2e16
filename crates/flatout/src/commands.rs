//! The commands. A new one is a file here, with `Arguments`, `about()` and `run()`, and one line in the list below.

use crate::context::Context;
use clap::Subcommand;
use flatout_core::{Message, Result};
use std::process::ExitCode;

/// The question a command answers; `--help` groups by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "a question waits for its first command")]
pub enum Question {
    See,
    Why,
    Change,
    Prove,
    Train,
    Other,
}

pub struct Entry {
    pub name: String,
    pub question: Question,
    pub about: Message,
}

macro_rules! commands {
    ($($question:ident: $variant:ident = $module:ident;)*) => {
        $(pub mod $module;)*

        #[derive(Subcommand)]
        pub enum Command {
            $(#[command(about = $module::about().en, after_help = $module::EXAMPLES)]
            $variant($module::Arguments),)*
        }

        impl Command {
            pub fn run(self, context: &Context) -> Result<ExitCode> {
                match self {
                    $(Self::$variant(arguments) => $module::run(arguments, context),)*
                }
            }
        }

        pub fn entries() -> impl Iterator<Item = Entry> {
            [$((stringify!($module), Question::$question, $module::about())),*].into_iter().map(
                |(module, question, about)| Entry { name: module.replace('_', "-"), question, about },
            )
        }
    };
}

commands! {
    See: Monitor = monitor;
    See: Replay = replay;
    See: Runs = runs;
    See: Serve = serve;
    See: Doctor = doctor;
    Why: Run = run;
    Why: Diagnose = diagnose;
    Why: Lint = lint;
    Why: Explain = explain;
    Why: Trace = trace;
    See: Attach = attach;
    Change: Tune = tune;
    Change: Advise = advise;
    See: Demo = demo;
    Prove: Compare = compare;
    Prove: Baseline = baseline;
    Prove: Report = report;
    Prove: Analyze = analyze;
    See: Fleet = fleet;
    Change: Check = check;
    Change: Bench = bench;
    Train: Train = train;
    Train: Grid = grid;
    Train: Predict = predict;
    Train: Evaluate = evaluate;
    Train: Export = export;
    Train: Generate = generate;
    Train: Data = data;
    Train: Cache = cache;
    Other: Slurm = slurm;
    Other: Mcp = mcp;
    Other: Notebook = notebook;
    Other: Completions = completions;
    Other: Man = man;
}

/// For `flatout` alone: one command a question.
pub const EXAMPLES: &[(Question, &str)] = &[
    (Question::See, "flatout monitor"),
    (Question::Why, "flatout run -- python train.py"),
    (Question::Change, "flatout tune -- python train.py"),
    (Question::Prove, "flatout compare BEFORE AFTER"),
    (Question::Train, "flatout train --data data/stocks"),
];
