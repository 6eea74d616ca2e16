//! Calling one of Slurm's commands: no shell, a time limit, its own words when it fails.

use super::SlurmError;
use std::ffi::OsStr;
use std::io::{ErrorKind, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A controller that is away lets its commands wait for minutes.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(10);

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
    Err(SlurmError::Refused {
        program: name(),
        words,
    })
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
        assert!(
            matches!(failed, Err(SlurmError::Refused { words, .. }) if words.contains("/no/such/folder"))
        );
    }
}
