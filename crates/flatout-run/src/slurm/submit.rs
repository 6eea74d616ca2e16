//! `sbatch`, with the script on its standard input.

use flatout_core::error::FileError;
use flatout_slurm::SlurmError;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    pub job_id: String,
    /// Of a federation.
    pub cluster: Option<String>,
}

/// The folder of the logs is made first: Slurm drops the output of a job whose folder is missing without a word.
pub fn make_log_folder(folder: &Path) -> Result<(), FileError> {
    std::fs::create_dir_all(folder).map_err(|source| FileError::writing(folder, source))
}

pub fn submit(script: &[u8]) -> Result<Submitted, SlurmError> {
    let program = || "sbatch".to_owned();
    let mut child = Command::new("sbatch")
        .arg("--parsable")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => SlurmError::NotInstalled { program: program() },
            _ => SlurmError::Unstartable {
                program: program(),
                source,
            },
        })?;
    if let Some(mut stdin) = child.stdin.take() {
        // When sbatch has ended already, its own words say why.
        let _ = stdin.write_all(script);
    }
    let output = child
        .wait_with_output()
        .map_err(|source| SlurmError::Unstartable {
            program: program(),
            source,
        })?;
    let words = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let last = words
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .unwrap_or("");
        return Err(SlurmError::Refused {
            program: program(),
            words: last.trim().to_owned(),
        });
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut fields = text.trim().split(';');
    Ok(Submitted {
        job_id: fields.next().unwrap_or("").to_owned(),
        cluster: fields.next().map(str::to_owned),
    })
}
