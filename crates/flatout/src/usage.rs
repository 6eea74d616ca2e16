//! What clap says about a command line that it does not understand. It repeats arguments as they are, and a terminal obeys control characters.

use clap::builder::Styles;
use std::process::ExitCode;

pub fn refused(error: clap::Error) -> ExitCode {
    let has_control = |argument: std::ffi::OsString| argument.to_string_lossy().chars().any(char::is_control);
    if !error.use_stderr() || !std::env::args_os().any(has_control) {
        error.exit();
    }
    // Again without clap's own colors: every escape sequence that is left is an argument's.
    let plain = crate::command().styles(Styles::plain()).try_get_matches();
    let text = plain.err().unwrap_or(error).render().ansi().to_string();
    eprint!("{}", text.replace('\x1b', "\\x1b"));
    ExitCode::from(crate::EXIT_FAILED)
}
