//! Calling one of Slurm's commands: no shell, a time limit, its own words when it fails.

use super::SlurmError;
use super::history::read_line;
use std::ffi::OsStr;
use std::io::{BufReader, ErrorKind, Read};
use std::ops::ControlFlow;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// A controller that is away lets its commands wait for minutes.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The database may look for minutes before the first line of a long answer comes.
const SILENCE: Duration = Duration::from_secs(300);

/// What the command printed.
pub fn call<A: AsRef<OsStr>>(program: &str, arguments: &[A]) -> Result<String, SlurmError> {
    let name = || program.to_owned();
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| match source.kind() {
            ErrorKind::NotFound => SlurmError::NotInstalled { program: name() },
            _ => SlurmError::Unstartable {
                program: name(),
                source,
            },
        })?;
    let (out, words) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => std::thread::sleep(LOOK_EVERY),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(SlurmError::Silent {
                    program: name(),
                    seconds: PATIENCE.as_secs(),
                });
            }
            Err(source) => {
                return Err(SlurmError::Unstartable {
                    program: name(),
                    source,
                });
            }
        }
    };
    let (out, words) = (out.join().unwrap_or_default(), words.join().unwrap_or_default());
    if status.success() {
        return Ok(out);
    }
    Err(refused(program, status, &words))
}

/// Its last words, or how it ended.
fn refused(program: &str, status: ExitStatus, words: &str) -> SlurmError {
    let last = words
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("");
    let words = if last.is_empty() {
        status.to_string()
    } else {
        last.trim().to_owned()
    };
    SlurmError::Refused {
        program: program.to_owned(),
        words,
    }
}

/// The same for an answer of any length, line by line. `Break` ends the command; it may be silent for a while, but not for good.
pub fn lines_of(
    program: &str,
    arguments: &[String],
    environment: &[(&str, &str)],
    line: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), SlurmError> {
    let name = || program.to_owned();
    let mut child = Command::new(program)
        .args(arguments)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| match source.kind() {
            ErrorKind::NotFound => SlurmError::NotInstalled { program: name() },
            _ => SlurmError::Unstartable {
                program: name(),
                source,
            },
        })?;
    let words = collect(child.stderr.take());
    // A few batches on their way: the reader waits for whoever takes the lines.
    let (sender, receiver) = mpsc::sync_channel::<Vec<u8>>(4096);
    let out = child.stdout.take();
    std::thread::spawn(move || {
        let Some(out) = out else { return };
        let (mut out, mut line) = (BufReader::with_capacity(1 << 16, out), Vec::new());
        while read_line(&mut out, &mut line).unwrap_or(false) {
            if sender.send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    });
    loop {
        match receiver.recv_timeout(SILENCE) {
            Ok(text) => {
                if line(&text).is_break() {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Ok(());
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(SlurmError::Silent {
                    program: name(),
                    seconds: SILENCE.as_secs(),
                });
            }
        }
    }
    let status = child.wait().map_err(|source| SlurmError::Unstartable {
        program: name(),
        source,
    })?;
    if status.success() {
        return Ok(());
    }
    Err(refused(program, status, &words.join().unwrap_or_default()))
}

/// Reads a pipe to its end beside the waiting, so that neither side blocks.
fn collect(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_missing_and_failing_tools() {
        assert_eq!(call("echo", &["a b"]).unwrap(), "a b\n");
        assert!(matches!(
            call("no-such-slurm", &["x"]),
            Err(SlurmError::NotInstalled { .. })
        ));
        let failed = call("ls", &["/no/such/folder"]);
        let mut lines = Vec::new();
        let words = ["a\nb\n".to_owned()];
        lines_of("printf", &words, &[], &mut |line| {
            lines.push(line.to_vec());
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(lines, [b"a", b"b"]);
        let missing = lines_of("ls", &["/no/such/folder".to_owned()], &[], &mut |_| {
            ControlFlow::Continue(())
        });
        assert!(matches!(missing, Err(SlurmError::Refused { .. })));
        assert!(
            matches!(failed, Err(SlurmError::Refused { words, .. }) if words.contains("/no/such/folder"))
        );
    }
}
