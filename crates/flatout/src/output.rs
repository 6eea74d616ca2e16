//! Writing to stdout without a panic when the reader has gone (`flatout runs | head -1`).

use std::io::Write;

/// Writes all of it; a closed pipe ends the process quietly, as other Unix tools do.
pub fn write_stdout(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    if stdout.write_all(bytes).and_then(|()| stdout.flush()).is_err() {
        std::process::exit(0);
    }
}
