//! `cargo xtask fuzz`: every reader against mutants of its seeds, in release mode. The same seed gives the same inputs; an input that
//! fails is kept in the folder for temporary files, and its path is printed.

use crate::{Result, cargo, must};

const USAGE: &str = "usage: cargo xtask fuzz [--count N] [--seed N] [READER]";

pub fn run(arguments: &[String]) -> Result {
    let (mut count, mut seed, mut reader) = ("20000".to_owned(), "1".to_owned(), None);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--count" => count = number(rest.next())?,
            "--seed" => seed = number(rest.next())?,
            name if !name.starts_with('-') => reader = Some(name.to_owned()),
            _ => return Err(USAGE.into()),
        }
    }
    let mut command = cargo();
    command.args(["test", "--release", "-p", "flatout", "--test", "fuzz", "--"]);
    command.args(reader);
    must(
        command
            .env("FLATOUT_FUZZ_COUNT", count)
            .env("FLATOUT_FUZZ_SEED", seed),
    )
}

fn number(text: Option<&String>) -> Result<String> {
    let number = text.and_then(|text| text.parse::<u32>().ok());
    number
        .map(|number| number.to_string())
        .ok_or_else(|| USAGE.into())
}
