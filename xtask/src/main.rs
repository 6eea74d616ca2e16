//! What a contributor runs: `cargo xtask test` and friends. A new task is a file here and one line in `TASKS`.

mod docs;
mod faults;
mod fuzz;
mod gpu;
mod kills;
mod matrix;
mod packages;
mod reference;
mod tag;
mod test;
mod venv;
mod wheel;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// A failed task, in words for the contributor.
pub type Result<T = ()> = std::result::Result<T, String>;

struct Task {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result,
}

const TASKS: &[Task] = &[
    Task {
        name: "docs",
        about: "check the links of the documentation and build the site in target/docs/site: --check for the links only",
        run: docs::run,
    },
    Task {
        name: "faults",
        about: "diagnose the labelled faults: precision, recall, time to first finding",
        run: faults::run,
    },
    Task {
        name: "fuzz",
        about: "damaged input for every reader: --count N, --seed S, --until N inputs in all",
        run: fuzz::run,
    },
    Task {
        name: "gpu",
        about: "build what a GPU machine without Rust needs: parity tests, benchmarks, one script",
        run: gpu::run,
    },
    Task {
        name: "kills",
        about: "kill run, train, tune and lint --fix at random moments: --count N each, --seed S",
        run: kills::run,
    },
    Task {
        name: "matrix",
        about: "the Python tests on every Python and PyTorch that can be installed: --keep, --torch, --python",
        run: matrix::run,
    },
    Task {
        name: "reference",
        about: "write docs/reference and schemas from the program's own help, rules and types",
        run: reference::run,
    },
    Task {
        name: "tag",
        about: "whether a release may have this tag: vX.Y.Z of Cargo.toml, with a dated heading in the changelog",
        run: tag::run,
    },
    Task {
        name: "test",
        about: "set up, then formatting, ruff, mypy, spelling, clippy, docs, Python tests, labelled faults, Rust tests",
        run: test::run,
    },
    Task {
        name: "venv",
        about: "make the Python environment of the tests and print its python",
        run: venv::run,
    },
    Task {
        name: "wheel",
        about: "build a manylinux wheel, install it where no cargo is, run the demo: --machine, --built, --without-demo",
        run: wheel::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(task) = arguments
        .first()
        .and_then(|name| TASKS.iter().find(|task| task.name == name))
    else {
        eprintln!("usage: cargo xtask TASK\n");
        for task in TASKS {
            eprintln!("  {:<9} {}", task.name, task.about);
        }
        return ExitCode::from(2);
    };
    match (task.run)(&arguments[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask {}: {message}", task.name);
            ExitCode::FAILURE
        }
    }
}

/// The repository's root.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(PathBuf::from)
        .unwrap_or_default()
}

/// The cargo that runs us.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command to its end; what it prints is shown.
pub fn must(command: &mut Command) -> Result {
    eprintln!("$ {}", shown(command));
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{}` ended with {status}", shown(command))),
        Err(error) => Err(format!("`{}` could not be started: {error}", shown(command))),
    }
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
