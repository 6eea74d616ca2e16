//! flatout is killed at random moments: nothing is lost, nothing goes on running, nothing is left behind.
//!
//! A few kills per command run with the tests; `cargo xtask kills --count N --seed S` runs more.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "kills/lint.rs"]
mod lint;
#[path = "kills/process.rs"]
mod process;
#[path = "kills/run.rs"]
mod run;
#[path = "kills/train.rs"]
mod train;
#[path = "kills/tune.rs"]
mod tune;

use std::fs;
use std::io::Write as _;
use std::time::Duration;

/// Kills per command with the tests.
const COUNT: u64 = 3;

fn number(name: &str, otherwise: u64) -> u64 {
    let given = std::env::var(name).ok().and_then(|text| text.parse().ok());
    given.unwrap_or(otherwise)
}

/// The moments of a command, and what was seen after each.
struct Kills {
    command: &'static str,
    left: u64,
    random: u64,
}

impl Kills {
    fn of(command: &'static str) -> Self {
        let seed = number("FLATOUT_KILLS_SEED", 1);
        Self {
            command,
            left: number("FLATOUT_KILLS_COUNT", COUNT),
            random: (seed << 8 | command.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    /// A moment before `longest` for the next kill; `None` after the last one.
    fn next(&mut self, longest: Duration) -> Option<Duration> {
        self.left = self.left.checked_sub(1)?;
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        let share = (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64;
        Some(longest.mul_f64(share))
    }

    /// One line per kill for `cargo xtask kills`, written after all was found in order.
    fn saw(&self, what: &str) {
        let Some(file) = std::env::var_os("FLATOUT_KILLS_RESULTS") else {
            return;
        };
        let line = serde_json::json!({ "command": self.command, "saw": what });
        let mut file = fs::File::options().append(true).create(true).open(file).unwrap();
        writeln!(file, "{line}").unwrap();
    }
}
