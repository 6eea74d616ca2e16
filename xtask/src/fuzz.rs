//! `cargo xtask fuzz`: every reader against mutants of its seeds. The same seed gives the same inputs; an input that fails is kept in the
//! folder for temporary files, and its path is printed.
//!
//! The readers are optimized and keep their overflow checks and assertions; the libraries they use are those of the test build.

use crate::{Result, cargo, must, root};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const USAGE: &str = "usage: cargo xtask fuzz [--count N] [--seed N] [--until N] [READER]";
/// Inputs of the slowest readers in one round, unless told; the others get a multiple.
const COUNT: u64 = 200;

#[derive(Default)]
struct Arguments {
    count: u64,
    seed: u64,
    /// Rounds with the next seeds until this many inputs were read.
    until: u64,
    reader: Option<String>,
}

pub fn run(arguments: &[String]) -> Result {
    let arguments = Arguments::parse(arguments)?;
    let results = root().join("target/fuzz.jsonl");
    let _ = fs::remove_file(&results);
    let program = built("fuzz", &["--config", "profile.dev.opt-level=2"])?;
    let mut seed = arguments.seed;
    loop {
        let round = one_round(&program, &arguments, seed, &results);
        let table = Table::read(&results)?;
        print!("{}", table.shown());
        round?;
        if table.inputs() >= arguments.until {
            return Ok(());
        }
        seed += 1;
    }
}

impl Arguments {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut parsed = Self {
            count: COUNT,
            seed: 1,
            ..Self::default()
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut number = || {
                let number = rest.next().and_then(|text| text.parse::<u32>().ok());
                number.map(u64::from).ok_or_else(|| USAGE.to_owned())
            };
            match argument.as_str() {
                "--count" => parsed.count = number()?,
                "--seed" => parsed.seed = number()?,
                "--until" => parsed.until = number()?,
                name if !name.starts_with('-') => parsed.reader = Some(name.to_owned()),
                _ => return Err(USAGE.into()),
            }
        }
        Ok(parsed)
    }
}

/// Builds tests of the command line and gives their program.
pub fn built(name: &str, options: &[&str]) -> Result<PathBuf> {
    let output = cargo()
        .args(["test", "-p", "flatout", "--test", name, "--no-run"])
        .args(options)
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo test --no-run ended with {}", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .ok_or_else(|| "cargo did not name the program it built".to_owned())
}

fn one_round(program: &Path, arguments: &Arguments, seed: u64, results: &Path) -> Result {
    must(
        Command::new(program)
            .current_dir(root().join("crates/flatout"))
            .args(["--test-threads", "1", "--quiet"])
            .args(&arguments.reader)
            .env("FLATOUT_FUZZ_COUNT", arguments.count.to_string())
            .env("FLATOUT_FUZZ_SEED", seed.to_string())
            .env("FLATOUT_FUZZ_RESULTS", results),
    )
}

/// What came of each reader: inputs, failures, the longest and the largest of them.
#[derive(Default)]
struct Table(BTreeMap<String, [f64; 4]>);

impl Table {
    fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut table = Self::default();
        for line in text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        {
            let name = line["reader"].as_str().unwrap_or_default().to_owned();
            let number = |key: &str| line[key].as_f64().unwrap_or(0.0);
            let row = table.0.entry(name).or_default();
            row[0] += number("inputs");
            row[1] += number("failures");
            row[2] = row[2].max(number("longest_ms"));
            row[3] = row[3].max(number("most_mb"));
        }
        Ok(table)
    }

    fn inputs(&self) -> u64 {
        self.0.values().map(|row| row[0] as u64).sum()
    }

    fn shown(&self) -> String {
        let mut text = String::from(
            "| reader | inputs | failures | longest, ms of CPU | most memory, MB |\n| --- | ---: | ---: | ---: | ---: |\n",
        );
        for (name, [inputs, failures, longest, most]) in &self.0 {
            text += &format!("| {name} | {inputs:.0} | {failures:.0} | {longest:.1} | {most:.1} |\n");
        }
        text + &format!("| all | {} | | | |\n", self.inputs())
    }
}
