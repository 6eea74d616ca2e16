//! Writing to stdout: a reader that has gone (`flatout runs | head -1`) is no mistake, a disk that is full is one.

use crate::{EXIT_FAILED, help};
use flatout_core::message;
use std::io::{ErrorKind, Write};

/// Writes all of it, or ends the process: quietly where the reader has gone, as other Unix tools do, else with the reason.
pub fn write_stdout(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    let Err(error) = stdout.write_all(bytes).and_then(|()| stdout.flush()) else {
        return;
    };
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    let words = message!(en: "error: stdout could not be written to its end: {error}", zh: "错误：标准输出未能写完：{error}");
    eprintln!("{}", words.get(help::language(std::env::args())));
    std::process::exit(i32::from(EXIT_FAILED));
}
