//! Everything flatout prints goes through here, and control characters of what it prints about do not reach the terminal.
//!
//! On stdout a reader that has gone (`flatout runs | head -1`) is no mistake, a disk that is full is one.

use crate::{EXIT_FAILED, help};
use flatout_core::message;
use flatout_core::text::visible;
use std::io::{ErrorKind, Write};

/// In the place of the standard library's: the same, with control characters shown, and without a panic where stderr is gone.
macro_rules! eprint {
    ($($argument:tt)*) => {
        $crate::output::write_stderr(&format!($($argument)*))
    };
}

/// [`eprint!`] with a line break.
macro_rules! eprintln {
    () => {
        $crate::output::write_stderr("\n")
    };
    ($($argument:tt)*) => {
        $crate::output::write_stderr(&(format!($($argument)*) + "\n"))
    };
}

pub fn write_stderr(text: &str) {
    crate::logging::copy(text);
    write_stderr_only(text);
}

/// Without a copy in the log.
pub fn write_stderr_only(text: &str) {
    let _ = std::io::stderr().write_all(visible(text).as_bytes());
}

/// Writes all of it, or ends the process: quietly where the reader has gone, as other Unix tools do, else with the reason.
pub fn write_stdout(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    let text = String::from_utf8_lossy(bytes);
    let Err(error) = stdout
        .write_all(visible(&text).as_bytes())
        .and_then(|()| stdout.flush())
    else {
        return;
    };
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    let words =
        message!(en: "error: failed to write to stdout: {error}", zh: "错误：无法写入标准输出：{error}");
    eprintln!("{}", words.get(help::language(crate::words())));
    std::process::exit(i32::from(EXIT_FAILED));
}
