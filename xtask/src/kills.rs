//! `cargo xtask kills`: `run`, `train`, `tune` and `lint --fix` are killed at random moments. The same seed gives the same moments; what a kill hits
//! depends on the machine.

use crate::fuzz::built;
use crate::{Result, must, root};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

const USAGE: &str = "usage: cargo xtask kills [--count N] [--seed N] [run|train|tune|lint_fix]";

pub fn run(arguments: &[String]) -> Result {
    let (mut count, mut seed, mut command) = (20, 1, None);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut number = || {
            let number = rest.next().and_then(|text| text.parse::<u32>().ok());
            number.ok_or_else(|| USAGE.to_owned())
        };
        match argument.as_str() {
            "--count" => count = number()?,
            "--seed" => seed = number()?,
            name if !name.starts_with('-') => command = Some(name.to_owned()),
            _ => return Err(USAGE.into()),
        }
    }
    let results = root().join("target/kills.jsonl");
    let _ = fs::remove_file(&results);
    let ended = must(
        Command::new(built("kills", &[])?)
            .current_dir(root().join("crates/flatout"))
            .args(["--test-threads", "4"])
            .args(command)
            .env("FLATOUT_KILLS_COUNT", count.to_string())
            .env("FLATOUT_KILLS_SEED", seed.to_string())
            .env("FLATOUT_KILLS_RESULTS", &results),
    );
    print!("{}", table(&results)?);
    ended
}

fn table(results: &Path) -> Result<String> {
    let text = fs::read_to_string(results).map_err(|error| format!("{}: {error}", results.display()))?;
    let mut seen: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for line in text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
    {
        let word = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        *seen
            .entry(word("command"))
            .or_default()
            .entry(word("saw"))
            .or_default() += 1;
    }
    let mut table = String::from("| command | kills | what was found |\n| --- | ---: | --- |\n");
    for (command, seen) in seen {
        let kills: u64 = seen.values().sum();
        let found: Vec<String> = seen
            .iter()
            .map(|(what, times)| format!("{times} {what}"))
            .collect();
        table += &format!("| {command} | {kills} | {} |\n", found.join(", "));
    }
    Ok(table)
}
